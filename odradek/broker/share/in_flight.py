"""The state of records that a share group has in flight: ``RecordState``, ``InFlightState``, ``InFlightBatch``.

A record is fetched, and then acquired by one member at a time. The member accepts, releases or rejects it, or its acquisition
lock expires:

    AVAILABLE -> ACQUIRED -> ACKNOWLEDGED           accepted
                          -> AVAILABLE              released, or the lock has expired
                          -> ARCHIVED               rejected, a gap, or at the delivery count limit
                          -> ARCHIVING -> ARCHIVED  the same with a dead-letter queue (KIP-1191)

An ``InFlightState`` is a run of consecutive records in the same state. Kafka keeps one object for a whole batch or, once its
records differ, one for each record. Here a run is split where records begin to differ, so that a batch of a thousand records in
two states is two objects.

A change that must be written to the share coordinator first is a ``StateTransition``. It takes effect at once for everybody else,
except that released records cannot be acquired yet. If the write fails, it is rolled back.
"""

from bisect import bisect_right
from collections.abc import Mapping
from enum import IntEnum
from operator import attrgetter
from typing import Final, NamedTuple

from odradek.coordinator.share.batches import append_batch
from odradek.coordinator.share.state import StateBatch

NO_MEMBER: Final = ""


class RecordState(IntEnum):
    """A record's state, with its number in the records of the share coordinator."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Return whether the record is never delivered again."""
        return self in _TERMINAL


_TERMINAL: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
_PERMITTED: Final[Mapping[RecordState, frozenset[RecordState]]] = {
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
    RecordState.ACQUIRED: frozenset(RecordState) - {RecordState.ACQUIRED},
    RecordState.ACKNOWLEDGED: frozenset(),
    RecordState.ARCHIVING: frozenset({RecordState.ARCHIVED}),
    RecordState.ARCHIVED: frozenset(),
}


class DeadLetterCause(IntEnum):
    """Kafka's two reasons to write a record to the dead-letter queue."""

    CLIENT_REJECT = 0
    DELIVERY_COUNT_EXCEEDED = 1


class ShareLimits(NamedTuple):
    """The configs of a share group that decide on its records. They may change at any time.

    ``has_dead_letters`` tells whether the group has a dead-letter queue, ``may_renew`` whether members may renew their locks.
    """

    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2000
    record_lock_duration_ms: int = 30_000
    may_renew: bool = True
    has_dead_letters: bool = False

    def after_release(self, delivery_count: int) -> RecordState:
        """Return the state of a record that is released after so many deliveries."""
        if delivery_count < self.delivery_count_limit:
            return RecordState.AVAILABLE
        return RecordState.ARCHIVING if self.has_dead_letters else RecordState.ARCHIVED


class Undo(NamedTuple):
    """The state to go back to if a change cannot be written, and the reason for the dead-letter queue if it can."""

    state: RecordState
    member_id: str
    cause: DeadLetterCause | None


