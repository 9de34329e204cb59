"""Members of consumer groups, each in a thread: they poll, commit what they polled, and leave on request.

Three libraries: librdkafka (cooperative rebalances, static members, the consumer protocol of KIP-848), kafka-python (which can
pause a partition) and aiokafka (whose member here joins and leaves).
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer
from kafka import KafkaConsumer, TopicPartition

_POLL_S = 0.2
_COMMIT_S = 0.5
_END_TIMEOUT_S = 30.0
_SESSION_TIMEOUT_MS = 30_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Membership:
    """A member's client id and group. With an ``instance_id`` it is a static member.

    A member of a group of the consumer protocol may be ``slow_s`` to give up a partition, and fail at each record of partition
    ``poisoned``.
    """

    group: str
    topics: tuple[str, ...]
    client_id: str
    assignor: str = "range"
    instance_id: str | None = None
    slow_s: float = 0.0
    poisoned: int | None = None


class Member(ABC):
    """A member. It joins when it is constructed."""

    def __init__(self, address: str, membership: Membership) -> None:
        self.address, self.membership = address, membership
        self._is_told_to_leave = threading.Event()
        self._thread = threading.Thread(target=self._live, name=membership.client_id, daemon=True)
        self._thread.start()

    def tell_to_leave(self) -> None:
        """Ask the member to leave, without waiting."""
        self._is_told_to_leave.set()

    def leave(self) -> None:
        """Make the member leave, and wait for its end. A static member ends without LeaveGroup."""
        self.tell_to_leave()
        self._thread.join(_END_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.membership.client_id} did not leave {self.membership.group}")

    @abstractmethod
    def _live(self) -> None:
        """Poll and commit until told to leave."""


def leave_together(members: Iterable[Member]) -> None:
    """Make all members leave at once, as when a deployment is taken down."""
    members = tuple(members)
    for member in members:
        member.tell_to_leave()
    for member in members:
        member.leave()


class LibrdkafkaMember(Member):
    """confluent-kafka."""

    def _live(self) -> None:
        member = self.membership
        settings = {
            "bootstrap.servers": self.address,
            "group.id": member.group,
            "client.id": member.client_id,
            "partition.assignment.strategy": member.assignor,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": int(_COMMIT_S * 1000),
            "session.timeout.ms": _SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": 500,
            "log_level": 0,
        }
        if member.instance_id is not None:
            settings["group.instance.id"] = member.instance_id
        consumer = Consumer(settings)
        consumer.subscribe(list(member.topics))
        try:
            while not self._is_told_to_leave.is_set():
                consumer.poll(_POLL_S)
        finally:
            consumer.close()


class ConsumerProtocolMember(Member):
    """confluent-kafka, in a group whose coordinator assigns the partitions (KIP-848)."""

    def _live(self) -> None:
        member = self.membership
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": member.group,
                "group.protocol": "consumer",
                "client.id": member.client_id,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": int(_COMMIT_S * 1000),
                # What is processed is stored by hand, and committed in the background.
                "enable.auto.offset.store": False,
                "log_level": 0,
            }
        )
        # Until this returns the member keeps its partitions. A member that ends is in a hurry.
        consumer.subscribe(list(member.topics), on_revoke=lambda *_: self._is_told_to_leave.wait(member.slow_s))
        try:
            while not self._is_told_to_leave.is_set():
                message = consumer.poll(_POLL_S)
                if message is not None and message.error() is None and message.partition() != member.poisoned:
                    consumer.store_offsets(message)
        finally:
            consumer.close()


class KafkaPythonMember(Member):
    """kafka-python. After ``stick`` it no longer polls one partition, but heartbeats and polls the others."""

    def __init__(self, address: str, membership: Membership) -> None:
        self._to_stick: TopicPartition | None = None
        super().__init__(address, membership)

    def stick(self, topic: str, partition: int) -> None:
        """Behave from now on as if the thread for this partition hung."""
        self._to_stick = TopicPartition(topic, partition)

    def _live(self) -> None:
        member = self.membership
        consumer = KafkaConsumer(
            *member.topics,
            bootstrap_servers=self.address,
            group_id=member.group,
            client_id=member.client_id,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=int(_COMMIT_S * 1000),
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=500,
        )
        try:
            while not self._is_told_to_leave.is_set():
                if self._to_stick in consumer.assignment():
                    consumer.pause(self._to_stick)
                consumer.poll(timeout_ms=int(_POLL_S * 1000))
        finally:
            consumer.close()


class AiokafkaMember(Member):
    """aiokafka."""

    def _live(self) -> None:
        asyncio.run(self._live_on_a_loop())

    async def _live_on_a_loop(self) -> None:
        member = self.membership
        consumer = AIOKafkaConsumer(
            *member.topics,
            bootstrap_servers=self.address,
            group_id=member.group,
            client_id=member.client_id,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=int(_COMMIT_S * 1000),
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=500,
        )
        await consumer.start()
        try:
            while not self._is_told_to_leave.is_set():
                await consumer.getmany(timeout_ms=int(_POLL_S * 1000))
        finally:
            await consumer.stop()
