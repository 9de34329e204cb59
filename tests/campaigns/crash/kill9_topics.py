"""Repeated kill -9 of the broker while topics are made, filled and deleted under consumers that subscribe to a pattern.

After each restart every topic whose creation was acknowledged is there, unless its deletion was asked for, and none whose
deletion was acknowledged. In the end

    a full read             of every topic, from the first offset on, has each acknowledged record where the answer has put it,
                            and otherwise only records whose answers the kills have taken
    pattern consumers       of each make have read the same, and nothing else of any topic

kafka-python 3.0 may overlook a topic that is made while it joins its group, until topics change again. One more topic is
therefore made for a consumer that lacks records for long: that is a reminder, and the summary counts them.

    python -m tests.campaigns.crash.kill9_topics --kills 20

Consumers of each make that subscribe to a pattern, in threads, and note every record they get.

They commit nothing, so that they begin at the first offset of each topic that they find.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import aiokafka
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.errors import KafkaError as KafkaPythonError

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.crash.support import read_log, rounds, run_with_kills, seeded, until_killed
from tests.raw_client import RawClient

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

    from tests.broker_process import BrokerProcess


Place = tuple[str, int, int]
REFRESH_MS = 200
POLL_MS = 100
RETRY_AFTER_S = 0.05
STOP_TIMEOUT_S = 2.0
JOIN_TIMEOUT_S = 30.0
# The broker may be killed before a consumer has found it, again and again, and each start takes its time on a busy machine.
BOOTSTRAP_TIMEOUT_MS = 120_000


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


# Configs of the consumers written in Python.
_IN_PYTHON = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "metadata_max_age_ms": REFRESH_MS,
    "fetch_max_wait_ms": 50,
    "retry_backoff_ms": 50,
}


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
            **_IN_PYTHON,
            bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
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
            **_IN_PYTHON,
        )


def _has_lost_its_group(consumer: aiokafka.AIOKafkaConsumer) -> bool:
    task = consumer._coordinator._coordination_task
    if not task.done() or task.cancelled():
        return False
    # Anything else is a finding.
    error = task.exception()
    return error is not None and "AssertionError" in str(error)


CONSUMERS = (ConfluentConsumer, KafkaPythonConsumer, AiokafkaConsumer)

PREFIX = "made-"
PATTERN = f"^{PREFIX}.*"
MOST_PARTITIONS, MOST_TOPICS = 3, 8
LONGEST_WAIT_FOR_KILL_S = 0.8
FULL_READ_TIMEOUT_S = 60.0
REMINDER_INTERVAL_S = 4.0
LOOK_INTERVAL_S = 0.05
ANSWER_TIMEOUT_MS = 5_000


class Work:
    """Makes, fills and deletes topics, and knows which answers it got.

    ``topics`` are those that must exist, with their numbers of partitions; ``doubtful`` is the one that may exist, since no
    answer came. ``acknowledged`` has the records of all topics there have been, ``sent`` every value that was ever sent.
    """

    def __init__(self, rng: random.Random) -> None:
        self.topics: dict[str, int] = {}
        self.doubtful: dict[str, int] = {}
        self.acknowledged: dict[Place, bytes] = {}
        self.sent: set[bytes] = set()
        self.made = self.deleted = self.reminders = 0
        self._rng = rng

    def step(self, client: RawClient) -> None:
        """One request."""
        drawn = self._rng.random()
        if not self.topics or (drawn < 0.06 and len(self.topics) < MOST_TOPICS):
            self._make(client)
        elif drawn < 0.1 and len(self.topics) > 1:
            self._delete(client)
        else:
            self._produce(client, self._rng.choice(sorted(self.topics)))

    def settle(self, seen: dict[str, int]) -> None:
        """Compare with the topics that are there after a restart, and adopt the doubtful one."""
        missing = {name: count for name, count in self.topics.items() if seen.get(name) != count}
        assert not missing, f"acknowledged and not there: {missing}; there are {seen}"
        risen = {name: count for name, count in seen.items() if name not in self.topics and self.doubtful.get(name) != count}
        assert not risen, f"there, and nobody has made them, or they were deleted: {risen}"
        self.topics = dict(seen)
        self.doubtful = {}

    def fill(self, client: RawClient) -> None:
        """A last record for each partition."""
        for name, count in self.topics.items():
            for partition in range(count):
                self._produce(client, name, partition)

    def remind(self, client: RawClient) -> None:
        """One more topic."""
        self._make(client)
        self.reminders += 1

    def must_be_read(self) -> dict[Place, bytes]:
        """The acknowledged records of the topics there are."""
        return {place: value for place, value in self.acknowledged.items() if place[0] in self.topics}

    def _make(self, client: RawClient) -> None:
        name, count = f"{PREFIX}{self.made}", self._rng.randint(1, MOST_PARTITIONS)
        self.made += 1
        self.doubtful = {name: count}
        topic = {"name": name, "num_partitions": count, "replication_factor": 1}
        (created,) = client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=ANSWER_TIMEOUT_MS).topics
        assert created.error_code == 0
        self.topics |= self.doubtful
        self.doubtful = {}

    def _delete(self, client: RawClient) -> None:
        name = self._rng.choice(sorted(self.topics))
        self.doubtful = {name: self.topics.pop(name)}
        (deleted,) = client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=ANSWER_TIMEOUT_MS).responses
        assert deleted.error_code == 0
        self.doubtful = {}
        self.deleted += 1

    def _produce(self, client: RawClient, name: str, partition: int | None = None) -> None:
        index = self._rng.randrange(self.topics[name]) if partition is None else partition
        value = b"%d of %s" % (len(self.sent), name.encode())
        self.sent.add(value)
        answer = client.produce(name, value, partition=index)
        assert answer.error_code == 0
        place = name, index, answer.base_offset
        assert place not in self.acknowledged, f"{place} is acknowledged twice"
        self.acknowledged[place] = value


def kill_under_topics(broker: BrokerProcess, rng: random.Random, kills: int) -> tuple[Work, list[PatternConsumer]]:
    """Run all kills on a running broker, then read everything; returns the work and the consumers when all checks have held."""
    work = Work(rng)
    with ExitStack() as stack:
        consumers = [stack.enter_context(make(broker.address, PATTERN)) for make in CONSUMERS]
        for _ in rounds(kills, lambda: len(work.acknowledged)):
            delay_s = rng.uniform(0.05, LONGEST_WAIT_FOR_KILL_S)
            with RawClient(broker.host, broker.port) as client:
                until_killed(broker, delay_s, lambda client=client: work.step(client))
            broker.start()
            with RawClient(broker.host, broker.port) as client:
                work.settle(_topics(client))
        with RawClient(broker.host, broker.port) as client:
            work.fill(client)
            read = _full_read(client, work)
        for consumer in consumers:
            _check_consumer(broker, consumer, work, read)
    return work, consumers


def _topics(client: RawClient) -> dict[str, int]:
    topics = client.call(ApiKey.METADATA, 12, topics=None).topics
    return {topic.name: len(topic.partitions) for topic in topics if topic.name.startswith(PREFIX)}


def _full_read(client: RawClient, work: Work) -> dict[Place, bytes]:
    read = {
        (name, partition, record.offset): record.value
        for name, count in work.topics.items()
        for partition in range(count)
        for record in read_log(client, name, partition)
    }
    must = work.must_be_read()
    lost = {place: value for place, value in must.items() if read.get(place) != value}
    assert not lost, f"acknowledged, and not read: {sorted(lost.items())[:4]}"
    others = {place: value for place, value in read.items() if place not in must}
    foreign = {place: value for place, value in others.items() if value not in _sent_to(work, place[0])}
    assert not foreign, f"read, and nobody sent it there: {sorted(foreign.items())[:4]}"
    assert len(set(read.values())) == len(read), "a record is there twice"
    return read


def _sent_to(work: Work, name: str) -> set[bytes]:
    return {value for value in work.sent if value.endswith(b" of " + name.encode())}


def _check_consumer(broker: BrokerProcess, consumer: PatternConsumer, work: Work, read: dict[Place, bytes]) -> None:
    """Wait until it has read all that there is; what it has read of deleted topics was sent to these."""
    deadline = time.monotonic() + FULL_READ_TIMEOUT_S
    reminder_at = time.monotonic() + REMINDER_INTERVAL_S
    while missing := read.keys() - consumer.seen.keys():
        if consumer.failure is not None:
            raise consumer.failure
        assert time.monotonic() < deadline, f"{consumer.make} does not read {len(missing)} records: {sorted(missing)[:4]}"
        if time.monotonic() >= reminder_at:
            with RawClient(broker.host, broker.port) as client:
                work.remind(client)
            reminder_at = time.monotonic() + REMINDER_INTERVAL_S
        time.sleep(LOOK_INTERVAL_S)
    assert not consumer.changed, f"{consumer.make} has read two values at one place: {consumer.changed}"
    known = work.acknowledged | read
    for place, value in consumer.seen.items():
        is_right = value == known[place] if place in known else value in _sent_to(work, place[0])
        assert is_right, f"{consumer.make} has read {value!r} at {place}, which is {known.get(place)!r}"


def summary(work: Work, consumers: list[PatternConsumer]) -> str:
    """What there was, and what each make has read."""
    told = ", ".join(f"{consumer.make} {len(consumer.seen)}" for consumer in consumers)
    return (
        f"{work.made} topics made, {work.deleted} deleted, {len(work.acknowledged)} records acknowledged, "
        f"{len(work.must_be_read())} of them in the {len(work.topics)} topics that remain; records read by pattern: {told}; "
        f"{work.reminders} reminders"
    )


def main() -> None:
    """Run it and report."""

    def run(broker: BrokerProcess, kills: int) -> str:
        return summary(*kill_under_topics(broker, seeded("topics"), kills))

    run_with_kills(__doc__, {}, run, "every acknowledged record is there, and read by all")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
