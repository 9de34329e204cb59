"""Real clients by TLS with the right and the wrong certificates: each is let in, or told of it, and none hangs."""

import subprocess
import sys

import pytest

from tests.broker_process import command_environment
from tests.campaigns.kafka_tools.kafka_tool import list_topics
from tests.clients.let_in import CLIENTS

# (what the client trusts, what it shows).
RIGHT = ("ca", "orders")
WRONG = {
    "no certificate": ("ca", None),
    "a stranger's certificate": ("ca", "stranger"),
    "the wrong authority": ("strangers", "orders"),
}
TOLD = {
    "no certificate": "sent no certificate",
    "a stranger's certificate": "is not trusted",
    "the wrong authority": "does not trust the broker",
}

# asyncio closes a connection whose server it does not trust without a word.
SILENT = "the client ended the handshake"


@pytest.fixture
def broker(broker_process, certificates):
    """One for each test: of the failures of one address few are told."""
    return broker_process(settings={"listeners": "SSL://127.0.0.1:0", **certificates.settings(client_auth="required")})


def outcome(client, broker, certificates, trusted, shown):
    files = certificates.path(f"{trusted}.pem"), certificates.path(f"{shown}.pem") if shown else ""
    command = [sys.executable, "-m", "tests.clients.let_in", client, broker.address, *files]
    done = subprocess.run(command, env=command_environment(), capture_output=True, text=True, timeout=40, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_the_right_certificate_is_let_in(broker, certificates, client):
    assert outcome(client, broker, certificates, *RIGHT) == "let in"


def test_stores_in_javas_own_format_let_the_same_clients_in(broker_process, certificates):
    settings = certificates.java_settings(client_auth="required")
    broker = broker_process(settings={"listeners": "SSL://127.0.0.1:0", **settings})
    assert outcome("kafka-python", broker, certificates, *RIGHT) == "let in"
    assert outcome("confluent-kafka", broker, certificates, *WRONG["a stranger's certificate"]) == "_TRANSPORT"


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_a_wrong_one_is_not_and_the_log_says_why(broker, certificates, client, wrong):
    assert outcome(client, broker, certificates, *WRONG[wrong]) in {"KafkaTimeoutError", "KafkaConnectionError", "_TRANSPORT"}
    assert outcome(client, broker, certificates, *RIGHT) == "let in"
    assert (SILENT if (client, wrong) == ("aiokafka", "the wrong authority") else TOLD[wrong]) in broker.stderr


@pytest.mark.timeout(120)
@pytest.mark.parametrize("wrong", WRONG)
def test_the_java_client_is_told_that_its_authentication_failed(broker, certificates, tmp_path, wrong):
    trusted, shown = WRONG[wrong]
    lines = [
        *("security.protocol=SSL", "ssl.truststore.type=PEM", f"ssl.truststore.location={certificates.path(trusted + '.pem')}"),
        *("default.api.timeout.ms=10000", "request.timeout.ms=5000"),
    ]
    if shown:
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={certificates.path(shown + '.pem')}"]
    (tmp_path / "client.properties").write_text("\n".join(lines))
    done = list_topics(broker.address, tmp_path / "client.properties")
    assert done.returncode != 0
    assert "SslAuthenticationException" in done.stdout + done.stderr
