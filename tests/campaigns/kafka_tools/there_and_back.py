"""One data directory, served by odradek, by Apache Kafka, by odradek and by Kafka again: what one wrote the other serves.

Each creates a topic, writes records and commits offsets, and is stopped as its users stop it. Snapshots of the metadata are
written all the time, and odradek removes the log that they contain, so that each broker starts from a snapshot of the other's.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, KafkaRuns, commit

_RECORDS = 20
_RETENTION_MS = str(77 * 10**9)
_SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "300",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(slots=True)
class ThereAndBack:
    """``served`` counts topics that were read whole; ``snapshots`` those of the other side that a broker started from."""

    served: int = 0
    snapshots: int = 0
    differences: list[str] = field(default_factory=list)


def go_there_and_back(scratch: Path) -> ThereAndBack:
    """Four runs on one directory, odradek's first."""
    found = ThereAndBack()
    runs = KafkaRuns(scratch / "kafka")
    data = scratch / "data"
    topics: list[str] = []
    for number in range(4):
        found.snapshots += any((data / "__cluster_metadata-0").glob("*.checkpoint"))
        topics.append(f"topic-{number}")
        if number % 2 == 0:
            settings = _SNAPSHOTS | {"node.id": "1", "metadata.max.retention.bytes": "1"}
            with BrokerProcess(data, settings=settings) as broker:
                _use(broker.address, topics, found)
        else:
            with runs.serving(f"run-{number}", _SNAPSHOTS, data) as run:
                _use(run.address, topics, found)
            shutil.rmtree(data)
            shutil.copytree(run.data, data)
    return found


def _use(address: str, topics: list[str], found: ThereAndBack) -> None:
    """Find all of ``topics`` but the last, which is created; write to each."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    created = admin.create_topics([NewTopic(topics[-1], 2, 1, config={"retention.ms": _RETENTION_MS})])
    created[topics[-1]].result(TIMEOUT_S)
    for topic in topics:
        _look_at_config(admin, topic, found)
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "enable.idempotence": True})
    for topic in topics:
        for value in range(_RECORDS):
            producer.produce(topic, value=str(value), partition=value % 2)
    assert producer.flush(TIMEOUT_S) == 0
    for written, topic in enumerate(reversed(topics), 1):
        _read(address, topic, written, found)


def _look_at_config(admin: AdminClient, topic: str, found: ThereAndBack) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    value = admin.describe_configs([resource])[resource].result(TIMEOUT_S)["retention.ms"].value
    if value != _RETENTION_MS:
        found.differences.append(f"{topic}: retention.ms is {value}")


def _read(address: str, topic: str, times_written: int, found: ThereAndBack) -> None:
    """Read all of a topic, and the offset that was committed by the run before; commit the next."""
    consumer = Consumer({"bootstrap.servers": address, "log_level": 0, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
    expected = sorted([str(value) for value in range(_RECORDS)] * times_written)
    read: list[str] = []
    while len(read) < len(expected):
        messages = consumer.consume(len(expected) - len(read), TIMEOUT_S)
        if not messages:
            break
        read += [message.value().decode() for message in messages]
    if sorted(read) != expected:
        found.differences.append(f"{topic}: {len(read)} records of {len(expected)} read")
    (committed,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
    if times_written > 1 and committed.offset != times_written - 1:
        found.differences.append(f"{topic}: offset {committed.offset} was committed, not {times_written - 1}")
    commit(consumer, [TopicPartition(topic, 0, times_written)])
    consumer.close()
    found.served += 1
