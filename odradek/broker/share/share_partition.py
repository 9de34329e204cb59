"""A share partition: a partition that this broker leads, as one share group reads it (KIP-932).

The records in flight are an ``InFlightWindow``. The share partition loads it from the share coordinator at its first use, writes
each end of a delivery there, and lets acquisition locks expire. Acquiring is not written: after a failure, records that were
acquired are available again, and their delivery counts are those of their last release.

    EMPTY -> INITIALIZING -> ACTIVE -> FENCED       another broker leads, or the group has no member here any more
                          -> FAILED                 the state could not be read

One timer serves all locks: it is set to the earliest deadline. Thousands of records are released in slices (``release_queue``),
and acknowledged in slices, but all or nothing: only then they are written.
Loop thread only.
"""

from collections.abc import Callable, Generator, Sequence
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from odradek.broker.share import acknowledgement
from odradek.broker.share.acquisition import AcquireRequest, ReadBatch, acquire, withdraw_aborted
from odradek.broker.share.in_flight import RecordState, ShareLimits, StateTransition
from odradek.broker.share.in_flight_window import InFlightWindow
from odradek.common.logging import log
from odradek.coordinator.share.state import UNINITIALIZED_START_OFFSET, PartitionState, StateBatch
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply, all_of, replied

if TYPE_CHECKING:
    from odradek.broker.replica.partition import Partition
    from odradek.broker.share.acknowledgement import AcknowledgementBatch, DeadLetters, HeldRecords
    from odradek.broker.share.in_flight import DeadLetterCause
    from odradek.broker.share.release_queue import ReleaseQueue
    from odradek.broker.share.share_persister import SharePersister
    from odradek.coordinator.share.state import SharePartitionKey
    from odradek.protocol.message_types.share_fetch import AcquiredRecords
    from odradek.timing.timer import Timer, TimerTask


class SharePartitionState(Enum):
    """The stages of a share partition's life."""

    EMPTY = auto()
    INITIALIZING = auto()
    ACTIVE = auto()
    FAILED = auto()
    FENCED = auto()


class DeadLetter(NamedTuple):
    """Records for the dead-letter queue, and the reason."""

    key: "SharePartitionKey"
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: "DeadLetterCause"


class DeadLetterQueue(Protocol):
    """Writes records to the dead-letter topics of share groups (KIP-1191). Kafka's name is ShareGroupDLQManager."""

    def enqueue(self, letter: DeadLetter) -> Reply[KafkaError | None]:
        """Write the records. The reply has the error if this is not possible."""


class SharePartitionServices(NamedTuple):
    """The rooms that a share partition uses.

    ``limits`` returns the present configs of a group. ``start_offset`` finds the offset at which a new group begins. ``wake``
    tries the fetches that wait for a share partition, ``wake_soon`` does so in the next turn of the loop.
    ``note_accepted`` counts records of a group that members have accepted.
    """

    persister: "SharePersister"
    timer: "Timer"
    limits: Callable[[str], ShareLimits]
    start_offset: "Callable[[str, Partition], Reply[int | KafkaError]]"
    wake: "Callable[[SharePartitionKey], object]"
    wake_soon: "Callable[[SharePartitionKey], object]"
    releases: "ReleaseQueue"
    note_accepted: Callable[[str, int], None]
    dead_letters: DeadLetterQueue | None = None


# Releasing or acknowledging so many runs takes about a millisecond.
_RUNS_AT_ONCE: Final = 250
# The persister's errors, as told to a member. All others are UNKNOWN_SERVER_ERROR.
_ERRORS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_FENCED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})


