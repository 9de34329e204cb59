"""Real clients on a SASL listener, with right and wrong credentials: the configs of docs/sasl.md, which are run as they stand."""

import asyncio
import contextlib
import json
import re
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AIOKafkaError
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl import oauth as kafka_oauth

from benchmarks.ports import free_ports
from odradek.cli.cluster import Refused, Unreachable
from odradek.cli.main import command
from odradek.common.config.broker_config import parse_properties
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.texts import encode_base64
from odradek.testing import Broker
from tests.broker.security.sasl.jwts import EC_KEY, jwks, signed
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_tool import list_topics
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.project.documents import DOCS, block_with, code_blocks
from tests.raw_client import RawClient
from tests.tls import Certificates

PAGE = DOCS / "sasl.md"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD, WRONG = "alice-secret", "another-secret"
KEY = "delegation.token.secret.key"


EXAMPLE = parse_properties(block_with(PAGE, "properties", "super.users=User:admin\n"))


class SaslBroker:
    """The broker of the page, with alice in SCRAM, too."""

    def __init__(self, process, port, secure_address, certificates):
        self.process = process
        self.admin_address = process.address
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.secure_address = secure_address
        self.ca = certificates.path("ca.pem")

    def add(self, user, password):
        admin = AdminClient({"bootstrap.servers": self.admin_address})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            credential = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            admin.alter_user_scram_credentials([credential])[user].result(CLIENT_TIMEOUT_S)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sasl")
    certificates = Certificates(directory)
    settings = parse_properties(code_blocks(PAGE, "properties")[0]) | parse_properties(block_with(PAGE, "properties", KEY))
    port, secure_port = free_ports(2)
    settings["listeners"] = settings["listeners"].replace(":9093", f":{port}") + f",SECURE://127.0.0.1:{secure_port}"
    settings["listener.security.protocol.map"] += ",SECURE:SASL_SSL"
    # The listener of the page's example, beside others and without its authorizer.
    secure = {key: value for key, value in EXAMPLE.items() if key.startswith("listener.name.secure.")}
    settings |= {key: value.replace("certs/", f"{directory}/") for key, value in secure.items()}
    with BrokerProcess(directory / "data", settings=settings) as process:
        found = SaslBroker(process, port, f"localhost:{secure_port}", certificates)
        found.add("alice", PASSWORD)
        yield found
        assert not [secret for secret in (PASSWORD, WRONG, "bob-secret", settings[KEY]) if secret in process.stderr]


