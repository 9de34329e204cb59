"""Growing out without a stop: Kafka's brokers join, take every partition under load, and odradek's leave; and the way back.

Two odradek brokers, under Apache Kafka's controller or odradek's; two of Kafka's join, get every partition, and odradek's are
stopped and unregistered. Then odradek's come back, and Kafka's leave.

The clients stay all the time (``live``). The tools are Kafka's own.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.campaigns.cluster_chaos.clients import CLIENT, Violation
from tests.campaigns.growing_out.live import LiveClients
from tests.campaigns.growing_out.moved import MovedFound
from tests.campaigns.growing_out.processes import KafkaTools
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, until
from tests.campaigns.kafka_tools.kafka_brokers import KafkaBrokers
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController

KAFKAS_CONTROLLER, OWN_CONTROLLER = "Apache Kafka's controller", "odradek's controller"
ODRADEKS, KAFKAS = (11, 12), (21, 22)
SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "6000",
    "replica.fetch.backoff.ms": "100",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "default.replication.factor": "2",
    "group.initial.rebalance.delay.ms": "0",
}


def move_out_and_back(scratch: Path, controllers: str) -> MovedFound:
    """Out to Kafka's brokers and back, under KAFKAS_CONTROLLER or OWN_CONTROLLER."""
    cluster = _Cluster(scratch, controllers)
    try:
        cluster.move()
    except Violation as violation:
        cluster.found.differences.append(str(violation))
    finally:
        cluster.close()
    return cluster.found


class _Cluster:
    def __init__(self, scratch: Path, controllers: str) -> None:
        self.found = MovedFound(controllers)
        quorum = {"broker.session.timeout.ms": "6000"}
        self._controllers: KafkaControllers | OdradekController
        if controllers == KAFKAS_CONTROLLER:
            self._controllers = KafkaControllers(scratch / "controllers", 1, quorum)
        else:
            self._controllers = OdradekController(scratch / "controllers", quorum)
        self._odradeks = OdradekBrokers(scratch / "odradek", self._controllers, dict.fromkeys(ODRADEKS, SETTINGS))
        self._kafkas = KafkaBrokers(scratch / "kafka", self._controllers, dict.fromkeys(KAFKAS, SETTINGS))
        ports = self._odradeks.ports | self._kafkas.ports
        self._servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        self._tools = KafkaTools(scratch, self._servers)
        self._admin = AdminClient({"bootstrap.servers": self._servers, **CLIENT})

    def move(self) -> None:
        """All of it."""
        self._controllers.start()
        self._odradeks.start()
        live = LiveClients(self._servers, replicas=len(ODRADEKS))
        try:
            live.go_on()
            self._kafkas.start()
            self._hand_over(live, ODRADEKS, KAFKAS, self._stop_odradek)
            self._odradeks.start()
            self._hand_over(live, KAFKAS, ODRADEKS, self._kafkas.stop)
            self.found.differences += live.finish()
        finally:
            self.found.live = live.report()
        self.found.differences += [
            f"broker {node_id} has had a fault: {self._odradeks.log(node_id)[-3000:]}"
            for node_id in ODRADEKS
            if "Traceback" in self._odradeks.log(node_id)
        ]

    def close(self) -> None:
        """End all processes."""
        self._kafkas.close()
        self._odradeks.close()
        self._controllers.close()

    def _hand_over(
        self, live: LiveClients, leaving: Sequence[int], staying: Sequence[int], stop: Callable[[int], object]
    ) -> None:
        """Move every partition from some brokers to the others, and have the former leave."""
        until(lambda: {*leaving, *staying} == self._brokers())
        self.found.partitions += self._tools.reassign(sorted(self._replicas()), staying)
        live.go_on()
        wrong = {topic: replicas for topic, replicas in self._replicas().items() if not replicas <= {*staying}}
        if wrong:
            raise Violation(f"moved to {staying}, and not there: {wrong}")
        for broker in leaving:
            stop(broker)
            live.go_on()
        for broker in leaving:
            self._tools.unregister(broker)
            self.found.brokers += 1
        until(lambda: {*staying} == self._brokers())
        live.go_on()

    def _stop_odradek(self, broker: int) -> None:
        status = self._odradeks.stop(broker)
        if status != 0:
            raise Violation(f"broker {broker} ended with status {status}: {self._odradeks.log(broker)[-2000:]}")

    def _brokers(self) -> set[int]:
        try:
            return set(self._admin.list_topics(timeout=10).brokers)
        except KafkaException:
            return set()

    def _replicas(self) -> dict[str, set[int]]:
        """Of each topic all brokers that have a replica or lead."""
        topics = self._admin.list_topics(timeout=TIMEOUT_S).topics
        return {
            name: {broker for partition in topic.partitions.values() for broker in (*partition.replicas, partition.leader)}
            for name, topic in topics.items()
        }
