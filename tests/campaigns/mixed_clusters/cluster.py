"""A cluster of odradek's and Apache Kafka's brokers under a controller of either, and what clients ask of it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.campaigns.kafka_tools.kafka_brokers import KafkaBrokers
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController
from tests.campaigns.mixed_clusters.comparison import Comparison, compare

SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.backoff.ms": "100",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
CONTROLLER_SETTINGS = {"broker.session.timeout.ms": "3000"}
DEADLINE_S = 90
_FETCH_WAIT_S = 0.5
_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")


class TwoMakes:
    """Brokers of odradek's and Apache Kafka's by node id, with their settings, under a controller of either; not started yet."""

    def __init__(
        self,
        scratch: Path,
        kafka: Mapping[int, Mapping[str, str]],
        odradek: Mapping[int, Mapping[str, str]],
        of_controller: Mapping[str, str],
        *,
        is_kafkas_controller: bool,
    ) -> None:
        self.controllers = (
            KafkaControllers(scratch / "controllers", 1, of_controller)
            if is_kafkas_controller
            else OdradekController(scratch / "controllers", of_controller)
        )
        self.kafka = KafkaBrokers(scratch / "kafka", self.controllers, kafka)
        self.odradek = OdradekBrokers(scratch / "odradek", self.controllers, odradek)
        self.admin = AdminClient({**self.client_configs(), "log_level": 0})

    def client_configs(self) -> dict[str, Any]:
        """Of a client that may do everything."""
        raise NotImplementedError

    def told(self) -> object:
        """The explanation of a wait that ended in vain."""
        raise NotImplementedError

    def close(self) -> None:
        """End all, and remove what Kafka's had."""
        self.odradek.close()
        self.kafka.close()
        self.controllers.close()

    # ---------------------------------------------------------------------------------------------------------------- brokers

    def data(self, node_id: int) -> Path:
        """Where a broker has its logs."""
        return self._of(node_id).data(node_id)

    def start(self, node_id: int) -> None:
        """Start a broker."""
        self._of(node_id).start(node_id)

    def kill9(self, node_id: int) -> None:
        """End a broker as a loss of its machine does."""
        self._of(node_id).kill9(node_id)

    def stop(self, node_id: int) -> None:
        """Have a broker leave."""
        self._of(node_id).stop(node_id)

    def _of(self, node_id: int) -> KafkaBrokers | OdradekBrokers:
        return self.kafka if node_id in self.kafka.ports else self.odradek

    # ------------------------------------------------------------------------------------------------------------ partitions

    def create(self, name: str, assignments: Sequence[Sequence[int]], **config: str) -> None:
        """Create a topic whose partitions have these replicas, and wait until the first of each leads."""
        configs = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, len(assignments), replica_assignment=assignments, config=configs)
        self.admin.create_topics([topic])[name].result(DEADLINE_S)
        self.until(lambda: self.leaders(name) == [replicas[0] for replicas in assignments])

    def leaders(self, name: str) -> list[int]:
        """Of each partition; -1 where there is none."""
        partitions = self.admin.list_topics(name, timeout=10).topics[name].partitions
        return [partitions[index].leader for index in sorted(partitions)]

    def in_sync(self, name: str) -> list[list[int]]:
        """The in-sync replicas of each partition."""
        partitions = self.admin.list_topics(name, timeout=10).topics[name].partitions
        return [sorted(partitions[index].isrs) for index in sorted(partitions)]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for it."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.05)

    # --------------------------------------------------------------------------------------------------------------- clients

    def produce(self, topic: str, values: Iterable[bytes], partitions: int, **config: object) -> None:
        """All of it, acknowledged by all replicas in sync."""
        producer = Producer({**self.client_configs(), "acks": "all", "linger.ms": "0", **config})
        failures: list[object] = []
        for number, value in enumerate(values):
            producer.produce(
                topic, value, partition=number % partitions, callback=lambda error, _: error and failures.append(error)
            )
        assert producer.flush(DEADLINE_S) == 0
        assert failures == []

    def consume(self, topic: str, partitions: int, count: int, **config: object) -> list[bytes]:
        """So many values, sorted."""
        consumer = Consumer({**self.client_configs(), "group.id": "reader", "enable.auto.commit": False, **config})
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        found: list[object] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < count and time.monotonic() < deadline:
            found += [message.value() for message in consumer.consume(500, 0.5) if message.error() is None]
        consumer.close()
        return sorted(found)

    def replica(self, node_id: int, topic: str, partition: int) -> bytes:
        """The bytes of a replica's segments."""
        directory = self.data(node_id) / f"{topic}-{partition}"
        return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log"))).rstrip(b"\0")