class SharePartition:
    """The records in flight of one share group in one partition. ``error`` says why it has FAILED."""

    __slots__ = ("_lock_task", "_services", "error", "key", "leader_epoch", "partition", "state", "window")

    def __init__(self, key: "SharePartitionKey", partition: "Partition", services: SharePartitionServices) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = SharePartitionState.EMPTY
        self.error: KafkaError | None = None
        self.window = InFlightWindow()
        self._services = services
        self._lock_task: TimerTask | None = None

    @property
    def limits(self) -> ShareLimits:
        """Return the present configs of the group."""
        return self._services.limits(self.key.group_id)

    @property
    def has_room(self) -> bool:
        """Return whether records can be acquired, if the log has them."""
        return self.state == SharePartitionState.ACTIVE and self.window.can_acquire(self.limits.partition_max_record_locks)

    # ---------------------------------------------------------------------------------------------------------- loading

    def initialize(self) -> None:
        """Begin to load the state, unless that has begun before. Waiting fetches are tried when it is over."""
        if self.state == SharePartitionState.EMPTY:
            self.state = SharePartitionState.INITIALIZING
            self._services.persister.read(self.key, self.leader_epoch).when_done(self._read)

    def _read(self, stored: PartitionState | KafkaError) -> None:
        if not isinstance(stored, PartitionState):
            self._fail(_told(stored))
        elif stored.start_offset == UNINITIALIZED_START_OFFSET:
            found = self._services.start_offset(self.key.group_id, self.partition)
            found.when_done(partial(self._begin_at, stored))
        else:
            self._load(stored)

    def _begin_at(self, stored: PartitionState, start_offset: int | KafkaError) -> None:
        if isinstance(start_offset, int):
            self._load(stored._replace(start_offset=start_offset))
        else:
            self._fail(start_offset)

    def _load(self, stored: PartitionState) -> None:
        if self.state != SharePartitionState.INITIALIZING:
            return
        try:
            self.window = window = InFlightWindow.load(stored)
        except ValueError as error:
            log.error("cannot load the state of a share partition", error, **self._names)
            self._fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self.state = SharePartitionState.ACTIVE
        limit = self.limits.delivery_count_limit
        archiving = [run for run in window.runs() if run.state == RecordState.ARCHIVING]
        self._write_dead_letters([acknowledgement.dead_letters_of(run, limit) for run in archiving])
        self._services.wake_soon(self.key)

    def _fail(self, error: KafkaError) -> None:
        if self.state == SharePartitionState.INITIALIZING:
            self.state = SharePartitionState.FAILED
            self.error = error
            self._services.wake_soon(self.key)

    def fence(self) -> None:
        """Stop: nothing is acquired here any more, and no lock expires."""
        self.state = SharePartitionState.FENCED
        if self._lock_task is not None:
            self._lock_task.cancel()
            self._lock_task = None

    # -------------------------------------------------------------------------------------------------------- deliveries

    def acquire(
        self, request: AcquireRequest, batches: Sequence[ReadBatch], aborted: Sequence[tuple[int, int]]
    ) -> "list[AcquiredRecords]":
        """Acquire records of ``batches`` for a member. Return their offsets. See ``acquisition``."""
        if self.state != SharePartitionState.ACTIVE:
            return []
        limits = self.limits
        deadline_ms = self._services.timer.clock.monotonic_ms() + limits.record_lock_duration_ms
        acquired = acquire(self.window, request._replace(lock_deadline_ms=deadline_ms), limits, batches)
        if acquired:
            self._expire_at(deadline_ms)
            if aborted:
                acquired = withdraw_aborted(self.window, acquired, batches, aborted)
        # Nobody acknowledges records that were aborted, or that are gone from the log. In Kafka they fill the window.
        if self.window.advance():
            self._services.wake_soon(self.key)
        return acquired

    def acknowledge(
        self, member_id: str, batches: "Sequence[AcknowledgementBatch]"
    ) -> Generator[None, None, Reply[KafkaError | None]]:
        """Acknowledge records of a member, in pieces of about a millisecond.

        The reply has the error, see ``acknowledgement.acknowledge``, or the persister's.
        """
        limits, clock, transition = self.limits, self._services.timer.clock, StateTransition()
        deadline_ms = clock.monotonic_ms() + limits.record_lock_duration_ms
        # Locks may expire during a pause. They find records in transition, and leave them alone.
        paused_ms: float | None = None
        try:
            for _ in acknowledgement.acknowledge(self.window, transition, member_id, batches, limits, deadline_ms, _RUNS_AT_ONCE):
                yield
                paused_ms = clock.monotonic_ms()
        except KafkaError as error:
            has_advanced = self._roll_back(transition, paused_ms)
            if has_advanced or paused_ms is not None:
                # Records whose locks have expired meanwhile are available now.
                self._services.wake(self.key)
            return replied(error)
        pieces = transition.pieces(_RUNS_AT_ONCE)
        if len(pieces) == 1:
            return self._store(transition)
        return (yield from self._store_all(pieces))

    def _roll_back(self, transition: StateTransition, now_ms: float | None) -> bool:
        """Take a transition back. Return whether the window has moved: locks that have expired by ``now_ms`` may end records."""
        acknowledgement.roll_back(self.window, transition, self.limits, now_ms)
        return self.window.advance()

    def release(self, member_id: str, on_end: "Callable[[KafkaError | None], object]") -> None:
        """Release all records that a member has now. ``on_end`` is called when a piece of them is stored, or has failed."""
        self._services.releases.add(self._release(acknowledgement.held_by(self.window, member_id), on_end))

    def _release(
        self, held: "Sequence[HeldRecords]", on_end: "Callable[[KafkaError | None], object]"
    ) -> Generator[None, None, None]:
        for begin in range(0, len(held), _RUNS_AT_ONCE):
            if self.state != SharePartitionState.ACTIVE:
                return
            transition = acknowledgement.release(self.window, held[begin : begin + _RUNS_AT_ONCE], self.limits)
            self._store(transition).when_done(on_end)
            yield

    # ----------------------------------------------------------------------------------------------------------- storing

    def _store(self, transition: StateTransition) -> Reply[KafkaError | None]:
        if not transition.runs:
            return replied(None)
        reply: Reply[KafkaError | None] = Reply()
        self._write(transition.batches).when_done(partial(self._stored, transition, reply))
        return reply

    def _store_all(self, pieces: list[StateTransition]) -> Generator[None, None, Reply[KafkaError | None]]:
        """Store the pieces of a transition. The reply has the first error, when all of them are stored or have failed."""
        replies = []
        for piece in pieces:
            replies.append(self._store(piece))
            yield
        reply: Reply[KafkaError | None] = Reply()
        all_of(replies).when_done(lambda errors: reply.complete(next((each for each in errors if each is not None), None)))
        return reply

    def _write(self, batches: Sequence[StateBatch]) -> Reply[KafkaError | None]:
        window = self.window
        return self._services.persister.write(
            self.key,
            window.state_epoch,
            self.leader_epoch,
            window.start_offset,
            window.delivery_complete_count,
            batches,
        )

    def _stored(self, transition: StateTransition, reply: Reply[KafkaError | None], error: KafkaError | None) -> None:
        window = self.window
        if isinstance(error, KafkaError):
            self._roll_back(transition, self._services.timer.clock.monotonic_ms())
            reply.complete(_told(error))
            self._services.wake(self.key)
            return
        self._services.note_accepted(self.key.group_id, transition.accepted_count)
        letters = acknowledgement.commit(window, transition)
        is_released = any(run.is_available for run in transition.runs)
        has_advanced = window.advance()
        reply.complete(None)
        if has_advanced or is_released:
            self._services.wake(self.key)
        self._write_dead_letters(letters)

    # ------------------------------------------------------------------------------------------------- acquisition locks

    def _expire_at(self, deadline_ms: float) -> None:
        """See to it that locks with this deadline expire."""
        task = self._lock_task
        if task is not None and task.is_pending:
            if task.deadline_ms <= deadline_ms:
                return
            task.cancel()
        self._lock_task = self._services.timer.call_at(deadline_ms, self._expire)

    def _expire(self) -> None:
        self._services.releases.add(self._expire_locks())

    def _expire_locks(self) -> Generator[None, None, None]:
        """Let locks expire in pieces, until no deadline is left that has passed."""
        while self.state == SharePartitionState.ACTIVE:
            now_ms = self._services.timer.clock.monotonic_ms()
            batches, letters = acknowledgement.expire(self.window, now_ms, self.limits, _RUNS_AT_ONCE)
            if batches:
                self._write(batches).when_done(partial(self._expired, letters))
                self._services.wake(self.key)
            deadline_ms = self.window.next_deadline_ms()
            if deadline_ms is None:
                return
            if deadline_ms > now_ms:
                self._expire_at(deadline_ms)
                return
            yield

    def _expired(self, letters: "list[DeadLetters]", error: KafkaError | None) -> None:
        if isinstance(error, KafkaError):
            log.warn("cannot store that acquisition locks have expired", reason=str(error), **self._names)
            if error.code in _FENCED or self.state != SharePartitionState.ACTIVE:
                # Another leader has the records, and delivers them again.
                return
        if self.window.advance():
            self._services.wake(self.key)
        self._write_dead_letters(letters)

    # ------------------------------------------------------------------------------------------------------ dead letters

    def _write_dead_letters(self, letters: "list[DeadLetters]") -> None:
        """Write records to the dead-letter queue, and archive them then, even if they cannot be written."""
        queue = self._services.dead_letters
        for each in letters:
            letter = DeadLetter(self.key, *each)
            if queue is None:
                self._archive(letter, None)
            else:
                queue.enqueue(letter).when_done(partial(self._archive, letter))

    def _archive(self, letter: DeadLetter, error: KafkaError | None) -> None:
        if error is not None:
            log.warn("cannot write to the dead-letter queue", reason=str(error), offset=letter.first_offset, **self._names)
        # The run may have been split meanwhile.
        for run in self.window.runs_at(letter.first_offset, letter.last_offset):
            is_letter = run.first_offset >= letter.first_offset and run.last_offset <= letter.last_offset
            if is_letter and run.state == RecordState.ARCHIVING:
                run.change(RecordState.ARCHIVED)
                self.window.count_complete(run)
        archived = StateBatch(letter.first_offset, letter.last_offset, int(RecordState.ARCHIVED), letter.delivery_count)
        written = self._write([archived])
        if self.window.advance():
            self._services.wake(self.key)
        written.when_done(self._archived)

    def _archived(self, error: KafkaError | None) -> None:
        if isinstance(error, KafkaError):
            log.warn("cannot store that records are archived", reason=str(error), **self._names)

    @property
    def _names(self) -> dict[str, object]:
        return {"group": self.key.group_id, "topic": self.partition.topic, "partition": self.key.partition}


def _told(error: KafkaError) -> KafkaError:
    """Return the persister's error as members are told."""
    return KafkaError(_ERRORS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.reason)
