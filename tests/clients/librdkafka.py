"""librdkafka, by way of confluent-kafka, behind the face of ``libraries.py``."""

import time
from typing import Any, ClassVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaException,
    TopicPartition,
)
from confluent_kafka import Producer as ConfluentProducer

from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.libraries import Library, Producer, Record, Refused, Told


class Librdkafka(Library):
    """Its clients."""

    options: ClassVar = {
        "acks": ("acks",),
        "batch_bytes": ("batch.size",),
        "check_crcs": ("check.crcs",),
        "codec": ("compression.type",),
        "fetch_bytes": ("fetch.message.max.bytes", "fetch.max.bytes", "message.max.bytes"),
        "is_idempotent": ("enable.idempotence",),
        "isolation": ("isolation.level",),
        "linger_ms": ("linger.ms",),
        "metadata_ms": ("topic.metadata.refresh.interval.ms",),
        "request_bytes": ("message.max.bytes",),
        "wait_ms": ("fetch.wait.max.ms",),
    }
    too_large, invalid, fenced = "MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "_FENCED, fatal"
    odd_records: ClassVar = [(b"null", b"", [("null", None)]), (None, None, [])]
    tells_its_place = False

    def named(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: value for key, value in options.items() for name in self.options.get(key, (key,))}

    def producer(self, **options):
        config = {"bootstrap.servers": self.address, "linger.ms": 0}
        return LibrdkafkaProducer(ConfluentProducer(config | self.named(options)), self.address)

    def transactional(self, name):
        """A producer that may begin a transaction."""
        producer = self.producer(**{"transactional.id": name})
        producer.client.init_transactions(CLIENT_TIMEOUT_S)
        return producer

    def committed(self, group, topic):
        """The group's offset of partition 0, or None."""
        consumer = self.consumer(topic, **{"group.id": group}).client
        [place] = consumer.committed([TopicPartition(topic, 0)], CLIENT_TIMEOUT_S)
        return None if place.offset == OFFSET_INVALID else place.offset

    def consumer(self, topic, partitions=(0,), **options):
        # A group id must be named, and is not used.
        defaults = {
            "group.id": "not-used",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer({"bootstrap.servers": self.address, **defaults, **self.named(options)})
        self.stack.callback(consumer.close)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        return LibrdkafkaConsumer(consumer, topic)


class LibrdkafkaProducer(Producer):
    def __init__(self, client, address):
        self.client = client
        self._address = address

    def send(self, topic, value, key=None, headers=(), timestamp_ms=0, **fields):
        delivered = []
        heard = lambda error, message: delivered.append((error, message))  # noqa: E731
        self.client.produce(topic, value, key, headers=list(headers), timestamp=timestamp_ms, on_delivery=heard, **fields)
        return delivered

    def wait(self, sent):
        assert self.client.flush(CLIENT_TIMEOUT_S) == 0
        delivered = [each for [each] in sent]
        for error, _ in delivered:
            if error:
                raise Refused(error.name())
        return [Told(message.partition(), message.offset(), message.timestamp()[1]) for _, message in delivered]

    def begin(self):
        self.client.begin_transaction()

    def send_offset(self, group, topic, offset):
        consumer = Consumer({"bootstrap.servers": self._address, "group.id": group})
        metadata = consumer.consumer_group_metadata()
        self.client.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], metadata, CLIENT_TIMEOUT_S)
        consumer.close()

    def commit(self):
        try:
            self.client.commit_transaction(CLIENT_TIMEOUT_S)
        except KafkaException as failed:
            error = failed.args[0]
            raise Refused(f"{error.name()}{', fatal' * error.fatal()}") from failed

    def abort(self):
        self.client.abort_transaction(CLIENT_TIMEOUT_S)


class LibrdkafkaConsumer:
    def __init__(self, client, topic):
        self.client = client
        self._topic = topic

    def take(self, count):
        records = []
        deadline_s = time.monotonic() + CLIENT_TIMEOUT_S
        while len(records) < count:
            assert time.monotonic() < deadline_s, f"{len(records)} of {count} records"
            message = self.client.poll(0.5)
            if message is not None:
                assert message.error() is None, message.error()
                kind, timestamp_ms = message.timestamp()
                # An empty list of headers is None.
                content = message.key(), message.value(), message.headers() or []
                is_stamped = kind == TIMESTAMP_LOG_APPEND_TIME
                records.append(Record(*content, message.partition(), message.offset(), timestamp_ms, is_stamped))
        return records

    def has_nothing(self, within_ms):
        return self.client.poll(within_ms / 1000) is None

    def seek(self, offset):
        # A consumer that has fetched nothing yet can be assigned anew only.
        has_fetched = self.client.position([self._place(0)])[0].offset >= 0
        if has_fetched:
            self.client.seek(self._place(0, offset))
        else:
            self.client.assign([self._place(0, offset)])

    def seek_to_beginning(self):
        self.client.seek(self._place(0, OFFSET_BEGINNING))

    def ends(self):
        return self.client.get_watermark_offsets(self._place(0), CLIENT_TIMEOUT_S)

    def found_at(self, partition, timestamp_ms):
        [found] = self.client.offsets_for_times([self._place(partition, timestamp_ms)], CLIENT_TIMEOUT_S)
        assert found.error is None
        # It does not tell the time. OFFSET_END is its answer where there is no such record.
        return None if found.offset == OFFSET_END else (found.offset, None)

    def _place(self, partition, offset=OFFSET_INVALID):
        return TopicPartition(self._topic, partition, offset)