class MixedCluster(TwoMakes):
    """Brokers by node id, not started yet. Each is in a rack of its own, ``rack-ID``.

    ``spare`` are further ones of odradek's, which begin when they are told to.
    """

    def __init__(
        self,
        scratch: Path,
        *,
        kafka: Sequence[int],
        odradek: Sequence[int],
        spare: Sequence[int] = (),
        is_kafkas_controller: bool = True,
        settings: Mapping[str, str] | None = None,
        controller_settings: Mapping[str, str] | None = None,
    ) -> None:
        chosen = SETTINGS | dict(settings or {})
        of_controller = CONTROLLER_SETTINGS | dict(controller_settings or {})
        racks = {node_id: {**chosen, "broker.rack": f"rack-{node_id}"} for node_id in (*kafka, *odradek, *spare)}
        self.nodes = (*kafka, *odradek)
        super().__init__(
            scratch,
            {node_id: racks[node_id] for node_id in kafka},
            {node_id: racks[node_id] for node_id in (*odradek, *spare)},
            of_controller,
            is_kafkas_controller=is_kafkas_controller,
        )

    def client_configs(self) -> dict[str, Any]:
        """Of any client."""
        return {"bootstrap.servers": self.servers}

    def begin(self) -> None:
        """Start all."""
        self.controllers.start()
        self.kafka.start()
        self.odradek.start(*(node_id for node_id in self.nodes if node_id in self.odradek.ports))

    def create_internal_topics(self) -> None:
        """Have the coordinators' topics while all brokers live, so that each of these leads a part of them."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "first"})
        self.until(lambda: _is_coordinated(consumer))
        Producer({"bootstrap.servers": self.servers, "transactional.id": "first"}).init_transactions(DEADLINE_S)
        self.until(lambda: all(set(self.leaders(name)) == set(self.nodes) for name in _INTERNAL_TOPICS))

    @property
    def ports(self) -> dict[int, int]:
        """Of all brokers but the spare ones."""
        every = self.odradek.ports | self.kafka.ports
        return {node_id: every[node_id] for node_id in self.nodes}

    @property
    def servers(self) -> str:
        """For clients."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def prefer(self, topic: str, partitions: int) -> None:
        """Have every replica in sync, and the first of each partition's lead: earlier tests have moved leaderships."""
        self.until(lambda: self.in_sync(topic) == [sorted(self.nodes)] * partitions)
        asked = [TopicPartition(topic, index) for index in range(partitions)]
        self.admin.elect_leaders(ElectionType.PREFERRED, asked).result(DEADLINE_S)
        self.until(lambda: set(self.leaders(topic)) == set(self.nodes))

    def delete_records(self, topic: str, offset: int) -> int:
        """Delete what is before it, of partition 0; its low watermark. A broker that knows no leader yet is asked again."""
        found: list[int] = []

        def is_deleted() -> bool:
            [deleted] = self.admin.delete_records([TopicPartition(topic, 0, offset)]).values()
            try:
                found.append(deleted.result(DEADLINE_S).low_watermark)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._NOENT:
                    raise
                # librdkafka keeps that it knows none, and does not look the topic up again by itself.
                self.leaders(topic)
            return bool(found)

        self.until(is_deleted)
        return found[-1]

    def elects_unclean(self, topic: str, node_id: int, partition: int = 0) -> bool:
        """Have a replica lead that may lack what was acknowledged; whether it does."""
        self.admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, partition)]).result(DEADLINE_S)
        return self.leaders(topic)[partition] == node_id

    def reassign(self, topic: str, replicas: Sequence[int], partition: int = 0, *, by: int | None = None) -> int:
        """Have a partition on these brokers, as kafka-reassign-partitions.sh asks for it; the partition's error code."""
        asked = ReassignableTopic(name=topic, partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)])
        port = self.ports[next(iter(self.odradek.ports)) if by is None else by]
        client = BlockingClient("127.0.0.1", port, "reassigns", DEADLINE_S)
        try:
            response = client.call(Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS), AlterPartitionReassignmentsRequest(topics=[asked]))
        finally:
            client.close()
        return response.error_code or response.responses[0].partitions[0].error_code

    def configure(self, kind: ConfigResource.Type, name: str, **entries: str | None) -> None:
        """Set configs of a topic or broker; None deletes one."""
        changes = [
            ConfigEntry(
                key.replace("_", "."),
                value or "",
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in entries.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def all_in_sync(self) -> bool:
        """Whether every replica of every partition is."""
        topics = self.admin.list_topics(timeout=10).topics.values()
        partitions = [partition for topic in topics for partition in topic.partitions.values()]
        return all(len(each.isrs) == len(each.replicas) and each.leader >= 0 for each in partitions)

    def compare(self) -> Comparison:
        """The replicas on disk."""
        return compare({node_id: self.data(node_id) for node_id in self.nodes})

    def settle_and_stop(self) -> None:
        """Wait until all replicas are in sync and alike, and have every broker leave."""
        self.until(self.all_in_sync)
        self.until(lambda: not any("the logs differ" in each for each in self.compare().differences))
        # A follower learns of the high watermark by its next fetch, which may wait so long.
        time.sleep(2 * _FETCH_WAIT_S)
        for node_id in self.nodes:
            self.stop(node_id)

    def told(self) -> tuple[list[object], list[str]]:
        """What each broker says of all partitions, and has said."""
        told: list[object] = []
        for node_id, port in self.ports.items():
            try:
                topics = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=3).topics
            except KafkaException as error:
                told.append((node_id, str(error)))
                continue
            told.append((node_id, {n: [(p.leader, p.isrs) for p in topic.partitions.values()] for n, topic in topics.items()}))
        return told, [self.odradek.log(node_id)[-1500:] for node_id in self.nodes if node_id in self.odradek.ports]

    def replicas_agree(self, topic: str, partitions: int) -> bool:
        """Whether all brokers have the same, of a topic that all have."""
        return all(len({self.replica(node_id, topic, index) for node_id in self.nodes}) == 1 for index in range(partitions))


def _is_coordinated(consumer: Consumer) -> bool:
    """Return True once the group has a coordinator that has taken over.

    librdkafka does not ask again when the broker that FindCoordinator named has not yet learnt that it leads.
    """
    try:
        consumer.committed([TopicPartition("any", 0)], DEADLINE_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_COORDINATOR:
            raise
        return False
    return True
