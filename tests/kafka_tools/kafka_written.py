"""A data directory that Apache Kafka wrote, for odradek to open.

A broker of Kafka's own runs for a few seconds, in its own JVM, and clients write through it:

    plain         batches without compression, over several segments
    packed        a partition for each codec
    compacted     the same keys again and again, tombstones among them, cleaned by Kafka's cleaner
    transactions  committed, aborted and idempotent batches, and offsets committed in the transactions

then it is stopped as its users stop it. What the coordinators and the controller wrote is there too.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import processes
from benchmarks.peers import Kafka, spawn

_TIMEOUT_S = 60.0
_SMALLEST_SEGMENT_BYTES = 1024 * 1024
_CODECS = ("gzip", "snappy", "lz4", "zstd")
_SETTINGS = {
    "log.segment.bytes": str(_SMALLEST_SEGMENT_BYTES),
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
        directory = Path(scratch) / "kafka"
        directory.mkdir()
        template = Path(scratch) / "template"
        template.mkdir()
        kafka = Kafka(template)
        process = spawn(kafka.prepare(directory, _SETTINGS), directory)
        try:
            _write(kafka.address(process, directory), directory / "data")
            process.terminate()
            process.wait(_TIMEOUT_S)
        finally:
            processes.end(process)
        yield directory / "data"


def _write(address: str, data: Path) -> None:
    _until(lambda: _accepts(address))
    admin = AdminClient({"bootstrap.servers": address})
    topics = [
        NewTopic("plain", 2, 1),
        NewTopic("packed", len(_CODECS), 1),
        NewTopic("compacted", 1, 1, config=_COMPACTED),
        NewTopic("transactions", 2, 1),
    ]
    for created in admin.create_topics(topics).values():
        created.result(_TIMEOUT_S)
    rng = Random(1)
    _write_plain(address, rng)
    _write_packed(address, rng)
    _write_compacted(address, rng)
    _write_transactions(address)
    _until(lambda: _has_been_cleaned(data))


def _write_plain(address: str, rng: Random) -> None:
    producer = Producer({"bootstrap.servers": address, "batch.size": 20_000, "linger.ms": 5})
    for number in range(30_000):
        producer.produce("plain", value=rng.randbytes(rng.randint(0, 250)), partition=number % 2, headers={"n": str(number)})
        producer.poll(0)
    producer.flush(_TIMEOUT_S)


def _write_packed(address: str, rng: Random) -> None:
    for partition, codec in enumerate(_CODECS):
        producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 5, "batch.size": 5_000})
        for number in range(3_000):
            producer.produce("packed", key=str(number), value=rng.randbytes(20) * 5, partition=partition)
            producer.poll(0)
        producer.flush(_TIMEOUT_S)


def _write_compacted(address: str, rng: Random) -> None:
    producer = Producer({"bootstrap.servers": address, "batch.size": 10_000, "linger.ms": 5, "enable.idempotence": True})
    for number in range(40_000):
        key = f"key-{rng.randint(0, 500)}"
        producer.produce("compacted", key=key, value=None if number % 50 == 0 else rng.randbytes(100))
        producer.poll(0)
    producer.flush(_TIMEOUT_S)


def _write_transactions(address: str) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("plain", 0, 7), TopicPartition("plain", 1, 8)], asynchronous=False)
    producer = Producer({"bootstrap.servers": address, "transactional.id": "writer"})
    producer.init_transactions(_TIMEOUT_S)
    for number in range(40):
        producer.begin_transaction()
        for partition in range(2):
            for _ in range(3):
                producer.produce("transactions", value=f"{number}", partition=partition)
        producer.send_offsets_to_transaction(
            [TopicPartition("plain", 0, 10 + number)], consumer.consumer_group_metadata(), _TIMEOUT_S
        )
        if number % 3:
            producer.commit_transaction(_TIMEOUT_S)
        else:
            producer.abort_transaction(_TIMEOUT_S)
    consumer.close()


def _has_been_cleaned(data: Path) -> bool:
    """Whether Kafka's cleaner has been through all of ``compacted`` but its active segment."""
    checkpoint = data / "cleaner-offset-checkpoint"
    if not checkpoint.exists():
        return False
    segments = sorted(int(file.stem) for file in data.glob("compacted-0/*.log"))
    return f"compacted 0 {segments[-1]}" in checkpoint.read_text(encoding="ascii").splitlines()


def _accepts(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(0.1)
