"""Which brokers live, by their heartbeats (Kafka: BrokerHeartbeatManager and BrokerHeartbeatTracker).

All of it is memory. A controller that starts gives each unfenced broker a new session. A session belongs to an epoch of a
broker, and is kept up by heartbeats alone. No other incarnation registers before it is over. That of a broker which has leave to
shut down ends at once; with Kafka's controller it ends by time.
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
    """What a broker may do. A broker in controlled shutdown still leads what nobody else can."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


@dataclass(slots=True)
class _Heartbeats:
    """``metadata_offset``: how far the broker has followed. At the other offset all know that it shuts down."""

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
        """Give each broker of ``image`` a session that begins now; a fenced one when it is heard of."""
        for broker in image.kept.brokers.values():
            self._register(broker.broker_id, is_fenced=broker.fenced)
            if not broker.fenced:
                self.contact(broker.broker_id, broker.broker_epoch)

    def contact(self, broker_id: int, broker_epoch: int) -> None:
        """A heartbeat has come."""
        self._contacts_ms[broker_id, broker_epoch] = self._clock.monotonic_ms()

    def is_valid(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the broker has been heard of within the session's time."""
        contact_ms = self._contacts_ms.get((broker_id, broker_epoch))
        return contact_ms is not None and contact_ms + self.timeout_ms >= self._clock.monotonic_ms()

    def take_expired(self) -> tuple[int, int] | None:
        """(broker id, epoch) of a session that is over, which is forgotten."""
        for key in self._contacts_ms:
            if not self.is_valid(*key):
                del self._contacts_ms[key]
                return key
        return None

    def next_end_in_ms(self) -> float:
        """When the first session is over if nothing more is heard, at least 1. Kafka looks each quarter of a session's time."""
        oldest_ms = min(self._contacts_ms.values(), default=inf)
        return max(oldest_ms + self.timeout_ms - self._clock.monotonic_ms(), 0) + 1

    def end(self, broker_id: int) -> None:
        """Forget when a broker was heard of: its process has ended."""
        for key in [key for key in self._contacts_ms if key[0] == broker_id]:
            del self._contacts_ms[key]

    def usable(self) -> dict[int, bool]:
        """Return the brokers that are not about to shut down, and whether each of them is fenced."""
        return {broker_id: known.is_fenced for broker_id, known in self._brokers.items() if not known.is_shutting_down}

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int) -> None:
        """Note what a heartbeat tells."""
        known = self._brokers[broker_id]
        known.is_fenced = is_fenced
        known.metadata_offset = metadata_offset
        if is_fenced:
            known.controlled_shutdown_offset = _NO_OFFSET

    def shuts_down_at(self, broker_id: int, offset: int) -> None:
        """From ``offset`` on others know that a broker shuts down; the first such offset counts."""
        known = self._brokers[broker_id]
        if not known.is_shutting_down:
            known.controlled_shutdown_offset = offset

    def states(
        self, request: BrokerHeartbeatRequest, registration_offset: int, is_leader: Callable[[], bool]
    ) -> tuple[BrokerState, BrokerState]:
        """What the broker is, and what ``request`` makes of it; ``is_leader``: it leads a partition."""
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
        """``records`` are in the image: follow the registrations."""
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
        """The lowest metadata offset among unfenced brokers that do not shut down; infinity if there are none."""
        active = (known for known in self._brokers.values() if not known.is_fenced and not known.is_shutting_down)
        return min((known.metadata_offset for known in active), default=float("inf"))