class InFlightState:
    """Consecutive records in one state. ``lock_deadline_ms`` counts while they are ACQUIRED, on the monotonic clock."""

    __slots__ = (
        "delivery_count",
        "first_offset",
        "last_offset",
        "lock_deadline_ms",
        "member_id",
        "state",
        "transition",
        "undo",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        lock_deadline_ms: float = 0.0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_deadline_ms = lock_deadline_ms
        self.transition: StateTransition | None = None
        self.undo: Undo | None = None

    def __repr__(self) -> str:
        member = f" {self.member_id}" if self.member_id else ""
        return f"{self.first_offset}-{self.last_offset} {self.state.name} {self.delivery_count}{member}"

    @property
    def is_available(self) -> bool:
        """Return whether the records can be acquired."""
        return self.state == RecordState.AVAILABLE and self.transition is None

    @property
    def is_locked(self) -> bool:
        """Return whether a member has the records, or has them again if a change in progress fails."""
        return self.state == RecordState.ACQUIRED or self.transition is not None

    @property
    def is_done(self) -> bool:
        """Return whether the records are done with, and the share coordinator knows it."""
        return self.transition is None and self.state.is_terminal

    @property
    def batch(self) -> StateBatch:
        """Return the records as the share coordinator stores them."""
        return StateBatch(self.first_offset, self.last_offset, int(self.state), self.delivery_count)

    def acquire(self, member_id: str, lock_deadline_ms: float) -> None:
        """Give the records to a member."""
        self.change(RecordState.ACQUIRED, member_id)
        self.delivery_count += 1
        self.lock_deadline_ms = lock_deadline_ms

    def change(self, state: RecordState, member_id: str = NO_MEMBER) -> None:
        """Change the state. Raises ValueError if it is not permitted."""
        if state not in _PERMITTED[self.state]:
            raise ValueError(f"{self!r} cannot become {state.name}")
        self.state = state
        self.member_id = member_id

    def is_like(self, other: "InFlightState") -> bool:
        """Return whether records that are not acquired are in the same state as others, and no change is in progress."""
        if self.transition is not None or other.transition is not None:
            return False
        return self.state == other.state and self.delivery_count == other.delivery_count

    def archive(self) -> None:
        """Archive the records: they are gone from the log, or not to be seen. A change in progress cannot undo this."""
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        if self.undo is not None:
            self.undo = Undo(RecordState.ARCHIVED, NO_MEMBER, None)

    def split(self, offset: int) -> "InFlightState":
        """Keep the records before ``offset``, and return the others. Both take part in a change in progress."""
        rest = InFlightState(offset, self.last_offset, self.state, self.delivery_count, self.member_id, self.lock_deadline_ms)
        self.last_offset = offset - 1
        if self.transition is not None:
            rest.undo = self.undo
            self.transition.add(rest)
        return rest


class StateTransition:
    """Changes that take effect together once the share coordinator has stored them, or not at all."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[InFlightState] = []

    @property
    def batches(self) -> list[StateBatch]:
        """Return the changed records, for the share coordinator. Neighbours in one state are one batch."""
        batches: list[StateBatch] = []
        for run in self.runs:
            append_batch(batches, run.batch)
        return batches

    @property
    def accepted_count(self) -> int:
        """Return the number of records that are being accepted."""
        return sum(run.last_offset - run.first_offset + 1 for run in self.runs if run.state is RecordState.ACKNOWLEDGED)

    def pieces(self, most_runs: int) -> "list[StateTransition]":
        """Return transitions with at most so many runs each, in place of this one."""
        if len(self.runs) <= most_runs:
            return [self]
        pieces = []
        for begin in range(0, len(self.runs), most_runs):
            piece = StateTransition()
            for run in self.runs[begin : begin + most_runs]:
                piece.add(run)
            pieces.append(piece)
        return pieces

    def begin(self, run: InFlightState, state: RecordState, cause: DeadLetterCause | None = None) -> None:
        """Change acquired records. No other change of them may be in progress."""
        run.undo = Undo(run.state, run.member_id, cause if state == RecordState.ARCHIVING else None)
        run.change(state)
        self.add(run)

    def add(self, run: InFlightState) -> None:
        """Add a run that has been changed."""
        run.transition = self
        self.runs.append(run)


_first_offset: Final = attrgetter("first_offset")


class InFlightBatch:
    """Records that were acquired together for the first time, as runs in the order of their offsets.

    ``is_split`` tells whether the records have been told apart since. Kafka then looks at each of them on its own.
    """

    __slots__ = ("first_offset", "is_split", "last_offset", "runs")

    def __init__(self, runs: list[InFlightState], is_split: bool = False) -> None:
        # The batch keeps its offsets, whatever becomes of the runs.
        self.first_offset = runs[0].first_offset
        self.last_offset = runs[-1].last_offset
        self.runs = runs
        self.is_split = is_split

    def __repr__(self) -> str:
        return repr(self.runs)

    def run_at(self, offset: int) -> InFlightState:
        """Return the run with this offset; the nearest one if the batch ends before it, or begins behind it."""
        return self.runs[max(bisect_right(self.runs, offset, key=_first_offset) - 1, 0)]

    def runs_at(self, first_offset: int, last_offset: int) -> list[InFlightState]:
        """Return the runs with one of these offsets, also those that begin before or end behind them."""
        runs = self.runs
        begin = max(bisect_right(runs, first_offset, key=_first_offset) - 1, 0)
        return runs[begin : bisect_right(runs, last_offset, key=_first_offset)]

    def between(self, first_offset: int, last_offset: int) -> list[InFlightState]:
        """Return the runs of these offsets, split so that they have no others."""
        begin = self._boundary(first_offset)
        return self.runs[begin : self._boundary(last_offset + 1)]

    def join(self, offset: int) -> None:
        """Make one run of the run with this offset and its neighbours, if they are alike. Their records are not acquired."""
        runs = self.runs
        index = max(bisect_right(runs, offset, key=_first_offset) - 1, 0)
        for left in (index, index - 1):
            if 0 <= left < len(runs) - 1 and runs[left].is_like(runs[left + 1]):
                runs[left].last_offset = runs[left + 1].last_offset
                del runs[left + 1]

    def _boundary(self, offset: int) -> int:
        """Return the index of the run that begins at ``offset``, split off if need be, or of the first one behind it."""
        runs = self.runs
        index = bisect_right(runs, offset, key=_first_offset) - 1
        if index < 0 or runs[index].first_offset == offset:
            return max(index, 0)
        if offset <= runs[index].last_offset:
            runs.insert(index + 1, runs[index].split(offset))
            self.is_split = True
        return index + 1

    def split(self, run: InFlightState, offset: int) -> InFlightState:
        """Split a run of this batch, and return the part from ``offset`` on."""
        rest = run.split(offset)
        self.runs.insert(self.runs.index(run) + 1, rest)
        self.is_split = True
        return rest
