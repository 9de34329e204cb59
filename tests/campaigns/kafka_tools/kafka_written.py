"""A data directory that Apache Kafka wrote, for odradek to open.

A broker of Kafka's own runs for a few seconds, in its own JVM, and clients write through it:

    plain         batches without compression, over several segments
    packed        a partition for each codec
    compacted     the same keys again and again, tombstones among them, cleaned by Kafka's cleaner
    transactions  committed, aborted and idempotent batches, and offsets committed in the transactions

then it is stopped as its users stop it. What the coordinators and the controller wrote is there too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.kafka_tools.kafka_broker import SMALLEST_SEGMENT_BYTES, TIMEOUT_S, KafkaRuns, commit, until

_CODECS = ("gzip", "snappy", "lz4", "zstd")
_SETTINGS = {
    "log.segment.bytes": str(SMALLEST_SEGMENT_BYTES),
    "log.cleaner.backoff.ms": "200",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
}
_COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "600000"}


@contextmanager
def kafka_data_directory() -> Iterator[Path]:
    """Kafka's data directory, after its broker has stopped; gone with the end of the ``with`` block."""
    with TemporaryDirectory(prefix="odradek-kafka-") as scratch:
        with KafkaRuns(Path(scratch)).serving("kafka", _SETTINGS) as run:
            _write(run.address, run.data)
        yield run.data


def _write(address: str, data: Path) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [
        NewTopic("plain", 2, 1),
        NewTopic("packed", len(_CODECS), 1),
        NewTopic("compacted", 1, 1, config=_COMPACTED),
        NewTopic("transactions", 2, 1),
    ]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)
    rng = Random(1)
    _write_plain(address, rng)
    _write_packed(address, rng)
    _write_compacted(address, rng)
    _write_transactions(address)
    until(lambda: _has_been_cleaned(data))


def _write_plain(address: str, rng: Random) -> None:
    producer = Producer({"bootstrap.servers": address, "batch.size": 20_000, "linger.ms": 5})
    for number in range(30_000):
        producer.produce("plain", value=rng.randbytes(rng.randint(0, 250)), partition=number % 2, headers={"n": str(number)})
        producer.poll(0)
    producer.flush(TIMEOUT_S)


def _write_packed(address: str, rng: Random) -> None:
    for partition, codec in enumerate(_CODECS):
        producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 5, "batch.size": 5_000})
        for number in range(3_000):
            producer.produce("packed", key=str(number), value=rng.randbytes(20) * 5, partition=partition)
            producer.poll(0)
        producer.flush(TIMEOUT_S)


def _write_compacted(address: str, rng: Random) -> None:
    producer = Producer({"bootstrap.servers": address, "batch.size": 10_000, "linger.ms": 5, "enable.idempotence": True})
    for number in range(40_000):
        key = f"key-{rng.randint(0, 500)}"
        producer.produce("compacted", key=key, value=None if number % 50 == 0 else rng.randbytes(100))
        producer.poll(0)
    producer.flush(TIMEOUT_S)


def _write_transactions(address: str) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers", "enable.auto.commit": False})
    commit(consumer, [TopicPartition("plain", 0, 7), TopicPartition("plain", 1, 8)])
    producer = Producer({"bootstrap.servers": address, "transactional.id": "writer"})
    producer.init_transactions(TIMEOUT_S)
    for number in range(40):
        producer.begin_transaction()
        for partition in range(2):
            for _ in range(3):
                producer.produce("transactions", value=f"{number}", partition=partition)
        producer.send_offsets_to_transaction(
            [TopicPartition("plain", 0, 10 + number)], consumer.consumer_group_metadata(), TIMEOUT_S
        )
        if number % 3:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    consumer.close()


def _has_been_cleaned(data: Path) -> bool:
    """Whether Kafka's cleaner has been through all of ``compacted`` but its active segment."""
    checkpoint = data / "cleaner-offset-checkpoint"
    if not checkpoint.exists():
        return False
    segments = sorted(int(file.stem) for file in data.glob("compacted-0/*.log"))
    return f"compacted 0 {segments[-1]}" in checkpoint.read_text(encoding="ascii").splitlines()
