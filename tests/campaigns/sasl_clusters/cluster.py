"""A broker of odradek's and one of Apache Kafka's under a controller of either, where every listener wants SASL.

Names of listeners are those that ``kafka_tools`` gives its nodes: the broker's is called PLAINTEXT, and its protocol is another.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odradek.controller.metadata.scram_credentials import credential_record
from odradek.controller.metadata.snapshot_generator import write_bootstrap
from odradek.protocol.scram import MECHANISMS, salted_password
from odradek.storage.filesystem import RealFileSystem
from tests.campaigns.kafka_tools.odradek_controller import OdradekController
from tests.campaigns.mixed_clusters.cluster import TwoMakes
from tests.tls import Certificates

KAFKA, OURS = 5, 11
# Brokers with a wrong password: for controllers, and for brokers alone.
STRANGER, KAFKA_STRANGER, STRANGER_TO_BROKERS = 12, 13, 14
BOTH = [KAFKA, OURS]
# ``brokers`` are super users, and alice has no rights.
SECRETS = {"brokers": "brokers-secret", "alice": "alice-secret"}
WRONG = "another-secret"
# Kafka's brokers and odradek's renew a session at 85 to 95 % of this.
SESSION_MS = 2_000
# By tokens that nobody has signed.
OAUTHBEARER = "OAUTHBEARER"
_PACKAGE = "org.apache.kafka.common.security"
_USERS = " ".join(f'user_{name}="{secret}"' for name, secret in SECRETS.items())
_LISTENERS = ("controller", "plaintext")


@dataclass(frozen=True, slots=True)
class Security:
    """``protocol`` and ``mechanism`` of every listener."""

    protocol: str
    mechanism: str

    def settings(self, certificates: Certificates) -> dict[str, str]:
        """Of every node."""
        named = {
            "listener.security.protocol.map": f"CONTROLLER:{self.protocol},PLAINTEXT:{self.protocol}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": self.mechanism,
            "sasl.mechanism.controller.protocol": self.mechanism,
            "sasl.enabled.mechanisms": self.mechanism,
            "connections.max.reauth.ms": str(SESSION_MS),
            "super.users": "User:brokers",
        }
        lines = dict(self.line(listener) for listener in _LISTENERS)
        stores = {key: str(value) for key, value in certificates.settings().items()}
        return named | lines | (stores if self.protocol == "SASL_SSL" else {})

    def line(self, listener: str, password: str = SECRETS["brokers"]) -> tuple[str, str]:
        """The JAAS config of a listener, and the line by which a node logs in with ``password``, if the mechanism has any."""
        login = f'username="brokers" password="{password}"'
        module = f"plain.PlainLoginModule required {login} {_USERS}"
        if self.mechanism == OAUTHBEARER:
            module = 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="brokers"'
        elif self.mechanism != "PLAIN":
            module = f"scram.ScramLoginModule required {login}"
        return f"listener.name.{listener}.{self.mechanism.lower()}.sasl.jaas.config", f"{_PACKAGE}.{module};"

    def client(self, user: str, certificates: Certificates) -> dict[str, Any]:
        """Of librdkafka."""
        who = {"sasl.username": user, "sasl.password": SECRETS[user]}
        if self.mechanism == OAUTHBEARER:
            who = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={user}"}
        return {
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            **who,
            "ssl.ca.location": certificates.path("ca.pem"),
            "log_level": 0,
        }


_OF_ODRADEK = {"authorizer.class.name": "StandardAuthorizer"}
_OF_KAFKA = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
_OF_BROKERS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "3000",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}


class SaslCluster(TwoMakes):
    """``begin`` and ``close`` once each."""

    def __init__(self, scratch: Path, security: Security, *, is_kafkas_controller: bool) -> None:
        self.security = security
        self.is_kafkas_controller = is_kafkas_controller
        scratch.mkdir(exist_ok=True)
        (scratch / "certificates").mkdir()
        self._certificates = Certificates(scratch / "certificates")
        settings = security.settings(self._certificates)
        to_controllers, to_brokers = (dict([security.line(listener, WRONG)]) for listener in _LISTENERS)
        of_kafka, of_odradek = settings | _OF_BROKERS | _OF_KAFKA, settings | _OF_BROKERS | _OF_ODRADEK
        strangers = {
            STRANGER: of_odradek | to_controllers | {"initial.broker.registration.timeout.ms": "1500"},
            STRANGER_TO_BROKERS: of_odradek | to_brokers,
        }
        super().__init__(
            scratch,
            {KAFKA: of_kafka, KAFKA_STRANGER: of_kafka | to_controllers},
            {OURS: of_odradek, **strangers},
            settings | (_OF_KAFKA if is_kafkas_controller else _OF_ODRADEK),
            is_kafkas_controller=is_kafkas_controller,
        )
        self._add_users()

    def client_configs(self) -> dict[str, Any]:
        """Of a super user."""
        return self.client("brokers")

    def told(self) -> str:
        """The last lines of odradek's nodes."""
        return self.logs()[-3000:]

    def begin(self) -> None:
        """Start the controller, and a broker of each kind."""
        self.controllers.start()
        self.kafka.start(KAFKA)
        self.odradek.start(OURS)

    def logs(self) -> str:
        """What nodes of odradek's have said."""
        said = [self.odradek.log(node_id) for node_id in self.odradek.ports if self.odradek.has_begun(node_id)]
        if isinstance(self.controllers, OdradekController):
            said.append(self.controllers.log())
        return "".join(said)

    def client(self, user: str, *node_ids: int) -> dict[str, Any]:
        """The configs of a client that knows these brokers, or both."""
        ports = self.kafka.ports | self.odradek.ports
        servers = ",".join(f"127.0.0.1:{ports[node_id]}" for node_id in node_ids or BOTH)
        return {"bootstrap.servers": servers, **self.security.client(user, self._certificates)}

    # -------------------------------------------------------------------------------------------------------------- questions

    def partitions(self, name: str) -> list[tuple[int, list[int]]]:
        """The leader and the in-sync replicas of each partition."""
        return [*zip(self.leaders(name), self.in_sync(name), strict=True)]

    def _add_users(self) -> None:
        mechanism = MECHANISMS.get(self.security.mechanism)
        if mechanism is None:
            return
        records = [
            credential_record(
                name, mechanism, salt=b"salt", salted=salted_password(mechanism, secret, b"salt", 4096), iterations=4096
            )
            for name, secret in SECRETS.items()
        ]
        directory = self.controllers.log_dir(1).parent
        write_bootstrap(RealFileSystem(), str(directory), records, int(time.time() * 1000))


def of_values(name: str, count: int) -> list[bytes]:
    """So many different ones, sorted."""
    return [f"{name}-{number:05}".encode() for number in range(count)]


Checks = Mapping[str, Callable[[SaslCluster], object]]
