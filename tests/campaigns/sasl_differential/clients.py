"""Client libraries with right and wrong credentials, by each mechanism, and what becomes of each."""

import asyncio
import json
import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError as AIOKafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl import oauth as kafka_oauth

from tests.broker.security.sasl.jwts import unsecured
from tests.campaigns.kafka_tools.kafka_tool import list_topics
from tests.campaigns.sasl_differential.attempts import Gate
from tests.campaigns.sasl_differential.brokers import PASSWORD, WRONG, Listeners
from tests.campaigns.sasl_differential.dialogues import claims

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CREDENTIALS = tuple((mechanism, is_right) for mechanism in MECHANISMS for is_right in (True, False))
LET_IN, SPARK_LET_IN = "let in", "written, 3 read"
FRANZ_GO = Path(__file__).with_name("franz_go")
AIOKAFKA_TIMEOUT_S = 5
SPARK_TIMEOUT_S = 300
_SASL = {"security_protocol": "SASL_PLAINTEXT"}
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+|localhost:\d+|'127\.0\.0\.1', \d+")


def matrix(listeners: Listeners) -> dict[str, str]:
    """Each client by each mechanism, let in or refused; and of those that were refused the error, and whether they try again."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    found = {}
    for client in CLIENTS:
        for mechanism, is_right in CREDENTIALS:
            with Gate(listeners.clients) as gate:
                told = client(gate.address, mechanism, is_right)
            found[case_name(client.__name__, mechanism, is_right)] = outcome(told, gate.count)
    return found | spark(listeners)


def case_name(client: str, mechanism: str, is_right: bool) -> str:
    """Of a case of the matrix."""
    return f"{client} {mechanism} {'right' if is_right else 'wrong'}"


def outcome(told: str, attempts: int) -> str:
    """What became of a client that has made so many connections. Where it was told the addresses differ."""
    if told in (LET_IN, SPARK_LET_IN):
        return told
    return f"{_ADDRESS.sub('BROKER', told)}; tries {'once' if attempts == 1 else 'again'}"


def token(is_right: bool) -> str:
    """An unsecured one, for an hour or over already."""
    return unsecured(claims() if is_right else claims(exp=int(time.time()) - 5))


def librdkafka(address: str, mechanism: str, is_right: bool) -> str:
    """confluent-kafka."""
    errors: list[Any] = []
    config: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "error_cb": errors.append,
        "log_level": 0,
    }
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _config: (token(is_right), time.time() + 300)
    else:
        config |= {"sasl.username": "alice", "sasl.password": PASSWORD if is_right else WRONG}
    admin = AdminClient(config, logger=logging.getLogger("unheard"))
    try:
        admin.list_topics(timeout=10 if is_right else 2)
    except KafkaException:
        admin.poll(0)
        told = [error.str() for error in errors if error.name() == "_AUTHENTICATION"]
        return told[0].partition("SASL authentication error: ")[2].partition(" (after")[0] if told else "refused"
    return LET_IN


class Provider(kafka_oauth.AbstractTokenProvider):
    """kafka-python's."""

    def __init__(self, value: str) -> None:
        self._value = value

    def token(self) -> str:
        return self._value


class AsyncProvider(AbstractTokenProvider):
    """aiokafka's."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def token(self) -> str:
        return self._value


def _credentials(mechanism: str, is_right: bool, provider: Callable[[str], object]) -> dict[str, Any]:
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": provider(token(is_right))}
    password = PASSWORD if is_right else WRONG
    return {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": password}


def kafka_python(address: str, mechanism: str, is_right: bool) -> str:
    """kafka-python; the error that it has in the end is one of time."""
    config = _credentials(mechanism, is_right, Provider)
    try:
        admin = KafkaAdminClient(bootstrap_servers=address, bootstrap_timeout_ms=5_000 if is_right else 1_500, **_SASL, **config)
    except KafkaPythonError as error:
        return f"{type(error).__name__}: {error}"
    admin.list_topics()
    admin.close()
    return LET_IN


def aiokafka(address: str, mechanism: str, is_right: bool) -> str:
    """aiokafka."""

    async def start() -> str:
        producer = AIOKafkaProducer(bootstrap_servers=address, **_SASL, **_credentials(mechanism, is_right, AsyncProvider))
        try:
            await producer.start()
            # With a token that was refused it starts all the same.
            await asyncio.wait_for(producer.send_and_wait("greetings", b"hello"), AIOKAFKA_TIMEOUT_S)
        except AIOKafkaError as error:
            return f"{type(error).__name__}: {error}"
        except TimeoutError:
            return "starts, and sends nothing"
        finally:
            await producer.stop()
        return LET_IN

    return asyncio.run(start())


def jaas_line(mechanism: str, is_right: bool) -> str:
    """Of Kafka's own client."""
    package = "org.apache.kafka.common.security"
    module = {"PLAIN": "plain.Plain", "OAUTHBEARER": "oauthbearer.OAuthBearer"}.get(mechanism, "scram.Scram")
    options = f'username="alice" password="{PASSWORD if is_right else WRONG}"'
    if mechanism == "OAUTHBEARER":
        # The wrong one has no subject.
        named = 'unsecuredLoginPrincipalClaimName="name" unsecuredLoginStringClaim_name="alice"'
        options = 'unsecuredLoginStringClaim_sub="alice"' if is_right else named
    return f"{package}.{module}LoginModule required {options};"


def java(address: str, mechanism: str, is_right: bool) -> str:
    """Kafka's own, by its tool for topics."""
    lines = [
        "security.protocol=SASL_PLAINTEXT",
        f"sasl.mechanism={mechanism}",
        f"sasl.jaas.config={jaas_line(mechanism, is_right)}",
    ]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "client.properties"
        file.write_text("\n".join(lines))
        done = list_topics(address, file)
    if done.returncode == 0:
        return LET_IN
    said = done.stdout + done.stderr
    return next((line.partition("Exception: ")[2] for line in said.splitlines() if "SaslAuthenticationException: " in line), said)


@cache
def _franz_go_program() -> str:
    """Built once."""
    program = str(Path(tempfile.mkdtemp(prefix="odradek-franz-go-")) / "client")
    subprocess.run(["go", "build", "-o", program, "."], cwd=FRANZ_GO, check=True, timeout=300)
    return program


def franz_go(address: str, mechanism: str, is_right: bool) -> str:
    """franz-go."""
    password = PASSWORD if is_right else WRONG
    secrets = [token(is_right)] if mechanism == "OAUTHBEARER" else ["alice", password]
    command = [_franz_go_program(), address, mechanism, *secrets]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def spark(listeners: Listeners) -> dict[str, str]:
    """Spark's source and sink, all cases by one session."""
    with ExitStack() as stack:
        gates, cases = {}, {}
        for mechanism, is_right in CREDENTIALS:
            name = case_name("spark", mechanism, is_right)
            gates[name] = stack.enter_context(Gate(listeners.clients))
            cases[name] = {
                "kafka.bootstrap.servers": gates[name].address,
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": mechanism,
                "kafka.sasl.jaas.config": jaas_line(mechanism, is_right),
            }
        command = [sys.executable, "-m", "tests.campaigns.sasl_differential.spark_client", json.dumps(cases)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SPARK_TIMEOUT_S)
        assert done.returncode == 0, done.stderr[-4000:]
        told = json.loads(done.stdout.splitlines()[-1])
        return {name: outcome(told[name], gate.count) for name, gate in gates.items()}


CLIENTS = (librdkafka, kafka_python, aiokafka, java, franz_go)
