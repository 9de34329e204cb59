"""Tracks the live brokers by their heartbeats (Kafka: BrokerHeartbeatManager and BrokerHeartbeatTracker).

All of it is in memory. A starting controller gives each unfenced broker a new session. A session belongs to an epoch of a broker,
and only heartbeats extend it. Another incarnation cannot register before it ends. The session of a broker with leave to shut down
ends at once; in Kafka's controller it expires.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf

from odradek.controller.metadata.image import MetadataImage
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.metadata_records import MetadataRecord
from odradek.protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from odradek.timing.clock import Clock

_NO_OFFSET = -1


class BrokerState(Enum):
    """The state of a broker. In controlled shutdown, it still leads partitions that no other broker can lead."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


@dataclass(slots=True)
class _Heartbeats:
    """A broker's progress: how far it follows the metadata, and from which offset others know of its shutdown."""

    is_fenced: bool = True
    metadata_offset: int = _NO_OFFSET
    controlled_shutdown_offset: int = _NO_OFFSET

    @property
    def is_shutting_down(self) -> bool:
        return self.controlled_shutdown_offset >= 0


class BrokerSessions:
    """The sessions of brokers: by id and epoch, the time of the last heartbeat."""

    def __init__(self, clock: Clock, timeout_ms: float) -> None:
        self._clock = clock
        self.timeout_ms = timeout_ms
        self._brokers: dict[int, _Heartbeats] = {}
        self._contacts_ms: dict[tuple[int, int], float] = {}

    def activate(self, image: MetadataImage) -> None:
        """Begin a session for each unfenced broker of ``image``. A fenced broker's session begins with its first heartbeat."""
        for broker in image.kept.brokers.values():
            self._register(broker.broker_id, is_fenced=broker.fenced)
            if not broker.fenced:
                self.contact(broker.broker_id, broker.broker_epoch)

    def contact(self, broker_id: int, broker_epoch: int) -> None:
        """Note a heartbeat."""
        self._contacts_ms[broker_id, broker_epoch] = self._clock.monotonic_ms()

    def is_valid(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the broker was heard from within the session timeout."""
        contact_ms = self._contacts_ms.get((broker_id, broker_epoch))
        return contact_ms is not None and contact_ms + self.timeout_ms >= self._clock.monotonic_ms()

    def take_expired(self) -> tuple[int, int] | None:
        """Remove and return (broker id, epoch) of an expired session, or None."""
        for key in self._contacts_ms:
            if not self.is_valid(*key):
                del self._contacts_ms[key]
                return key
        return None

    def next_end_in_ms(self) -> float:
        """Return the ms until the first session expires without news, at least 1. Kafka checks every quarter session."""
        oldest_ms = min(self._contacts_ms.values(), default=inf)
        return max(oldest_ms + self.timeout_ms - self._clock.monotonic_ms(), 0) + 1

    def end(self, broker_id: int) -> None:
        """Forget the contacts of a broker whose process has ended."""
        for key in [key for key in self._contacts_ms if key[0] == broker_id]:
            del self._contacts_ms[key]

    def usable(self) -> dict[int, bool]:
        """Return the brokers that are not about to shut down, and whether each of them is fenced."""
        return {broker_id: known.is_fenced for broker_id, known in self._brokers.items() if not known.is_shutting_down}

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int) -> None:
        """Note the content of a heartbeat."""
        known = self._brokers[broker_id]
        known.is_fenced = is_fenced
        known.metadata_offset = metadata_offset
        if is_fenced:
            known.controlled_shutdown_offset = _NO_OFFSET

    def shuts_down_at(self, broker_id: int, offset: int) -> None:
        """Note the offset from which others know that a broker shuts down. The first one counts."""
        known = self._brokers[broker_id]
        if not known.is_shutting_down:
            known.controlled_shutdown_offset = offset

    def states(
        self, request: BrokerHeartbeatRequest, registration_offset: int, is_leader: Callable[[], bool]
    ) -> tuple[BrokerState, BrokerState]:
        """Return the broker's state, and its state after ``request``. ``is_leader`` tells whether it leads a partition."""
        known = self._brokers[request.broker_id]
        if known.is_shutting_down:
            is_known = known.controlled_shutdown_offset <= self._lowest_active_offset()
            done = is_known and not is_leader()
            return BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW if done else BrokerState.CONTROLLED_SHUTDOWN
        if known.is_fenced:
            if request.want_shut_down:
                return BrokerState.FENCED, BrokerState.SHUTDOWN_NOW
            is_ready = not request.want_fence and request.current_metadata_offset >= registration_offset
            return BrokerState.FENCED, BrokerState.UNFENCED if is_ready else BrokerState.FENCED
        if request.want_shut_down:
            waits = not request.want_fence and is_leader()
            return BrokerState.UNFENCED, BrokerState.CONTROLLED_SHUTDOWN if waits else BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED, BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED

    def replayed(self, records: Iterable[MetadataRecord], image: MetadataImage) -> None:
        """Follow the registrations in ``records``, which are in the image."""
        for record in records:
            match record:
                case RegisterBrokerRecord():
                    self._brokers.pop(record.broker_id, None)
                    self._register(record.broker_id, is_fenced=record.fenced)
                case UnregisterBrokerRecord():
                    self._brokers.pop(record.broker_id, None)
                case BrokerRegistrationChangeRecord():
                    self._follow(record.broker_id, image)
                case FenceBrokerRecord() | UnfenceBrokerRecord():
                    self._follow(record.id, image)

    def _follow(self, broker_id: int, image: MetadataImage) -> None:
        broker = image.kept.brokers.get(broker_id)
        if broker is not None:
            self._register(broker_id, is_fenced=broker.fenced)

    def _register(self, broker_id: int, *, is_fenced: bool) -> None:
        known = self._brokers.get(broker_id)
        offset = _NO_OFFSET
        if known is None:
            self._brokers[broker_id] = _Heartbeats()
        elif known.is_fenced != is_fenced:
            offset = known.metadata_offset
        self.touch(broker_id, is_fenced=is_fenced, metadata_offset=offset)

    def _lowest_active_offset(self) -> float:
        """Return the lowest metadata offset of unfenced brokers that do not shut down; infinity without any."""
        active = (known for known in self._brokers.values() if not known.is_fenced and not known.is_shutting_down)
        return min((known.metadata_offset for known in active), default=float("inf"))
