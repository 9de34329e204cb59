"""Ending the delivery of acquired records: a member acknowledges or leaves, or the acquisition lock expires.

``acknowledge`` and ``release`` begin a StateTransition, which ``commit`` or ``roll_back`` ends. A lock that expires cannot wait
for the share coordinator: ``expire`` changes the window at once.

Pure. Kafka's methods are SharePartition.acknowledge, releaseAcquiredRecords and the handler of AcquisitionLockTimerTask.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    member_id: str,
    batches: Iterable[AcknowledgementBatch],
    limits: ShareLimits,
    lock_deadline_ms: float,
) -> StateTransition:
    """Acknowledge records of a member. ``lock_deadline_ms`` is for locks that are renewed.

    KafkaError: INVALID_RECORD_STATE if the member does not have one of the records, INVALID_REQUEST for offsets behind the
    window. Then nothing has changed, but for locks that were renewed before.
    """
    transition = StateTransition()
    step = _Acknowledgement(window, transition, member_id, limits, lock_deadline_ms)
    try:
        for batch in batches:
            if batch.last_offset >= window.start_offset:
                step.acknowledge(batch)
    except KafkaError:
        roll_back(window, transition, limits, None)
        raise
    return transition


def release(window: InFlightWindow, member_id: str, limits: ShareLimits) -> StateTransition:
    """Release all records of a member that has left."""
    transition = StateTransition()
    for run in _acquired(window, window.runs()):
        if run.member_id == member_id and run.transition is None:
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
    batches, batch = expired.batches, run.batch
    if batches and batches[-1].last_offset + 1 == batch.first_offset and batches[-1][2:] == batch[2:]:
        batches[-1] = batches[-1]._replace(last_offset=batch.last_offset)
    else:
        batches.append(batch)


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
            exceeded = run.delivery_count >= limits.delivery_count_limit
            run.change(RecordState.ARCHIVED if exceeded else RecordState.AVAILABLE)
            window.count_complete(run)
            window.note_available(run.first_offset)


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


_STATES: Final = {
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

    def acknowledge(self, asked: AcknowledgementBatch) -> None:
        """Acknowledge one batch of offsets, which may have records of several batches in flight."""
        types = list(asked.acknowledge_types)
        if not types or any(each not in _TYPES for each in types):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: {types}")
        window = self.window
        for batch in self._batches_in_flight(asked.first_offset, asked.last_offset):
            if batch.last_offset < window.start_offset:
                continue
            if not batch.is_split:
                self._check(batch.runs[0])
            first_offset = max(asked.first_offset, batch.first_offset, window.start_offset)
            last_offset = min(asked.last_offset, batch.last_offset)
            if len(types) == 1:
                self._acknowledge_runs(batch, first_offset, last_offset, AcknowledgeType(types[0]))
                continue
            offset = first_offset
            of_batch = types[first_offset - asked.first_offset : last_offset - asked.first_offset + 1]
            for each, equal in groupby(of_batch):
                end = offset + len(list(equal))
                self._acknowledge_runs(batch, offset, end - 1, AcknowledgeType(each))
                offset = end

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

    def _acknowledge_runs(self, batch: InFlightBatch, first_offset: int, last_offset: int, kind: AcknowledgeType) -> None:
        for run in batch.between(first_offset, last_offset):
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


_TYPES: Final = frozenset(AcknowledgeType)
