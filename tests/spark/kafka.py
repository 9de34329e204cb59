"""A plain client beside Spark: what Spark is to read is written by librdkafka, and what Spark has written is read by it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from odradek.protocol.record_batch import BatchHeader, iter_batches

TIMEOUT_S = 20.0

_numbers = count()


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it was sent or read. Records are equal where a sender sees no difference: time and offset aside."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp_ms: int = field(default=0, compare=False)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int = field(default=-1, compare=False)


def values(count: int, start: int = 0, partition: int = 0) -> list[Record]:
    """Records whose values are b"000000", b"000001" and so on."""
    return [Record(b"%06d" % number, partition=partition) for number in range(start, start + count)]


class Kafka:
    """Topics, records in and records out, by way of a client that is not Spark's."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap_servers, "log_level": 0, "topic.metadata.refresh.interval.ms": 1000}
        self._admin = AdminClient(self._settings)

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        topic = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
        self._admin.create_topics([topic])[name].result(TIMEOUT_S)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)

    def delete_topic(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(TIMEOUT_S)

    def delete_records(self, topic: str, before_offset: int, partition: int = 0) -> None:
        place = TopicPartition(topic, partition, before_offset)
        self._admin.delete_records([place])[place].result(TIMEOUT_S)

    def send(self, topic: str, records: Iterable[Record], codec: str = "none") -> None:
        """Send with acks=all and return when every record is acknowledged."""
        producer = Producer({**self._settings, "compression.type": codec, "linger.ms": 0, "message.max.bytes": 2_000_000})
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)

        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=delivered,
            )
        assert producer.flush(TIMEOUT_S) == 0
        assert errors == []

    def transactions(self, topic: str) -> "Transactions":
        """A producer that writes to this topic in transactions."""
        settings = {**self._settings, "linger.ms": 0, "transactional.id": f"writes-{topic}-{next(_numbers)}"}
        return Transactions(Producer(settings), topic)

    def records(self, topic: str) -> list[Record]:
        """All that the topic holds, partition by partition in the order of offsets."""
        consumer = Consumer({**self._settings, "group.id": "unused", "enable.partition.eof": True, "enable.auto.commit": False})
        try:
            partitions = sorted(consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            found: list[Record] = []
            at_end: set[int] = set()
            while len(at_end) < len(partitions):
                message = consumer.poll(TIMEOUT_S)
                assert message is not None, f"{topic}: nothing within {TIMEOUT_S} s; partitions read to their end: {at_end}"
                error = message.error()
                if error is None:
                    found.append(_record(message))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    at_end.add(message.partition())
        finally:
            consumer.close()
        return sorted(found, key=lambda record: (record.partition, record.offset))


class Transactions:
    """One transactional producer of one topic."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer, self._topic = producer, topic
        producer.init_transactions(TIMEOUT_S)

    def commit(self, *records: Record) -> None:
        """A whole transaction of these records."""
        self.begin(*records)
        self.end(commit=True)

    def abort(self, *records: Record) -> None:
        """The same, that comes to nothing."""
        self.begin(*records)
        self.end(commit=False)

    def begin(self, *records: Record) -> None:
        """Begin a transaction; these records are in the log when it returns."""
        self._producer.begin_transaction()
        for record in records:
            self._producer.produce(self._topic, record.value, partition=record.partition)
        assert self._producer.flush(TIMEOUT_S) == 0

    def end(self, *, commit: bool) -> None:
        """End the transaction that is open."""
        (self._producer.commit_transaction if commit else self._producer.abort_transaction)(TIMEOUT_S)


def _record(message: Message) -> Record:
    return Record(
        value=message.value(),
        key=message.key(),
        partition=message.partition(),
        timestamp_ms=message.timestamp()[1],
        headers=tuple(message.headers() or ()),
        offset=message.offset(),
    )


def batches_on_disk(data_dir: Path, topic: str, partition: int = 0) -> list[BatchHeader]:
    """The headers of a partition's batches, from its log files."""
    logs = sorted((data_dir / f"{topic}-{partition}").glob("*.log"))
    return [header for log in logs for _, header in iter_batches(log.read_bytes())]
