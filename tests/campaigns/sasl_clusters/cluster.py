"""A broker of odradek's and one of Apache Kafka's under a controller of either, where every listener wants SASL.

Names of listeners are those that ``kafka_tools`` gives its nodes: the broker's is called PLAINTEXT, and its protocol is another.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.broker.metadata.bootstrap import write_bootstrap
from odradek.broker.metadata.scram_credentials import credential_record
from odradek.protocol.scram import MECHANISMS, salted_password
from odradek.storage.filesystem import RealFileSystem
from tests.campaigns.kafka_tools.kafka_brokers import KafkaBrokers
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController
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
DEADLINE_S = 60
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


class SaslCluster:
    """``begin`` and ``close`` once each."""

    def __init__(self, scratch: Path, security: Security, *, is_kafkas_controller: bool) -> None:
        self.security = security
        self.is_kafkas_controller = is_kafkas_controller
        scratch.mkdir(exist_ok=True)
        (scratch / "certificates").mkdir()
        self._certificates = Certificates(scratch / "certificates")
        settings = security.settings(self._certificates)
        self.controllers = (
            KafkaControllers(scratch / "controllers", 1, settings | _OF_KAFKA)
            if is_kafkas_controller
            else OdradekController(scratch / "controllers", settings | _OF_ODRADEK)
        )
        self._add_users()
        to_controllers, to_brokers = (dict([security.line(listener, WRONG)]) for listener in _LISTENERS)
        of_kafka, of_odradek = settings | _OF_BROKERS | _OF_KAFKA, settings | _OF_BROKERS | _OF_ODRADEK
        self.kafka = KafkaBrokers(
            scratch / "kafka", self.controllers, {KAFKA: of_kafka, KAFKA_STRANGER: of_kafka | to_controllers}
        )
        strangers = {
            STRANGER: of_odradek | to_controllers | {"initial.broker.registration.timeout.ms": "1500"},
            STRANGER_TO_BROKERS: of_odradek | to_brokers,
        }
        self.odradek = OdradekBrokers(scratch / "odradek", self.controllers, {OURS: of_odradek, **strangers})
        self.admin = AdminClient(self.client("brokers"))

    def begin(self) -> None:
        """Start the controller, and a broker of each kind."""
        self.controllers.start()
        self.kafka.start(KAFKA)
        self.odradek.start(OURS)

    def close(self) -> None:
        """End all."""
        self.odradek.close()
        self.kafka.close()
        self.controllers.close()

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

    def create(self, name: str, assignments: Sequence[Sequence[int]], **config: str) -> None:
        """Create a topic whose partitions have these replicas, and wait until the first of each leads."""
        configs = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, len(assignments), replica_assignment=assignments, config=configs)
        self.admin.create_topics([topic])[name].result(DEADLINE_S)
        self.until(lambda: [leader for leader, _ in self.partitions(name)] == [replicas[0] for replicas in assignments])

    def partitions(self, name: str) -> list[tuple[int, list[int]]]:
        """The leader and the in-sync replicas of each partition."""
        partitions = self.admin.list_topics(name, timeout=10).topics[name].partitions
        return [(partitions[index].leader, sorted(partitions[index].isrs)) for index in sorted(partitions)]

    def produce(self, topic: str, values: Sequence[bytes]) -> None:
        """All of it, in two partitions, acknowledged by all replicas in sync."""
        producer = Producer({**self.client("brokers"), "acks": "all", "linger.ms": 0})
        failures: list[object] = []
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % 2, callback=lambda error, _: error and failures.append(error))
        assert producer.flush(DEADLINE_S) == 0
        assert failures == []

    def consume(self, topic: str, count: int, **config: str) -> list[bytes]:
        """So many values of two partitions, sorted."""
        group = {"group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer({**self.client("brokers"), **group, **config})
        consumer.assign([TopicPartition(topic, index, 0) for index in range(2)])
        found: list[bytes] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < count and time.monotonic() < deadline:
            found += [message.value() for message in consumer.consume(500, 0.5) if message.error() is None]
        consumer.close()
        return sorted(found)

    def replica(self, node_id: int, topic: str, partition: int) -> bytes:
        """The bytes of a replica's segments."""
        data = (self.kafka if node_id in self.kafka.ports else self.odradek).data(node_id)
        return b"".join(path.read_bytes() for path in sorted((data / f"{topic}-{partition}").glob("*.log"))).rstrip(b"\0")

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for it."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, self.logs()[-3000:]
            time.sleep(0.05)

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
