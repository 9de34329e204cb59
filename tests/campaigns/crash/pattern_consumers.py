"""Consumers of each make that subscribe to a pattern, in threads, and note every record they get.

They commit nothing, so that they begin at the first offset of each topic that they find.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import aiokafka
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.errors import KafkaError as KafkaPythonError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Place = tuple[str, int, int]
REFRESH_MS = 200
POLL_MS = 100
RETRY_AFTER_S = 0.05
STOP_TIMEOUT_S = 2.0
JOIN_TIMEOUT_S = 30.0


class PatternConsumer(ABC):
    """``seen`` has the value at each place, (topic, partition, offset); ``failure`` is what has ended the thread, if it has."""

    make: ClassVar[str]

    def __init__(self, address: str, pattern: str) -> None:
        self.seen: dict[Place, bytes] = {}
        # Places that were read twice with other values.
        self.changed: dict[Place, tuple[bytes, bytes]] = {}
        self.failure: BaseException | None = None
        self._address = address
        self._pattern = pattern
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.make, daemon=True)

    @abstractmethod
    def _consume(self) -> None:
        """Consume until ``_stopping`` is set."""

    def _note(self, records: Iterable[tuple[str, int, int, bytes]]) -> None:
        for topic, partition, offset, value in records:
            before = self.seen.setdefault((topic, partition, offset), value)
            if before != value:
                self.changed[topic, partition, offset] = before, value

    def _note_polled(self, found: Mapping[Any, Iterable[Any]]) -> None:
        """Note what kafka-python's poll or aiokafka's getmany has found."""
        self._note((each.topic, each.partition, each.offset, each.value) for records in found.values() for each in records)

    def _run(self) -> None:
        try:
            self._consume()
        except BaseException as error:  # noqa: BLE001  whatever it is, the run has to end of it
            self.failure = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(JOIN_TIMEOUT_S)


class ConfluentConsumer(PatternConsumer):
    make: ClassVar[str] = "librdkafka"

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": self.make,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": REFRESH_MS,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        consumer.subscribe([self._pattern])
        while not self._stopping.is_set():
            found = consumer.consume(500, POLL_MS / 1000)
            self._note((each.topic(), each.partition(), each.offset(), each.value()) for each in found if each.error() is None)
        consumer.close()


class KafkaPythonConsumer(PatternConsumer):
    make: ClassVar[str] = "kafka-python"

    def _consume(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            group_id=self.make,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=REFRESH_MS,
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
            metrics_enabled=False,
        )
        consumer.subscribe(pattern=self._pattern)
        while not self._stopping.is_set():
            try:
                found = consumer.poll(POLL_MS)
            except KafkaPythonError as error:
                if not error.retriable:
                    raise
                time.sleep(RETRY_AFTER_S)
                continue
            self._note_polled(found)
        consumer.close(autocommit=False)


class AiokafkaConsumer(PatternConsumer):
    """aiokafka 0.14 asserts that a subscription has not changed while it looked for the coordinator; a pattern's may have.

    Its task that looks after the group has ended then, and whoever waits for records is told so, or waits for ever. Another
    consumer goes on.
    """

    make: ClassVar[str] = "aiokafka"

    def _consume(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        while not self._stopping.is_set():
            consumer = await self._started()
            consumer.subscribe(pattern=self._pattern)
            await self._read(consumer)
            # If the broker goes at this moment, aiokafka waits for its own cancelled task.
            with suppress(asyncio.CancelledError, TimeoutError, AiokafkaError):
                await asyncio.wait_for(consumer.stop(), STOP_TIMEOUT_S)

    async def _read(self, consumer: aiokafka.AIOKafkaConsumer) -> None:
        """Read until the end, or until the group is looked after no more."""
        while not self._stopping.is_set():
            try:
                found = await consumer.getmany(timeout_ms=POLL_MS)
            except AiokafkaError as error:
                if _has_lost_its_group(consumer):
                    return
                if not error.retriable:
                    raise
                await asyncio.sleep(RETRY_AFTER_S)
                continue
            self._note_polled(found)
            if _has_lost_its_group(consumer):
                return

    async def _started(self) -> aiokafka.AIOKafkaConsumer:
        while True:
            consumer = self._new()
            try:
                await consumer.start()
            except AiokafkaError as error:
                # The broker is away.
                await consumer.stop()
                if not error.retriable or self._stopping.is_set():
                    raise
                await asyncio.sleep(RETRY_AFTER_S)
            else:
                return consumer

    def _new(self) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._address,
            group_id=self.make,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=REFRESH_MS,
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
        )


def _has_lost_its_group(consumer: aiokafka.AIOKafkaConsumer) -> bool:
    task = consumer._coordinator._coordination_task
    if not task.done() or task.cancelled():
        return False
    # Anything else is a finding.
    error = task.exception()
    return error is not None and "AssertionError" in str(error)


CONSUMERS = (ConfluentConsumer, KafkaPythonConsumer, AiokafkaConsumer)
