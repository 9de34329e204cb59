"""Nothing in a broker says a secret where it is printed: passwords, the private key, what SCRAM keeps of a password."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.ports import free_ports
from odradek.client.login import Login
from odradek.protocol.api_keys import ApiKey
from odradek.testing import Broker
from tests.raw_client import RawClient

# Of this test alone: what other tests have left behind is among the objects.
PASSWORD, WRONG = "the-password-of-these-tests", "not-the-password-of-these-tests"
MODULES = "org.apache.kafka.common.security"
SALTED = b"what SCRAM makes of bob's password"


@pytest.fixture
def broker(certificates):
    ports = free_ports(2)
    configs = {
        **certificates.settings(),
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},SASL_SSL://127.0.0.1:{ports[1]}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{MODULES}.plain.PlainLoginModule required user_alice="{PASSWORD}";',
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    }
    lines = []
    with Broker(configs=configs, on_line=lines.append) as running:
        running.lines = lines
        running.ports = ports
        yield running


def log_in(broker, certificates, password):
    """A connection that has authenticated, or was told that it has not, and its error code."""
    client = RawClient("127.0.0.1", broker.ports[1])
    client.socket = certificates.client_context().wrap_socket(client.socket, server_hostname="localhost")
    client.call(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    return client, client.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"\0alice\0{password}".encode()).error_code


def shown() -> Iterator[str]:
    """What every object of the project's own classes says of itself."""
    for each in gc.get_objects():
        if str(type(each).__module__).startswith("odradek."):
            yield repr(each)
            yield str(each)


def test_no_object_and_no_line_of_the_log_shows_a_secret(broker, certificates):
    secrets = [PASSWORD, WRONG, SALTED.decode(), Path(certificates.path("broker.key")).read_text().splitlines()[1]]
    alice, error_code = log_in(broker, certificates, PASSWORD)
    assert error_code == 0
    stranger, error_code = log_in(broker, certificates, WRONG)
    assert error_code == 58
    with alice, stranger, RawClient("127.0.0.1", broker.ports[0]) as admin:
        credential = {"name": "bob", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": SALTED}
        answer = admin.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[credential])
        assert answer.results[0].error_code == 0
        texts = [*shown(), *map(repr, broker.lines)]
        assert [(secret, text) for text in texts for secret in secrets if secret in text] == []
    assert any("alice" in text for text in texts)
    assert any("authentication failed" in repr(line) for line in broker.lines)


class Careless(Login):
    """Says all it has."""

    def __repr__(self) -> str:
        return repr(tuple(self))


Careless.__module__ = "odradek.client.login"


def test_an_object_that_shows_its_secret_is_found():
    careless = Careless("PLAIN", "alice", PASSWORD)
    assert any(PASSWORD in text for text in shown())
    del careless
