"""Ending the delivery of acquired records: a member acknowledges or leaves, or the acquisition lock expires.

``acknowledge`` and ``release`` begin a StateTransition, which ``commit`` or ``roll_back`` ends. A lock that expires cannot wait
for the share coordinator: ``expire`` changes the window at once.

Records are found anew after each pause of ``acknowledge``, since the window may have changed. A transition is safe meanwhile:
for everybody else, its records are being written.

Pure. Kafka's methods are SharePartition.acknowledge, releaseAcquiredRecords and the handler of AcquisitionLockTimerTask.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from itertools import groupby
from typing import Final, NamedTuple, Protocol

from odradek.broker.share.in_flight import (
    NO_MEMBER,
    DeadLetterCause,
    InFlightBatch,
    InFlightState,
    RecordState,
    ShareLimits,
    StateTransition,
)
from odradek.broker.share.in_flight_window import InFlightWindow
from odradek.coordinator.share.batches import append_batch
from odradek.coordinator.share.state import StateBatch
from odradek.protocol.errors import ErrorCode, KafkaError


class AcknowledgeType(IntEnum):
    """A member's word on a record. GAP is an offset without a record: a client sends it for markers and compacted records."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcknowledgementBatch(Protocol):
    """The acknowledgement of some offsets, in a ShareFetch or a ShareAcknowledge: one type for all, or one for each."""

    @property
    def first_offset(self) -> int:
        """The first offset."""

    @property
    def last_offset(self) -> int:
        """The last offset."""

    @property
    def acknowledge_types(self) -> Sequence[int]:
        """The types."""


class DeadLetters(NamedTuple):
    """Records in the state ARCHIVING, to be written to the dead-letter queue. Their run may be split before that."""

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause

    @classmethod
    def of_run(cls, run: InFlightState, cause: DeadLetterCause) -> "DeadLetters":
        """Return the dead letters of a run."""
        return cls(run.first_offset, run.last_offset, run.delivery_count, cause)


def acknowledge(
    window: InFlightWindow,
    transition: StateTransition,
    member_id: str,
    batches: Iterable[AcknowledgementBatch],
    limits: ShareLimits,
    lock_deadline_ms: float,
    most_runs: int,
) -> Generator[None, None, None]:
    """Acknowledge records of a member, as a part of ``transition``. Pause after ``most_runs`` runs of them.

    ``lock_deadline_ms`` is for locks that are renewed. KafkaError: INVALID_RECORD_STATE if the member does not have one of the
    records, INVALID_REQUEST for offsets behind the window. The caller then rolls the transition back; renewed locks stay.
    """
    step = _Acknowledgement(window, transition, member_id, limits, lock_deadline_ms)
    left = most_runs
    for asked in batches:
        for batch, first_offset, last_offset, kind in step.parts(asked):
            offset = first_offset
            while offset <= last_offset:
                runs = batch.between(offset, last_offset)[:most_runs]
                for run in runs:
                    step.acknowledge(run, kind)
                offset = runs[-1].last_offset + 1
                left -= len(runs)
                if left <= 0:
                    left = most_runs
                    yield


class HeldRecords(NamedTuple):
    """Records that a member has acquired, and their present lock: with another one, they have been acquired anew."""

    run: InFlightState
    member_id: str
    lock_deadline_ms: float

    @property
    def are_still_held(self) -> bool:
        """Return whether the member still has the records by this lock, and no change of them is in progress."""
        run = self.run
        return run.transition is None and run.member_id == self.member_id and run.lock_deadline_ms == self.lock_deadline_ms


def held_by(window: InFlightWindow, member_id: str) -> list[HeldRecords]:
    """Return the records of a member."""
    return [HeldRecords(run, member_id, run.lock_deadline_ms) for run in window.runs() if run.member_id == member_id]


def release(window: InFlightWindow, held: Iterable[HeldRecords], limits: ShareLimits) -> StateTransition:
    """Release records of a member that has left, as far as it still has them."""
    transition = StateTransition()
    for run in _acquired(window, (each.run for each in held if each.are_still_held)):
        _change(window, transition, run, _state_after_release(window, run, limits))
    return transition


class Expired(NamedTuple):
    """The records whose locks have expired, and the dead letters among them."""

    batches: list[StateBatch]
    letters: list[DeadLetters]


def expire(window: InFlightWindow, now_ms: float, limits: ShareLimits, most_runs: int) -> Expired:
    """Release records whose acquisition lock has expired, at most ``most_runs`` runs of them."""
    expired = Expired([], [])
    locks = window.locks
    while locks and locks[0].deadline_ms <= now_ms and most_runs > 0:
        lock = heappop(locks)
        for run in _acquired(window, window.runs_at(lock.first_offset, lock.last_offset)):
            if run.lock_deadline_ms > now_ms:
                continue
            if not most_runs:
                heappush(locks, lock._replace(first_offset=run.first_offset))
                break
            most_runs -= 1
            _expire_run(window, run, limits, expired)
    return expired


def _expire_run(window: InFlightWindow, run: InFlightState, limits: ShareLimits, expired: Expired) -> None:
    run.change(_state_after_release(window, run, limits))
    window.count_complete(run)
    if run.state == RecordState.AVAILABLE:
        window.note_available(run.first_offset)
    elif run.state == RecordState.ARCHIVING:
        expired.letters.append(DeadLetters.of_run(run, DeadLetterCause.DELIVERY_COUNT_EXCEEDED))
    append_batch(expired.batches, run.batch)