def librdkafka(broker, mechanism, password, **more):
    return {
        "bootstrap.servers": broker.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        **more,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_kafka_python_of_the_page_is_let_in(broker, mechanism):
    code = block_with(PAGE, "python", "KafkaProducer(")
    assert '"PLAIN"' in code
    exec(code.replace("localhost:9093", broker.address).replace('"PLAIN"', f'"{mechanism}"'), {})


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_is_let_in_with_the_arguments_of_kafka_python(broker, mechanism):
    lines = [line.strip() for line in block_with(PAGE, "python", "KafkaProducer(").splitlines()]
    arguments = "\n".join(line for line in lines if re.match(r"[a-z_]+=", line))
    config = eval(f"dict({arguments})") | {"bootstrap_servers": broker.address, "sasl_mechanism": mechanism}
    async with AIOKafkaProducer(**config) as producer:
        await producer.send_and_wait("greetings", b"hello")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_is_let_in(broker, mechanism):
    assert AdminClient(librdkafka(broker, mechanism, PASSWORD)).list_topics(timeout=CLIENT_TIMEOUT_S).brokers


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_is_told_that_its_password_is_wrong(broker, mechanism):
    errors = []
    admin = AdminClient(librdkafka(broker, mechanism, WRONG, error_cb=errors.append, log_level=0))
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
    admin.poll(0)
    told = next(error for error in errors if error.name() == "_AUTHENTICATION")
    expected = (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert expected in told.str()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_is_not_let_in_with_a_wrong_password(broker, mechanism):
    with pytest.raises(KafkaPythonError):
        KafkaAdminClient(
            bootstrap_servers=broker.address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=WRONG,
            bootstrap_timeout_ms=500,
        )


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_is_told_that_its_password_is_wrong(broker, mechanism):
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=WRONG,
    )
    try:
        with pytest.raises(AIOKafkaError):
            await producer.start()
    finally:
        await producer.stop()


# Tokens.


def bearer_settings(directory):
    """Of a broker of the page's section on tokens, with the issuer's keys in the directory."""
    (directory / "keys.json").write_text(jwks())
    url = (directory / "keys.json").as_uri()
    settings = parse_properties(
        block_with(PAGE, "properties", "clients.oauthbearer.sasl.oauthbearer.jwks").replace(
            "https://issuer.example.com/keys", url
        )
    )
    return settings | {"listeners": "CLIENTS://127.0.0.1:0", "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT"}


@pytest.fixture(scope="module")
def bearer_broker(tmp_path_factory):
    """A broker of the page's section on tokens, whose issuer has a file."""
    directory = tmp_path_factory.mktemp("bearer")
    with BrokerProcess(directory / "data", settings=bearer_settings(directory)) as process:
        yield process
        assert "eyJ" not in process.stderr


def claims(**more):
    issued = int(time.time())
    return {
        "sub": "alice",
        "iat": issued,
        "exp": issued + 300,
        "aud": "kafka",
        "iss": "https://issuer.example.com",
        **more,
    }


class Tokens(kafka_oauth.AbstractTokenProvider):
    """What kafka-python asks for a token."""

    def __init__(self, token):
        self._token = token

    def token(self):
        return self._token


class AsyncTokens(AbstractTokenProvider):
    """What aiokafka asks for a token."""

    def __init__(self, token):
        self._token = token

    async def token(self):
        return self._token


def test_the_client_with_tokens_of_the_page_is_let_in(bearer_broker):
    code = block_with(PAGE, "python", "oauth_cb")
    exec(code.replace("localhost:9093", bearer_broker.address), {"TOKEN": signed(claims())})


def test_kafka_python_shows_a_token(bearer_broker):
    config = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER", "bootstrap_timeout_ms": 5_000}
    provider = Tokens(signed(claims(), EC_KEY, "ES256", "ec"))
    admin = KafkaAdminClient(bootstrap_servers=bearer_broker.address, sasl_oauth_token_provider=provider, **config)
    admin.list_topics()
    admin.close()


@pytest.mark.parametrize("audience", ["kafka", "other"])
async def test_aiokafka_shows_a_token(bearer_broker, audience):
    told_before = len(bearer_broker.stderr)
    producer = AIOKafkaProducer(
        bootstrap_servers=bearer_broker.address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=AsyncTokens(signed(claims(aud=audience))),
    )
    try:
        await producer.start()
        # It takes the refusal for an answer, and is told of the state that it is in: with Kafka as well.
        refusal = "the token was refused: it is for another audience"
        assert (refusal in bearer_broker.stderr[told_before:]) is (audience == "other")
    finally:
        await producer.stop()


async def test_a_session_ends_with_its_token_and_librdkafka_renews_it(tmp_path):
    """The client goes by the machine's time. The broker's stands still, so that no session is over before it is renewed."""
    lasts_s = 1.2
    async with Broker(configs=bearer_settings(tmp_path)) as broker:
        clock, sasl = broker.clock, broker.core.connections.sasl
        clock.freeze()
        made_s, first_ends_ms = clock.now_ms() / 1_000, clock.monotonic_ms() + lasts_s * 1_000

        def token(_config):
            """The client takes another one within a second."""
            return signed(claims(iat=made_s, exp=made_s + lasts_s)), time.time() + 1

        def sessions_end_ms():
            """0 for a connection that has not authenticated."""
            return [each._dispatcher._authenticator.expires_at_ms or 0 for each in broker.core.connections]

        async def until(condition):
            """The client goes on all the while."""
            deadline_s = time.monotonic() + CLIENT_TIMEOUT_S
            while not condition():
                assert time.monotonic() < deadline_s
                assert (await asyncio.to_thread(admin.list_topics, timeout=CLIENT_TIMEOUT_S)).brokers
                await asyncio.to_thread(admin.poll, 0.1)

        config = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT"}
        admin = AdminClient(config | {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": token})
        await until(lambda: sasl.succeeded_again)
        assert max(sessions_end_ms()) == pytest.approx(first_ends_ms, abs=1)
        # A client may not renew more often than once a second.
        await clock.advance(seconds=1)
        lasts_s = 120
        await until(lambda: min(sessions_end_ms(), default=0) > first_ends_ms + 1)
        await clock.advance(minutes=1)
        assert (await asyncio.to_thread(admin.list_topics, timeout=CLIENT_TIMEOUT_S)).brokers
        assert (sasl.expired, sasl.failed, sasl.failed_again) == (0, 0, 0)
        await clock.advance(minutes=2)
        deadline_s = time.monotonic() + CLIENT_TIMEOUT_S
        while not sasl.expired:
            assert time.monotonic() < deadline_s
            with contextlib.suppress(KafkaException):
                await asyncio.to_thread(admin.list_topics, timeout=0.5)
        # So that refusals are told.
        clock.resume()


@pytest.mark.parametrize("password", [PASSWORD, WRONG])
def test_a_client_authenticates_by_tls(broker, password):
    config = librdkafka(broker, "SCRAM-SHA-512", password, log_level=0) | {
        "bootstrap.servers": broker.secure_address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": broker.ca,
    }
    if password == PASSWORD:
        assert AdminClient(config).list_topics(timeout=CLIENT_TIMEOUT_S).brokers
    else:
        with pytest.raises(KafkaException):
            AdminClient(config).list_topics(timeout=1)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("password", ["carol-secret", WRONG])
def test_the_java_client_of_the_page_is_let_in_with_its_password(broker, tmp_path, password):
    broker.add("carol", "carol-secret")
    properties = block_with(PAGE, "properties", 'username="admin"').replace('username="admin"', 'username="carol"')
    assert "admin-secret" in properties
    properties = properties.replace("certs/ca.pem", broker.ca).replace("admin-secret", password)
    (tmp_path / "client.properties").write_text(properties)
    done = list_topics(broker.secure_address, tmp_path / "client.properties")
    assert (done.returncode == 0) is (password == "carol-secret")
    assert ("SaslAuthenticationException: Authentication failed during authentication" in done.stdout + done.stderr) is (
        password == WRONG
    )


# Delegation tokens.


def commands(broker, *arguments, config):
    """What a command says in JSON."""
    asked = [*arguments, "--json", "--bootstrap-server", broker.address, "--command-config", str(config)]
    done = CliRunner().invoke(command, asked, standalone_mode=False, catch_exceptions=False)
    return json.loads(done.stdout)


@pytest.fixture
def token_file(broker, tmp_path):
    """The page's file of a client with a token of alice's; the token."""
    file = tmp_path / "alice.properties"
    line = f'org.example.LoginModule required username="alice" password="{PASSWORD}";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={line}\n")
    (token,) = commands(broker, "tokens", "create", config=file)
    properties = block_with(PAGE, "properties", 'tokenauth="true"')
    with_token = tmp_path / "token.properties"
    with_token.write_text(properties.replace("TOKEN-ID", token["token_id"]).replace("HMAC", token["hmac"]))
    yield with_token, token
    assert token["hmac"] not in broker.process.stderr


@pytest.mark.timeout(120)
def test_the_java_client_of_the_page_is_let_in_by_a_token(broker, token_file):
    file, _ = token_file
    done = list_topics(broker.address, file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_odradeks_own_commands_log_in_by_a_token_and_may_not_have_another(broker, token_file):
    file, token = token_file
    assert isinstance(commands(broker, "topics", "list", config=file), list)
    with pytest.raises(Refused, match="log in without a delegation token"):
        commands(broker, "tokens", "create", config=file)
    wrong = file.with_name("wrong.properties")
    wrong.write_text(file.read_text().replace(token["hmac"], encode_base64(bytes(64))))
    with pytest.raises(Unreachable, match="invalid credentials"):
        commands(broker, "topics", "list", config=wrong)


def test_a_client_without_sasl_is_answered_nothing(broker):
    with RawClient("127.0.0.1", broker.port) as client:
        client.send(ApiKey.METADATA, 9, topics=None)
        assert client.is_closed_by_peer()
    cause = "METADATA came before the client authenticated: the listener needs SASL: check the client's security.protocol"
    assert any(cause in line and "CLIENTS" in line for line in broker.process.stderr.splitlines())


def test_the_answer_to_a_wrong_password_comes_before_the_connection_closes(broker):
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
        answer = client.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0" + WRONG.encode())
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed_by_peer()


def test_a_client_of_the_first_handshake_sends_bare_tokens(broker):
    with RawClient("127.0.0.1", broker.port) as client:
        client.call(ApiKey.SASL_HANDSHAKE, 0, mechanism="PLAIN")
        token = b"\0alice\0" + PASSWORD.encode()
        client.socket.sendall(len(token).to_bytes(4) + token)
        assert client.receive_frame() == b""
        assert client.call(ApiKey.METADATA, 9, topics=None).brokers[0].port == broker.port


def test_the_configs_of_a_broker_have_no_secrets(broker):
    with RawClient(broker.process.host, broker.process.port) as client:
        asked = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
        (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked], include_synonyms=True).results
    lines = {each.name: each for each in result.configs if each.name.endswith("sasl.jaas.config")}
    assert len(lines) == 2 + len(MECHANISMS)
    assert {int(each.config_type) for each in lines.values()} == {9}
    assert all(each.is_sensitive and each.value is None for each in lines.values())
    assert PASSWORD not in repr(result)


def alter_line(broker, line):
    """The code of the answer to a change of PLAIN's users."""
    with RawClient(broker.process.host, broker.process.port) as client:
        change = {"name": "listener.name.clients.plain.sasl.jaas.config", "config_operation": 0, "value": line}
        asked = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        return client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked]).responses[0].error_code


def test_a_jaas_line_is_altered_while_the_broker_runs(broker):
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    config = librdkafka(broker, "PLAIN", "eves-secret", log_level=0) | {"sasl.username": "eve"}
    with pytest.raises(KafkaException):
        AdminClient(config).list_topics(timeout=1)
    assert alter_line(broker, f'{module} user_alice="{PASSWORD}" user_eve="eves-secret"') == ErrorCode.INVALID_REQUEST
    assert alter_line(broker, f'{module} user_alice="{PASSWORD}" user_eve="eves-secret";') == ErrorCode.NONE
    assert AdminClient(config).list_topics(timeout=CLIENT_TIMEOUT_S).brokers
    assert "eves-secret" not in broker.process.stderr


def test_a_user_that_is_removed_is_let_in_no_more(broker):
    broker.add("dave", PASSWORD)
    config = librdkafka(broker, "SCRAM-SHA-256", PASSWORD) | {"sasl.username": "dave"}
    assert AdminClient(config).list_topics(timeout=CLIENT_TIMEOUT_S).brokers
    admin = AdminClient({"bootstrap.servers": broker.admin_address})
    deletion = UserScramCredentialDeletion("dave", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([deletion])["dave"].result(CLIENT_TIMEOUT_S)
    with pytest.raises(KafkaException):
        AdminClient({**config, "log_level": 0}).list_topics(timeout=1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("password", [PASSWORD, WRONG])
def test_odradeks_own_commands_authenticate(broker, tmp_path, mechanism, password):
    file = tmp_path / "client.properties"
    line = f'org.example.LoginModule required username="alice" password="{password}";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={line}\n")
    arguments = ["users", "list", "--bootstrap-server", broker.address, "--command-config", str(file)]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if password == PASSWORD:
        assert "alice" in done.output
    else:
        assert "refused the login: Authentication failed" in done.exception.format_message()
        assert WRONG not in done.exception.format_message()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("security.protocol=SASL", "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "it is empty"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=x required username=a;", "no password"),
    ],
)
def test_a_file_by_which_nobody_can_authenticate_is_refused(tmp_path, text, complaint):
    file = tmp_path / "client.properties"
    file.write_text(text)
    done = CliRunner().invoke(command, ["topics", "list", "--command-config", str(file)], standalone_mode=False)
    assert complaint in done.exception.format_message()
