"""Two brokers with the same SASL listeners, users and tokens: odradek's, and Apache Kafka's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from benchmarks import processes
from benchmarks.peers import Kafka, spawn, tail
from benchmarks.ports import free_ports
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, accepts, until

# Long enough to be told from a slow answer.
DELAY_MS = 300
# How long sessions of the listener RENEWED last.
SESSION_MS = 3_000
PASSWORD, WRONG = "alice-secret", "another-secret"
# What delegation tokens are made of.
SECRET_KEY = "a-key-of-both"
_PACKAGE = "org.apache.kafka.common.security"
_LINES = {
    "plain": f'{_PACKAGE}.plain.PlainLoginModule required user_alice="{PASSWORD}" user_bob="bob-secret"'
    ' user_carol="carol-secret" user_ö="ü";',
    "scram-sha-256": f"{_PACKAGE}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_PACKAGE}.scram.ScramLoginModule required;",
    "oauthbearer": f'{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin";',
}
_MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class Listeners:
    """Ports of a broker: of a listener without SASL, of one with it, of one whose sessions end."""

    plaintext: int
    clients: int
    renewed: int

    def settings(self, *, has_tokens: bool = True) -> dict[str, str]:
        """What both brokers are told. Who has no name may do everything, others what they have ACLs for."""
        names = {"PLAINTEXT": self.plaintext, "CLIENTS": self.clients, "RENEWED": self.renewed}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in names.items())
        settings = {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "CLIENTS:SASL_PLAINTEXT,RENEWED:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "connection.failed.authentication.delay.ms": str(DELAY_MS),
            "listener.name.renewed.plain.connections.max.reauth.ms": str(SESSION_MS),
            "group.initial.rebalance.delay.ms": "0",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        if has_tokens:
            settings["delegation.token.secret.key"] = SECRET_KEY
        for listener in ("clients", "renewed"):
            settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = _MECHANISMS
            for mechanism, line in _LINES.items():
                settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = line
        return settings


@contextmanager
def odradek(directory: Path, *, has_tokens: bool = True) -> Iterator[Listeners]:
    """Ours."""
    directory.mkdir(exist_ok=True)
    listeners = Listeners(*free_ports(3))
    process = BrokerProcess(directory / "odradek", settings=listeners.settings(has_tokens=has_tokens))
    # Else it would take a free one.
    process.port = listeners.plaintext
    with process:
        add_users(listeners)
        yield listeners
        secrets = [secret for secret in (PASSWORD, WRONG, "bob-secret", SECRET_KEY) if secret in process.stderr]
        assert not secrets, f"the log has {secrets}"


@contextmanager
def kafka(scratch: Path, *, has_tokens: bool = True, data: Path | None = None) -> Iterator[Listeners]:
    """Apache Kafka's, with a data directory of its own or on ``data``."""
    template, directory = scratch / "template", scratch / "kafka"
    template.mkdir(parents=True)
    directory.mkdir()
    peer = Kafka(template)
    *ports, controller = free_ports(4)
    listeners = Listeners(*ports)
    settings = listeners.settings(has_tokens=has_tokens)
    if data is not None:
        settings["log.dirs"] = str(data)
    settings["listeners"] += f",CONTROLLER://127.0.0.1:{controller}"
    # A properties file is in Latin-1.
    escaped = {key: value.encode("ascii", "backslashreplace").decode().replace("\\x", "\\u00") for key, value in settings.items()}
    escaped["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
    process = spawn(peer.prepare(directory, escaped), directory)
    try:
        until(lambda: process.poll() is not None or accepts(f"127.0.0.1:{listeners.renewed}"))
        if process.poll() is not None:
            raise AssertionError(tail(directory))
        add_users(listeners)
        yield listeners
        process.terminate()
        process.wait(TIMEOUT_S)
    finally:
        processes.end(process)


def add_users(listeners: Listeners) -> None:
    """Alice and Bob have SCRAM credentials."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{listeners.plaintext}"})
    for user, password in (("alice", PASSWORD), ("bob", "bob-secret")):
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            credential = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            admin.alter_user_scram_credentials([credential])[user].result(30)
