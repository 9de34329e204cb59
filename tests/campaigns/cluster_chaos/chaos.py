"""The chaos: one broker at a time is killed, frozen or stopped, while the feeder and the tellers work.

Two of three replicas are to have what is acknowledged, so nothing may be lost. At the end all orders are carried out, once each
(``accounts``); every replica is in sync again, and has the same bytes; no broker has had a fault.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.cluster_chaos.accounts import PARTITIONS, Violation, check_ledger, check_orders
from tests.campaigns.cluster_chaos.clients import CLIENT, GROUP, LEDGER, ORDERS, Feeder, Teller, read_all
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers

NODES = (11, 12, 13)
SESSION_S = 3
SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": str(SESSION_S * 1000),
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "100",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
SETTLE_S = 120.0


class Chaos:
    """One run."""

    def __init__(self, scratch: Path, seed: int, *, orders_a_second: float = 100) -> None:
        self._random = random.Random(seed)
        self._orders_a_second = orders_a_second
        self._controllers = KafkaControllers(
            scratch / "controllers", 1, {"broker.session.timeout.ms": str(SESSION_S * 1000), "min.insync.replicas": "2"}
        )
        self._brokers = OdradekBrokers(scratch / "brokers", self._controllers, dict.fromkeys(NODES, SETTINGS))
        self._servers = ",".join(f"127.0.0.1:{port}" for port in self._brokers.ports.values())
        self._harms: Counter[str] = Counter()
        self._feeder: Feeder | None = None
        self._tellers: list[Teller] = []

    def run(self, seconds: float) -> str:
        """The report. Raises Violation."""
        self._controllers.start()
        self._brokers.start()
        admin = AdminClient({"bootstrap.servers": self._servers, **CLIENT})
        for topic in admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in (ORDERS, LEDGER)]).values():
            topic.result(30)
        self._feeder = Feeder(self._servers, self._orders_a_second)
        self._tellers = [Teller(self._servers, f"teller-{number}") for number in range(3)]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._pause(2, 5)
            self._harm()
            self._until(lambda: self._are_in_sync(admin), "all replicas are in sync")
        self._finish(admin)
        return self.report()

    def report(self) -> str:
        """What was done."""
        feeder = self._feeder
        reasons = Counter(reason for teller in self._tellers for reason in teller.reasons)
        return (
            f"{feeder.sent if feeder else 0} orders, {len(feeder.acknowledged) if feeder else 0} acknowledged,"
            f" {sum(teller.committed for teller in self._tellers)} transactions;"
            f" {dict(self._harms)}; tellers began anew: {dict(reasons)}"
        )

    def close(self) -> None:
        """End all processes."""
        self._brokers.close()
        self._controllers.close()

    def _harm(self) -> None:
        node_id = self._random.choice(NODES)
        harm = self._random.choice(("kill", "kill", "freeze", "stop"))
        self._harms[harm] += 1
        if harm == "freeze":
            # Longer than its session, so that it wakes as one that was replaced.
            self._brokers.signal(node_id, signal.SIGSTOP)
            self._pause(SESSION_S, SESSION_S * 2)
            self._brokers.signal(node_id, signal.SIGCONT)
            return
        if harm == "kill":
            self._brokers.kill9(node_id)
        elif self._brokers.stop(node_id) != 0:
            raise Violation(f"broker {node_id} has not stopped in good order: {self._brokers.log(node_id)[-2000:]}")
        self._pause(0, SESSION_S * 2)
        self._brokers.start(node_id)

    def _finish(self, admin: AdminClient) -> None:
        feeder = self._feeder
        assert feeder is not None
        unknown = feeder.stop()
        if unknown:
            raise Violation(f"{unknown} orders have no answer")
        orders = {index: [int(value) for value in values] for index, values in read_all(self._servers, ORDERS).items()}
        check_orders(orders, feeder.acknowledged, feeder.sent)
        ends = {index: self._end(ORDERS, index) for index in range(PARTITIONS)}
        self._until(lambda: self._committed() == ends, "all orders are carried out")
        for teller in self._tellers:
            teller.stop()
        check_ledger(read_all(self._servers, LEDGER), [number for numbers in orders.values() for number in numbers])
        self._until(lambda: self._are_in_sync(admin), "all replicas are in sync")
        self._until(self._do_replicas_agree, "all replicas have the same bytes")
        for node_id in NODES:
            if "Traceback" in self._brokers.log(node_id):
                raise Violation(f"broker {node_id} has had a fault: {self._brokers.log(node_id)[-3000:]}")

    def _end(self, topic: str, index: int) -> int:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "asks", **CLIENT})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, index), 30)[1]
        finally:
            consumer.close()

    def _committed(self) -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": GROUP, **CLIENT})
        try:
            found = consumer.committed([TopicPartition(ORDERS, index) for index in range(PARTITIONS)], 10)
        except KafkaException:
            return {}
        else:
            return {each.partition: each.offset for each in found}
        finally:
            consumer.close()

    def _are_in_sync(self, admin: AdminClient) -> bool:
        try:
            topics = admin.list_topics(timeout=5).topics
        except KafkaException:
            return False
        partitions = [partition for topic in topics.values() for partition in topic.partitions.values()]
        return bool(partitions) and all(len(partition.isrs) == len(NODES) and partition.leader >= 0 for partition in partitions)

    def _do_replicas_agree(self) -> bool:
        names = {path.name for path in self._brokers.data(NODES[0]).glob("*-?") if not path.name.startswith("__cluster_metadata")}
        return all(len({self._bytes(node_id, name) for node_id in NODES}) == 1 for name in names)

    def _bytes(self, node_id: int, name: str) -> bytes:
        return b"".join(path.read_bytes() for path in sorted((self._brokers.data(node_id) / name).glob("*.log")))

    def _pause(self, least_s: float, most_s: float) -> None:
        time.sleep(self._random.uniform(least_s, most_s))

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SETTLE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Violation(f"not within {SETTLE_S:.0f} s: {what}")
            time.sleep(0.1)
