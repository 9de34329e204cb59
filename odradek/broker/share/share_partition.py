"""A share partition: a partition that this broker leads, as one share group reads it (KIP-932).

The records in flight are an ``InFlightWindow``. The share partition loads it from the share coordinator at its first use, writes
each end of a delivery there, and lets acquisition locks expire. Acquiring is not written: after a failure, records that were
acquired are available again, and their delivery counts are those of their last release.

    EMPTY -> INITIALIZING -> ACTIVE -> FENCED       another broker leads, or the group has no member here any more
                          -> FAILED                 the state could not be read

One timer serves all locks: it is set to the earliest deadline. See ``lock_expiry`` for thousands of them that expire at once.
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
from odradek.timing.reply import Reply, replied

if TYPE_CHECKING:
    from odradek.broker.replica.partition import Partition
    from odradek.broker.share.acknowledgement import AcknowledgementBatch, DeadLetters
    from odradek.broker.share.in_flight import DeadLetterCause
    from odradek.broker.share.lock_expiry import LockExpiry
    from odradek.broker.share.persister import SharePersister
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
    tries the fetches that wait for a share partition.
    """

    persister: "SharePersister"
    timer: "Timer"
    limits: Callable[[str], ShareLimits]
    start_offset: "Callable[[str, Partition], Reply[int | KafkaError]]"
    wake: "Callable[[SharePartitionKey], object]"
    expiry: "LockExpiry"
    dead_letters: DeadLetterQueue | None = None


# Releasing so many runs takes about a millisecond.
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

    def make_room(self) -> bool:
        """Return whether records can be acquired, if the log has them.

        A full window first moves behind records that were archived without an acknowledgement: of aborted transactions, or gone
        from the log. In Kafka such a window stays full.
        """
        if self.state != SharePartitionState.ACTIVE:
            return False
        window, most_locks = self.window, self.limits.partition_max_record_locks
        if window.can_acquire(most_locks):
            return True
        if not window.advance():
            return False
        # The other fetches that wait have room, too, and may take it first.
        self._services.wake(self.key)
        return window.can_acquire(most_locks)

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
        self._services.wake(self.key)

    def _fail(self, error: KafkaError) -> None:
        if self.state == SharePartitionState.INITIALIZING:
            self.state = SharePartitionState.FAILED
            self.error = error
            self._services.wake(self.key)

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
        return acquired

    def acknowledge(self, member_id: str, batches: "Sequence[AcknowledgementBatch]") -> Reply[KafkaError | None]:
        """Acknowledge records of a member. The reply has the error, see ``acknowledgement.acknowledge``, or the persister's."""
        limits = self.limits
        deadline_ms = self._services.timer.clock.monotonic_ms() + limits.record_lock_duration_ms
        try:
            transition = acknowledgement.acknowledge(self.window, member_id, batches, limits, deadline_ms)
        except KafkaError as error:
            return replied(error)
        return self._store(transition)

    def release(self, member_id: str) -> Reply[KafkaError | None]:
        """Release all records of a member. The reply has the persister's error."""
        return self._store(acknowledgement.release(self.window, member_id, self.limits))

    def log_starts_at(self, log_start_offset: int) -> None:
        """Follow the log, whose first records have been removed."""
        self.window.log_starts_at(log_start_offset)

    # ----------------------------------------------------------------------------------------------------------- storing

    def _store(self, transition: StateTransition) -> Reply[KafkaError | None]:
        if not transition.runs:
            return replied(None)
        reply: Reply[KafkaError | None] = Reply()
        self._write(transition.batches).when_done(partial(self._stored, transition, reply))
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
            acknowledgement.roll_back(window, transition, self.limits, self._services.timer.clock.monotonic_ms())
            reply.complete(_told(error))
            self._services.wake(self.key)
            return
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
        self._services.expiry.add(self._expire_locks())

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
        self._write([archived]).when_done(self._archived)

    def _archived(self, error: KafkaError | None) -> None:
        if isinstance(error, KafkaError):
            log.warn("cannot store that records are archived", reason=str(error), **self._names)
        if self.window.advance():
            self._services.wake(self.key)

    @property
    def _names(self) -> dict[str, object]:
        return {"group": self.key.group_id, "topic": self.partition.topic, "partition": self.key.partition}


def _told(error: KafkaError) -> KafkaError:
    """Return the persister's error as members are told."""
    return KafkaError(_ERRORS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.reason)
