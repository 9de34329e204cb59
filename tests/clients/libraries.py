"""Client libraries behind one face, so that ``behaviour.py`` says once what each of them does: kafka-python and aiokafka.

Options of producers and consumers have names of their own here, which ``options`` of a library translates.
"""

import asyncio
import inspect
import time
from contextlib import ExitStack
from typing import Any, ClassVar, NamedTuple

import aiokafka
import kafka
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from tests.clients.conftest import CLIENT_TIMEOUT_S

BROKERS_TIME = 1
_IN_PYTHON = {
    "acks": ("acks",),
    "check_crcs": ("check_crcs",),
    "codec": ("compression_type",),
    "fetch_bytes": ("max_partition_fetch_bytes", "fetch_max_bytes"),
    "is_idempotent": ("enable_idempotence",),
    "isolation": ("isolation_level",),
    "linger_ms": ("linger_ms",),
    "metadata_ms": ("metadata_max_age_ms",),
    "request_bytes": ("max_request_size",),
    "wait_ms": ("fetch_max_wait_ms",),
}


class Record(NamedTuple):
    """A record as a consumer has it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int
    offset: int
    timestamp_ms: int
    has_brokers_time: bool


class Told(NamedTuple):
    """A record's metadata, as its producer is told."""

    partition: int
    offset: int
    timestamp_ms: int


class Refused(Exception):
    """The broker does not take a record, or does not commit; the library's name of the error."""


class Library:
    """A library's clients of one broker, which end with ``stack``."""

    options: ClassVar[dict[str, tuple[str, ...]]]
    too_large, invalid, fenced = "MessageSizeTooLargeError", "InvalidRecordError", "ProducerFencedError"
    # Records that only some libraries can write: key, value, headers.
    odd_records: ClassVar[list[tuple[Any, ...]]] = []
    # True if a consumer tells its position after a seek to the end, and the time of an offset.
    tells_its_place = True

    def __init__(self, address: str, stack: ExitStack) -> None:
        self.address = address
        self.stack = stack

    def named(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options under the library's names."""
        given = {key: None if (key, value) == ("codec", "none") else value for key, value in options.items()}
        return {name: value for key, value in given.items() for name in self.options.get(key, (key,))}


class Producer:
    """A producer: ``send`` gives something to ``wait`` for."""

    def produce(self, topic, *values, **fields) -> list[Told]:
        """Produce and wait."""
        return self.wait([self.send(topic, value, **fields) for value in values])


class _InPython(Library):
    """The two libraries in Python, which are alike: what one's functions return, the other's are to be waited for."""

    errors: ClassVar[type[Exception]]
    new_place: ClassVar[Any]

    def call(self, function, *arguments):
        return function(*arguments)

    def consumer(self, topic, partitions=(0,), **options):
        defaults = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100}
        consumer = self.started(self.new_consumer, **defaults | self.named(options))
        self.call(consumer.assign, [self.new_place(topic, partition) for partition in partitions])
        return _PythonConsumer(self, consumer, topic)

    def producer(self, **options):
        return _PythonProducer(self, self.started(self.new_producer, **self.named(options)))

    def transactional(self, name):
        """A producer that may begin a transaction."""
        return self.producer(transactional_id=name)

    def committed(self, group, topic):
        """The group's offset of partition 0, or None."""
        consumer = self.started(self.new_consumer, group_id=group, enable_auto_commit=False)
        return self.call(consumer.committed, self.new_place(topic, 0))


class KafkaPython(_InPython):
    """kafka-python."""

    options: ClassVar = _IN_PYTHON | {"batch_bytes": ("batch_size",)}
    errors, new_place = KafkaPythonError, kafka.TopicPartition
    new_consumer, new_producer = kafka.KafkaConsumer, kafka.KafkaProducer

    def started(self, make, **options):
        client = make(bootstrap_servers=self.address, **options)
        self.stack.callback(client.close)
        return client

    def transactional(self, name):
        producer = super().transactional(name)
        producer.client.init_transactions()
        return producer

    def place(self, offset):
        return OffsetAndMetadata(offset, "", -1)

    def sent(self, future):
        return future

    def told(self, sent):
        return [future.get(CLIENT_TIMEOUT_S) for future in sent]

    def taken(self, consumer, count):
        records = []
        deadline_s = time.monotonic() + CLIENT_TIMEOUT_S
        while len(records) < count:
            assert time.monotonic() < deadline_s, f"{len(records)} of {count} records"
            for batch in consumer.poll(500, max_records=count - len(records)).values():
                records += batch
        return records

    def polled(self, consumer, within_ms):
        return consumer.poll(within_ms)