def commit(window: InFlightWindow, transition: StateTransition) -> list[DeadLetters]:
    """End a transition that is stored. Return the dead letters among the records."""
    letters = []
    for run in transition.runs:
        undo = run.undo
        run.transition = run.undo = None
        if run.state == RecordState.ARCHIVING:
            if undo is not None and undo.cause is not None:
                letters.append(DeadLetters.of_run(run, undo.cause))
            continue
        if run.state == RecordState.AVAILABLE:
            window.note_available(run.first_offset)
        window.join(run.first_offset)
    return letters


def roll_back(window: InFlightWindow, transition: StateTransition, limits: ShareLimits, now_ms: float | None) -> None:
    """Take a transition back that could not be stored. Locks that have expired by ``now_ms`` release their records instead."""
    for run in transition.runs:
        undo = run.undo
        run.transition = run.undo = None
        if undo is None or undo.state.is_terminal:
            continue
        window.count_complete(run, -1)
        run.state, run.member_id = undo.state, undo.member_id
        if now_ms is not None and run.lock_deadline_ms <= now_ms:
            for part in _acquired(window, (run,)):
                # Below the start offset, the log has no records any more.
                is_over = part.delivery_count >= limits.delivery_count_limit or part.last_offset < window.start_offset
                part.change(RecordState.ARCHIVED if is_over else RecordState.AVAILABLE)
                window.count_complete(part)
                if not is_over:
                    window.note_available(part.first_offset)


def dead_letters_of(run: InFlightState, delivery_count_limit: int) -> DeadLetters:
    """Return the dead letters of a run that was ARCHIVING when the state was stored. The cause was not."""
    exceeded = run.delivery_count >= delivery_count_limit
    return DeadLetters.of_run(run, DeadLetterCause.DELIVERY_COUNT_EXCEEDED if exceeded else DeadLetterCause.CLIENT_REJECT)


def _acquired(window: InFlightWindow, runs: Iterable[InFlightState]) -> Iterator[InFlightState]:
    """Yield the acquired ones of these runs, with the start offset inside none of them."""
    for run in runs:
        if run.state is not RecordState.ACQUIRED:
            continue
        if run.first_offset < window.start_offset <= run.last_offset:
            batch = window.batches[window.floor_index(run.first_offset)]
            rest = batch.split(run, window.start_offset)
            yield run
            yield rest
        else:
            yield run


def _state_after_release(window: InFlightWindow, run: InFlightState, limits: ShareLimits) -> RecordState:
    if run.last_offset < window.start_offset:
        return RecordState.ARCHIVED
    return limits.after_release(run.delivery_count)


def _change(
    window: InFlightWindow,
    transition: StateTransition,
    run: InFlightState,
    state: RecordState,
    cause: DeadLetterCause = DeadLetterCause.DELIVERY_COUNT_EXCEEDED,
) -> None:
    transition.begin(run, state, cause)
    window.count_complete(run)


_STATES: Final[dict[int, RecordState]] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class _Acknowledgement(NamedTuple):
    """One call of ``acknowledge``."""

    window: InFlightWindow
    transition: StateTransition
    member_id: str
    limits: ShareLimits
    lock_deadline_ms: float

    def parts(self, asked: AcknowledgementBatch) -> Iterator[tuple[InFlightBatch, int, int, int]]:
        """Yield the parts of one batch of offsets: a batch in flight, offsets in it, and their type."""
        types, window = asked.acknowledge_types, self.window
        if asked.last_offset < window.start_offset:
            return
        for batch in self._batches_in_flight(asked.first_offset, asked.last_offset):
            if batch.last_offset < window.start_offset:
                continue
            if not batch.is_split:
                self._check(batch.runs[0])
            first_offset = max(asked.first_offset, batch.first_offset, window.start_offset)
            last_offset = min(asked.last_offset, batch.last_offset)
            if len(types) == 1:
                yield batch, first_offset, last_offset, types[0]
                continue
            of_batch = types[first_offset - asked.first_offset : last_offset - asked.first_offset + 1]
            for kind, equal in groupby(of_batch):
                end = first_offset + len(list(equal))
                yield batch, first_offset, end - 1, kind
                first_offset = end

    def _batches_in_flight(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        window = self.window
        begin = window.floor_index(first_offset)
        if begin < 0 and first_offset < window.start_offset <= last_offset:
            begin = window.floor_index(window.start_offset)
        if begin < 0:
            reason = "Batch record not found. The request batch offsets are not found in the cache."
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, reason)
        batches = window.batches[begin : window.floor_index(last_offset) + 1]
        for name, offset in (("first", first_offset), ("last", last_offset)):
            if not batches or offset > batches[-1].last_offset:
                reason = f"Batch record not found. The {name} offset in request is past acquired records."
                raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        return batches

    def acknowledge(self, run: InFlightState, kind: int) -> None:
        """Acknowledge one run."""
        self._check(run)
        if kind == AcknowledgeType.RENEW:
            if not self.limits.may_renew:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
            run.lock_deadline_ms = self.lock_deadline_ms
            self.window.lock(self.lock_deadline_ms, run.first_offset, run.last_offset)
        elif kind == AcknowledgeType.RELEASE:
            _change(self.window, self.transition, run, self.limits.after_release(run.delivery_count))
        elif kind == AcknowledgeType.REJECT and self.limits.has_dead_letters:
            _change(self.window, self.transition, run, RecordState.ARCHIVING, DeadLetterCause.CLIENT_REJECT)
        else:
            _change(self.window, self.transition, run, _STATES[kind])

    def _check(self, run: InFlightState) -> None:
        """Raise INVALID_RECORD_STATE unless the member has acquired the records, and no change of them is in progress."""
        if run.state != RecordState.ACQUIRED or run.member_id == NO_MEMBER:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"{run!r} is not acquired")
        if run.transition is not None:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"{run!r} is being changed")
        if run.member_id != self.member_id:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"{run!r} belongs to another member")
