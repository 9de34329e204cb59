"""Readers of the books: read_committed consumers of each make that begin at given offsets."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import aiokafka
import aiokafka.errors
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError as KafkaPythonError

from tests.campaigns.soak.bank import BOOKS, Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Without a line that is new.
READ_TIMEOUT_S = 90.0
LINES_A_POLL = 5_000
STOP_TIMEOUT_S = 2.0
RETRY_AFTER_S = 0.05


@dataclass(frozen=True, slots=True)
class Line:
    """A record of the books."""

    partition: Partition
    offset: int
    value: bytes


class Reader(ABC):
    """Reads the books once; closed at the end of its ``with``."""

    def read_until(self, ends: Mapping[Partition, int]) -> Iterator[Line]:
        """New lines, at least up to ``ends``. Raises AssertionError if these are not reached, and nothing is read for long."""
        deadline = time.monotonic() + READ_TIMEOUT_S
        while True:
            if lines := self._poll():
                yield from lines
                deadline = time.monotonic() + READ_TIMEOUT_S
            behind = {partition: (at, ends[partition]) for partition, at in self._positions().items() if at < ends[partition]}
            if not behind:
                return
            assert time.monotonic() < deadline, f"{type(self).__name__} does not get on; it is at (position, end): {behind}"

    @abstractmethod
    def _poll(self) -> list[Line]:
        """The lines that arrive within a moment."""

    @abstractmethod
    def _positions(self) -> dict[Partition, int]:
        """The next offset of each partition."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ConfluentReader(Reader):
    def __init__(self, address: str, begin: Mapping[Partition, int]) -> None:
        self._at = dict(begin)
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "auditor",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([ConfluentPartition(*partition, offset) for partition, offset in begin.items()])

    def _poll(self) -> list[Line]:
        lines = []
        for message in self._consumer.consume(LINES_A_POLL, 0.1):
            partition = (message.topic(), message.partition())
            error = message.error()
            if error is None:
                lines.append(Line(partition, message.offset(), message.value()))
                self._at[partition] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._at[partition] = message.offset()
        return lines

    def _positions(self) -> dict[Partition, int]:
        return self._at

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonReader(Reader):
    def __init__(self, address: str, begin: Mapping[Partition, int]) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=address,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            metrics_enabled=False,
        )
        self._consumer.assign([TopicPartition(*partition) for partition in begin])
        for partition, offset in begin.items():
            self._consumer.seek(TopicPartition(*partition), offset)

    def _poll(self) -> list[Line]:
        try:
            found = self._consumer.poll(100, max_records=LINES_A_POLL)
        except KafkaPythonError as error:
            if not error.retriable:
                raise
            time.sleep(RETRY_AFTER_S)
            return []
        return [
            Line((record.topic, record.partition), record.offset, record.value)
            for records in found.values()
            for record in records
        ]

    def _positions(self) -> dict[Partition, int]:
        try:
            return {partition: self._consumer.position(TopicPartition(*partition), timeout_ms=1000) or 0 for partition in BOOKS}
        except KafkaPythonError as error:
            if not error.retriable:
                raise
            return dict.fromkeys(BOOKS, -1)

    def close(self) -> None:
        self._consumer.close()


class AiokafkaReader(Reader):
    def __init__(self, address: str, begin: Mapping[Partition, int]) -> None:
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._start(address, begin))
        except aiokafka.errors.KafkaError:
            self.close()
            raise

    async def _start(self, address: str, begin: Mapping[Partition, int]) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
        )
        self._consumer.assign([aiokafka.TopicPartition(*partition) for partition in begin])
        await self._consumer.start()
        for partition, offset in begin.items():
            self._consumer.seek(aiokafka.TopicPartition(*partition), offset)

    def _poll(self) -> list[Line]:
        found = self._runner.run(self._consumer.getmany(timeout_ms=100, max_records=LINES_A_POLL))
        return [
            Line((record.topic, record.partition), record.offset, record.value)
            for records in found.values()
            for record in records
        ]

    def _positions(self) -> dict[Partition, int]:
        return self._runner.run(self._ask_positions())

    async def _ask_positions(self) -> dict[Partition, int]:
        return {partition: await self._consumer.position(aiokafka.TopicPartition(*partition)) for partition in BOOKS}

    def close(self) -> None:
        # If the broker goes at this moment, aiokafka waits for its own cancelled task.
        with suppress(asyncio.CancelledError, TimeoutError, aiokafka.errors.KafkaError):
            self._runner.run(asyncio.wait_for(self._consumer.stop(), STOP_TIMEOUT_S))
        self._runner.close()


READERS = {"librdkafka": ConfluentReader, "kafka-python": KafkaPythonReader, "aiokafka": AiokafkaReader}


def open_reader(make: str, address: str, begin: Mapping[Partition, int]) -> Reader:
    """A reader from these offsets on; if the broker is away, as soon as it is back."""
    deadline = time.monotonic() + READ_TIMEOUT_S
    while True:
        try:
            return READERS[make](address, begin)
        except (KafkaPythonError, aiokafka.errors.KafkaError) as error:
            if not error.retriable or time.monotonic() >= deadline:
                raise
        time.sleep(RETRY_AFTER_S)
