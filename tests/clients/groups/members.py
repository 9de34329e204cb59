"""Members of consumer groups, one class a client library: each polls, processes and commits in a thread of its own.

What they do is the same: subscribe to one topic, tell the journal what they are assigned and what they process, and commit it,
so that a test may put any of them into any part. ``stall`` keeps a member from polling while its library's heartbeats go on.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import aiokafka.errors
import kafka.errors
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.clients.groups.journal import Journal

END_TIMEOUT_S = 20.0
COMMIT_TIMEOUT_MS = 5_000
RETRY_AFTER_S = 0.05
HEARTBEATS_A_SESSION = 10
MAX_HEARTBEAT_INTERVAL_MS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Membership:
    """What a member is told; its rebalance timeout is ``max_poll_interval_ms``, as with the Java client.

    ``commit`` is how: sync, async, auto (of the library's own accord) or none.
    """

    group_id: str
    topic: str
    assignor: str = "range"
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    max_poll_interval_ms: int = 30_000
    commit: str = "sync"

    @property
    def heartbeat_interval_ms(self) -> int:
        return min(MAX_HEARTBEAT_INTERVAL_MS, self.session_timeout_ms // HEARTBEATS_A_SESSION)


class Member(ABC):
    """A member; ``start`` it once, and ``stop`` it."""

    make: ClassVar[str]

    def __init__(self, name: str, address: str, membership: Membership, journal: Journal) -> None:
        self.name = name
        self.address = address
        self.membership = membership
        self.journal = journal
        self._held: set[int] = set()
        # Processed and not yet granted, by partition: the offset to commit.
        self._due: dict[int, int] = {}
        self._may_poll = threading.Event()
        self._may_poll.set()
        self._is_held = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{self.make} {name}", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def begin_to_stop(self) -> None:
        """Have the consumer closed, which leaves the group where the member is a dynamic one."""
        self._stopping.set()
        self._may_poll.set()

    def stop(self) -> None:
        """Have it closed, and wait for that."""
        self.begin_to_stop()
        self._thread.join(END_TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self.name} does not end; {self.journal}"

    def stall(self) -> None:
        """Poll no more until told to ``resume``."""
        self._may_poll.clear()

    def wait_until_held(self) -> None:
        """Until one that was told to stall is back from its last poll, all of which is processed and committed."""
        assert self._is_held.wait(END_TIMEOUT_S), f"{self.name} goes on polling; {self.journal}"

    def resume(self) -> None:
        self._may_poll.set()

    @abstractmethod
    def _consume(self) -> None:
        """Make the consumer, and poll, process and commit with it until ``_goes_on`` says otherwise."""

    def _run(self) -> None:
        failure: str | None = None
        try:
            while not self._consume_unless_away():
                self._stopping.wait(RETRY_AFTER_S)
        except BaseException as error:  # noqa: BLE001  whatever it is, the test is to see it
            failure = f"{type(error).__name__}: {error}"
        self.journal.note_ended(self.name, failure)

    def _consume_unless_away(self) -> bool:
        """Consume to the end; False where a consumer cannot be made at all, since the broker is away."""
        try:
            self._consume()
        except (kafka.errors.KafkaError, aiokafka.errors.KafkaError) as error:
            if not error.retriable:
                raise
            return self._stopping.is_set()
        return True

    def _goes_on(self) -> bool:
        if not self._may_poll.is_set():
            self._is_held.set()
            self._may_poll.wait()
            self._is_held.clear()
        return not self._stopping.is_set()

    def _assigned(self, member_id: str, generation: int, partitions: Iterable[int]) -> None:
        self._held |= set(partitions)
        self.journal.note_assigned(self.name, member_id, generation, self._held)

    def _revoked(self, partitions: Iterable[int]) -> None:
        self._held -= set(partitions)
        self._due = {partition: offset for partition, offset in self._due.items() if partition in self._held}
        self.journal.note_revoked(self.name, partitions)

    def _processed(self, partition: int, offsets: list[int]) -> None:
        self.journal.note_processed(self.name, partition, offsets)
        self._due[partition] = offsets[-1] + 1

    def _granted(self, offsets: dict[int, int]) -> None:
        self.journal.note_granted(self.name, offsets)
        self._due = {partition: offset for partition, offset in self._due.items() if offsets.get(partition, 0) < offset}


class KafkaPythonMember(Member):
    """kafka-python. It joins when it is polled, and its heartbeats are its own."""

    make = "kafka-python"
    ASSIGNORS: ClassVar[dict[str, type]] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def _consume(self) -> None:
        membership = self.membership
        consumer = KafkaConsumer(
            bootstrap_servers=self.address,
            client_id=self.name,
            group_id=membership.group_id,
            group_instance_id=membership.instance_id,
            partition_assignment_strategy=[self.ASSIGNORS[membership.assignor]],
            session_timeout_ms=membership.session_timeout_ms,
            heartbeat_interval_ms=membership.heartbeat_interval_ms,
            max_poll_interval_ms=membership.max_poll_interval_ms,
            enable_auto_commit=membership.commit == "auto",
            auto_commit_interval_ms=100,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
            reconnect_backoff_max_ms=200,
            metrics_enabled=False,
        )
        listener = _Listener(self, consumer)
        consumer.subscribe([membership.topic], listener=listener)
        # A leader that has no metadata yet joins twice, and where a poll ends between the answers to its second JoinGroup and
        # SyncGroup, kafka-python 3.0 forgets about that SyncGroup and never has an assignment.
        try:
            consumer.partitions_for_topic(membership.topic)
            while self._goes_on():
                for partition, records in self._poll(consumer).items():
                    self._processed(partition.partition, [record.offset for record in records])
                self._commit(consumer)
        finally:
            consumer.close(autocommit=membership.commit == "auto", timeout_ms=COMMIT_TIMEOUT_MS)

    def _poll(self, consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
        try:
            return consumer.poll(100, max_records=100)
        except kafka.errors.RetriableError:
            # The broker is away, and says so at once.
            self._stopping.wait(RETRY_AFTER_S)
            return {}

    def _commit(self, consumer: KafkaConsumer) -> None:
        due = dict(self._due)
        offsets = {TopicPartition(self.membership.topic, index): OffsetAndMetadata(at, "", -1) for index, at in due.items()}
        if not offsets:
            return
        if self.membership.commit == "sync":
            # Refused because the group rebalances, or lost with the broker: what is still ours then is committed next time.
            try:
                consumer.commit(offsets, timeout_ms=COMMIT_TIMEOUT_MS)
            except kafka.errors.FencedInstanceIdError:
                raise
            except kafka.errors.KafkaError:
                return
            self._granted(due)
        elif self.membership.commit == "async":
            consumer.commit_async(
                offsets, callback=lambda _, answer: None if isinstance(answer, Exception) else self._granted(due)
            )
            self._due = {}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, member: KafkaPythonMember, consumer: KafkaConsumer) -> None:
        self._member = member
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._member._revoked({partition.partition for partition in revoked})

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        metadata = self._consumer.group_metadata()
        self._member._assigned(metadata.member_id, metadata.generation_id, [partition.partition for partition in assigned])


class AiokafkaMember(Member):
    """aiokafka. It joins in a task of its own, polled or not; a stalled one is held in the listener besides."""

    make = "aiokafka"
    ASSIGNORS: ClassVar[dict[str, type]] = {
        "range": AiokafkaRange,
        "roundrobin": AiokafkaRoundRobin,
        "sticky": AiokafkaSticky,
    }

    def _consume(self) -> None:
        asyncio.run(self._consume_in_loop())

    async def _consume_in_loop(self) -> None:
        membership = self.membership
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.address,
            client_id=self.name,
            group_id=membership.group_id,
            group_instance_id=membership.instance_id,
            partition_assignment_strategy=[self.ASSIGNORS[membership.assignor]],
            session_timeout_ms=membership.session_timeout_ms,
            rebalance_timeout_ms=membership.max_poll_interval_ms,
            heartbeat_interval_ms=membership.heartbeat_interval_ms,
            max_poll_interval_ms=membership.max_poll_interval_ms,
            enable_auto_commit=membership.commit == "auto",
            auto_commit_interval_ms=100,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
        )
        consumer.subscribe([membership.topic], listener=_AsyncListener(self, consumer))
        try:
            await consumer.start()
            while await self._goes_on_in_loop():
                found = await consumer.getmany(timeout_ms=100, max_records=100)
                for partition, records in found.items():
                    self._processed(partition.partition, [record.offset for record in records])
                await self.commit(consumer)
        finally:
            # A broker that goes at this moment has aiokafka wait for a task of its own that is cancelled.
            with suppress(asyncio.CancelledError):
                await consumer.stop()

    async def _goes_on_in_loop(self) -> bool:
        return await asyncio.to_thread(self._goes_on)

    async def commit(self, consumer: AIOKafkaConsumer) -> None:
        """Commit what is due; aiokafka has no asynchronous commit but a task."""
        due = dict(self._due)
        if not due or self.membership.commit not in {"sync", "async"}:
            return
        offsets = {aiokafka.TopicPartition(self.membership.topic, partition): offset for partition, offset in due.items()}
        try:
            await asyncio.wait_for(consumer.commit(offsets), COMMIT_TIMEOUT_MS / 1000)
        except (aiokafka.errors.KafkaError, aiokafka.errors.IllegalStateError, TimeoutError):
            return
        self._granted(due)


class _AsyncListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, member: AiokafkaMember, consumer: AIOKafkaConsumer) -> None:
        self._member = member
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._member._goes_on_in_loop()
        if revoked:
            await self._member.commit(self._consumer)
        self._member._revoked({partition.partition for partition in revoked})

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        coordinator = self._consumer._coordinator
        self._member._assigned(coordinator.member_id, coordinator.generation, [partition.partition for partition in assigned])


class ConfluentMember(Member):
    """librdkafka. It heartbeats in a thread of its own, and its rebalances are served when it is polled."""

    make = "librdkafka"
    ASSIGNORS: ClassVar[dict[str, str]] = {
        "range": "range",
        "roundrobin": "roundrobin",
        "cooperative-sticky": "cooperative-sticky",
    }

    def _consume(self) -> None:
        membership = self.membership
        config = {
            "bootstrap.servers": self.address,
            "client.id": self.name,
            "group.id": membership.group_id,
            **self._protocol(),
            "max.poll.interval.ms": max(membership.max_poll_interval_ms, membership.session_timeout_ms),
            "enable.auto.commit": membership.commit == "auto",
            "auto.commit.interval.ms": 100,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.max.ms": 200,
            # Without it, librdkafka may wait 75 s for a coordinator that was killed (docs/compatibility.md).
            "enable.sparse.connections": False,
            "log_level": 0,
            "on_commit": self._committed,
        }
        if membership.instance_id is not None:
            config["group.instance.id"] = membership.instance_id
        consumer = Consumer(config)
        consumer.subscribe([membership.topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke)
        try:
            while self._goes_on():
                self._poll(consumer)
                self._commit(consumer)
        finally:
            consumer.close()

    def _protocol(self) -> dict[str, Any]:
        membership = self.membership
        return {
            "partition.assignment.strategy": self.ASSIGNORS[membership.assignor],
            "session.timeout.ms": membership.session_timeout_ms,
            "heartbeat.interval.ms": membership.heartbeat_interval_ms,
        }

    def _poll(self, consumer: Consumer) -> None:
        """Up to 100 messages."""
        timeout_s = 0.1
        for _ in range(100):
            message = consumer.poll(timeout_s)
            if message is None:
                return
            timeout_s = 0
            error = message.error()
            if error is None:
                self._processed(message.partition(), [message.offset()])
            elif error.code() in {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID}:
                raise KafkaException(error)

    def _commit(self, consumer: Consumer) -> None:
        due = dict(self._due)
        if not due or self.membership.commit not in {"sync", "async"}:
            return
        offsets = [ConfluentPartition(self.membership.topic, partition, offset) for partition, offset in due.items()]
        if self.membership.commit == "async":
            consumer.commit(offsets=offsets, asynchronous=True)
            self._due = {}
            return
        with suppress(KafkaException):
            committed = consumer.commit(offsets=offsets, asynchronous=False)
            self._granted({each.partition: each.offset for each in committed if each.error is None})

    def _committed(self, error: KafkaError | None, partitions: list[ConfluentPartition]) -> None:
        if error is None and self.membership.commit == "async":
            self._granted({each.partition: each.offset for each in partitions if each.error is None})

    def _on_assign(self, consumer: Consumer, partitions: list[ConfluentPartition]) -> None:
        # What librdkafka writes of a consumer's place in its group: "CGMDv2:" and the generation, to begin with.
        (generation,) = struct.unpack_from("<i", consumer.consumer_group_metadata(), len("CGMDv2:"))
        self._assigned(consumer.memberid(), generation, [each.partition for each in partitions])

    def _on_revoke(self, _: Consumer, partitions: list[ConfluentPartition]) -> None:
        self._revoked({each.partition for each in partitions})


class ConsumerProtocolMember(ConfluentMember):
    """librdkafka, with the consumer protocol (KIP-848). The broker has the times and the assignor; a generation is an epoch."""

    make = "librdkafka, consumer protocol"

    def _protocol(self) -> dict[str, Any]:
        return {"group.protocol": "consumer"}


MAKES: dict[str, type[Member]] = {each.make: each for each in (KafkaPythonMember, AiokafkaMember, ConfluentMember)}
# The makes of either protocol.
EVERY_MAKE: dict[str, type[Member]] = {**MAKES, ConsumerProtocolMember.make: ConsumerProtocolMember}