class Aiokafka(_InPython):
    """aiokafka, on a loop that runs while something is asked of it."""

    options: ClassVar = _IN_PYTHON | {"batch_bytes": ("max_batch_size",)}
    # INVALID_RECORD came after it.
    invalid, fenced = "UnknownError", "ProducerFenced"
    errors, new_place = AiokafkaError, aiokafka.TopicPartition
    new_consumer, new_producer = aiokafka.AIOKafkaConsumer, aiokafka.AIOKafkaProducer

    def __init__(self, address, stack):
        super().__init__(address, stack)
        self._runner = stack.enter_context(asyncio.Runner())

    def run(self, answer):
        """Wait for it; TimeoutError."""

        async def within():
            async with asyncio.timeout(CLIENT_TIMEOUT_S):
                return await answer

        return self._runner.run(within())

    def call(self, function, *arguments):
        async def call():
            answer = function(*arguments)
            return await answer if inspect.isawaitable(answer) else answer

        return self.run(call())

    def started(self, make, **options):
        async def start():
            client = make(bootstrap_servers=self.address, **options)
            await client.start()
            return client

        client = self.run(start())
        self.stack.callback(lambda: self.run((client.close if hasattr(client, "close") else client.stop)()))
        return client

    def place(self, offset):
        return offset

    def sent(self, future):
        return self.run(future)

    def told(self, sent):
        async def wait():
            return [await future for future in sent]

        return self.run(wait())

    def taken(self, consumer, count):
        async def take():
            return [await consumer.getone() for _ in range(count)]

        return self.run(take())

    def polled(self, consumer, within_ms):
        return self.run(consumer.getmany(timeout_ms=within_ms))


class _PythonProducer(Producer):
    def __init__(self, library, client):
        self._library = library
        self.client = client

    def send(self, topic, value, key=None, headers=(), **fields):
        return self._library.sent(self.client.send(topic, value, key, headers=list(headers), **fields))

    def wait(self, sent):
        try:
            told = self._library.told(sent)
        except self._library.errors as error:
            raise Refused(type(error).__name__) from error
        # With acks=0 there is nothing to tell.
        return [Told(each.partition, each.offset, each.timestamp) for each in told if each is not None]

    def begin(self):
        self._library.call(self.client.begin_transaction)

    def send_offset(self, group, topic, offset):
        offsets = {self._library.new_place(topic, 0): self._library.place(offset)}
        self._library.call(self.client.send_offsets_to_transaction, offsets, group)

    def commit(self):
        try:
            self._library.call(self.client.commit_transaction)
        except self._library.errors as error:
            raise Refused(type(error).__name__) from error

    def abort(self):
        self._library.call(self.client.abort_transaction)


class _PythonConsumer:
    def __init__(self, library, client, topic):
        self._library = library
        self.client = client
        self._topic = topic

    def take(self, count):
        return [
            Record(
                *(each.key, each.value, list(each.headers), each.partition, each.offset, each.timestamp),
                has_brokers_time=each.timestamp_type == BROKERS_TIME,
            )
            for each in self._library.taken(self.client, count)
        ]

    def has_nothing(self, within_ms):
        return self._library.polled(self.client, within_ms) == {}

    def seek(self, offset):
        self._library.call(self.client.seek, self._place(0), offset)

    def seek_to_beginning(self):
        self._library.call(self.client.seek_to_beginning, self._place(0))

    def end_of_a_seek(self):
        self._library.call(self.client.seek_to_end, self._place(0))
        return self._library.call(self.client.position, self._place(0))

    def ends(self):
        place = self._place(0)
        return tuple(self._library.call(ask, [place])[place] for ask in (self.client.beginning_offsets, self.client.end_offsets))

    def found_at(self, partition, timestamp_ms):
        place = self._place(partition)
        found = self._library.call(self.client.offsets_for_times, {place: timestamp_ms})[place]
        return found and (found.offset, found.timestamp)

    def _place(self, partition):
        return self._library.new_place(self._topic, partition)
