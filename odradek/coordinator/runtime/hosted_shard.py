"""One shard at work: operations decide, their records are replayed at once and appended together, responses wait for the log.

The records of the operations of one turn of the event loop make one batch; one that wants its own appended at once has all
appended that are in the batch by then. Until it is appended, what they changed stands on nothing: if the append fails, the
timelines go back to where the batch began, and all operations that were decided since then, those without records too, are
answered with the error, in the order in which they came. Responses of a batch that is in the log wait for the high watermark.

    committed_offset  <=  written_offset  <=  next_offset
    high watermark        the log's end       the open batch included

Left out: ``offsets.commit.timeout.ms``. One broker is every partition's only replica, and no write waits for another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from odradek.coordinator.runtime.record import encode_record
from odradek.coordinator.runtime.result import Result
from odradek.coordinator.runtime.shard import Shard, TransactionalShard
from odradek.coordinator.runtime.shard_context import ShardContext
from odradek.coordinator.runtime.states import ShardState, ensure_transition, not_coordinator, operation_error, unavailable
from odradek.coordinator.runtime.timeline import COMMITTED, READ_ONLY
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.runtime.marker import EndTxnMarker
    from odradek.coordinator.runtime.ports import CoordinatorLog
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime

ShardT = TypeVar("ShardT", bound=Shard)

# A batch's header; and what a record may need beside its key and value: five lengths or deltas of up to five bytes, attributes.
_BATCH_OVERHEAD_BYTES: Final = 61
_RECORD_OVERHEAD_BYTES: Final = 26

_ACTIVE: Final = ShardState.ACTIVE

# A producer or a transaction coordinator that somebody newer has fenced is told so: no fault.
_REFUSALS: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _Waiter:
    """An operation that is decided, and who is to have its response."""

    __slots__ = ("respond", "result")

    def __init__(self, result: Result[Any], respond: Callable[[Any], None]) -> None:
        self.result = result
        self.respond = respond


class HostedShard(Generic[ShardT]):
    """A partition's shard, from INITIAL to FAILED or CLOSED. Loop thread only.

    ``log``, ``context`` and ``shard`` are there from LOADING on, the offsets from ACTIVE on.
    """

    def __init__(self, runtime: CoordinatorRuntime[ShardT], partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = ShardState.INITIAL
        self.committed_offset = 0
        self.written_offset = 0
        self.next_offset = 0
        self.log: CoordinatorLog
        self.context: ShardContext
        self.shard: ShardT
        self._transactional: TransactionalShard | None = None
        self._runtime = runtime
        # The open batch: its records, an upper bound of its size, and who waits for it.
        self._batch: list[tuple[bytes, bytes | None]] = []
        self._batch_bytes = _BATCH_OVERHEAD_BYTES
        # What the batch may come to, asked of the log by the first that wants room in it.
        self._batch_limit_bytes = 0
        self._pending: list[_Waiter] = []
        # (offset that the high watermark has to reach, who waits for it), ascending.
        self._deferred: deque[tuple[int, list[_Waiter]]] = deque()
        self._is_appending = False
        # Who waits no more, and is about to be answered.
        self._answerable: deque[_Waiter] = deque()
        self._is_answering = False
        # Operations that came while another one was deciding.
        self._is_deciding = False
        self._queued: deque[tuple[Callable[[ShardT], Result[Any]], Callable[[Any], None]]] = deque()

    def start_loading(self) -> None:
        """Open the log and make an empty shard. Raises KafkaError where there is no such log."""
        self._become(ShardState.LOADING)
        runtime = self._runtime
        self.context = ShardContext(
            self.partition,
            self.leader_epoch,
            runtime.timer,
            lambda operation, respond: self.write(lambda _: operation(), respond),
        )
        self.shard = runtime.make_shard(self.partition, self.context)
        # Asked of a protocol, this takes longer than all the rest of an operation: once is enough.
        self._transactional = self.shard if isinstance(self.shard, TransactionalShard) else None
        self.log = runtime.logs.open(self.partition)

    def activate(self, now_ms: int) -> None:
        """The log has been replayed: take operations."""
        self._become(ShardState.ACTIVE)
        self.written_offset = self.next_offset = self.log.log_end_offset
        self.committed_offset = min(self.log.high_watermark, self.written_offset)
        self.context.snapshots.commit(self.committed_offset)
        self.context.snapshots.offset = READ_ONLY
        self._runtime.logs.on_high_watermark(self.partition, self._advance)
        self._is_deciding = True
        try:
            self.shard.on_loaded(now_ms)
        finally:
            self._is_deciding = False
        self._decide_queued()

    def close(self, state: ShardState) -> None:
        """Become FAILED or CLOSED: who waits is answered NOT_COORDINATOR, what is not appended is forgotten."""
        was_loaded = self.state is _ACTIVE
        was_made = was_loaded or self.state is ShardState.LOADING
        self._become(state)
        if was_loaded:
            self._runtime.logs.on_high_watermark(self.partition, None)
        if not was_made:
            return
        self.context.close()
        waiters = [waiter for _, waiters in self._deferred for waiter in waiters] + self._pending
        self._deferred.clear()
        self._reset_batch()
        self._fail(waiters, not_coordinator())
        self._guard(self.shard.on_unloaded)
        self._decide_queued()

    def write(self, operation: Callable[[ShardT], Result[Any]], respond: Callable[[Any], None]) -> None:
        """Decide; replay and append what was decided; ``respond`` with the response, or a KafkaError, when it stands.

        An operation asked for while another one decides is decided after it.
        """
        if self.state is not _ACTIVE:
            respond(unavailable(self.state))
        elif self._is_deciding:
            self._queued.append((operation, respond))
        else:
            self._decide(operation, respond)
            if self._queued:
                self._decide_queued()

    def _decide(self, operation: Callable[[ShardT], Result[Any]], respond: Callable[[Any], None]) -> None:
        result: Result[Any] | None = None
        self._is_deciding = True
        try:
            result = operation(self.shard)
            if result.producer is not None or result.marker is not None or self._is_at_once(result):
                self._take_at_once(result)
            elif result.records:
                self._take(result.records, atomic=result.atomic)
        except Exception as error:  # noqa: BLE001  whatever it is, it is this operation's, and its caller is told
            self._is_deciding = False
            self._refuse(result, respond, error)
            return
        self._is_deciding = False
        if self.committed_offset >= self.next_offset:
            if result.on_commit is not None:
                self._guard(result.on_commit)
            respond(result.response)
            if result.on_answered is not None:
                self._guard(result.on_answered)
        elif self._batch:
            self._pending.append(_Waiter(result, respond))
        else:
            self._deferred.append((self.next_offset, [_Waiter(result, respond)]))

    def _is_at_once(self, result: Result[Any]) -> bool:
        if not result.at_once or not result.records:
            return False
        return result.on_answered is None or self._runtime.logs.holds_answers

    def _decide_queued(self) -> None:
        while self._queued and not self._is_deciding:
            operation, respond = self._queued.popleft()
            if self.state is _ACTIVE:
                self._decide(operation, respond)
            else:
                respond(unavailable(self.state))

    def _take(self, records: Sequence[CoordinatorRecord], *, atomic: bool) -> None:
        """Replay ``records`` and put them into the open batch. Raises what keeps them out of it; then none is in it."""
        encoded = [encode_record(record) for record in records]
        if atomic:
            self._make_room(encoded)
        snapshots = self.context.snapshots
        replay = self.shard.replay
        batch = self._batch
        try:
            for position, record in enumerate(records):
                pair = encoded[position]
                if not atomic:
                    self._make_room((pair,))
                    batch = self._batch
                offset = snapshots.offset = self.next_offset
                replay(record, offset)
                if not batch:
                    self._runtime.flush_soon(self)
                batch.append(pair)
                self.next_offset = offset + 1
        except Exception as error:
            # Of what this batch's operations saw, some is half done: they all go.
            self._fail_batch(self._pending, operation_error(error))
            raise
        finally:
            snapshots.offset = READ_ONLY

    def _take_at_once(self, result: Result[Any]) -> None:
        """Append behind the open batch, then replay, what waits for no others, or is of a transaction. Raises what keeps it out.

        Replayed when it is there for good, as it mostly is by then, it need never be taken back.
        """
        if self._transactional is None and (result.producer is not None or result.marker is not None):
            raise TypeError("a transaction on a shard that knows of none")
        encoded = [encode_record(record) for record in result.records]
        failed = self.flush()
        if failed is not None:
            raise failed
        if self.state is not _ACTIVE:
            raise not_coordinator()
        if encoded:
            self._ensure_fits(_size_of(encoded), self.log.max_batch_bytes)
        offset = self.next_offset
        self.next_offset = offset + (len(encoded) or 1)
        failed = self._append_and_count(encoded, result.producer, result.marker)
        if failed is not None:
            raise failed
        try:
            self._replay_appended(result, offset, is_committed=self.log.high_watermark >= self.next_offset)
        except Exception as error:
            # Whatever it is, the log has what the state has not: it is to be read again.
            self._runtime.on_fault(f"a record of partition {self.partition} cannot be replayed", error)
            self._runtime.reload(self)
            raise not_coordinator() from error
        finally:
            self.context.snapshots.offset = READ_ONLY
        self._advance()
        if self.state is not _ACTIVE:
            raise not_coordinator()

    def _replay_appended(self, result: Result[Any], offset: int, *, is_committed: bool) -> None:
        """Replay what lies from ``offset`` on."""
        snapshots = self.context.snapshots
        snapshots.offset = COMMITTED if is_committed else offset
        shard = self._transactional
        if shard is not None and result.marker is not None:
            shard.replay_marker(result.marker)
        for record in result.records:
            if shard is not None and result.producer is not None:
                shard.replay_in_transaction(record, offset, result.producer[0])
            else:
                self.shard.replay(record, offset)
            offset += 1
            if not is_committed:
                snapshots.offset = offset

    def _make_room(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Count encoded records into the open batch, appending it first if it cannot take them.

        Raises KafkaError if that fails or they fit no batch.
        """
        size_bytes = _size_of(records)
        self._batch_bytes += size_bytes
        if self._batch_bytes <= self._batch_limit_bytes:
            return
        limit_bytes = self._batch_limit_bytes = self.log.max_batch_bytes
        if self._batch_bytes <= limit_bytes:
            return
        self._batch_bytes -= size_bytes
        self._ensure_fits(size_bytes, limit_bytes)
        error = self.flush()
        if error is not None:
            raise error
        self._batch_bytes += size_bytes

    def _ensure_fits(self, size_bytes: int, limit_bytes: int) -> None:
        if size_bytes + _BATCH_OVERHEAD_BYTES > limit_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"{size_bytes} bytes of records, and a batch has {limit_bytes} bytes at most"
            )

    def flush(self) -> KafkaError | None:
        """Append the open batch, if there is one; the error its operations were answered with if that failed."""
        records, waiters = self._batch, self._pending
        if not records or self.state is not _ACTIVE:
            return None
        error = self._append_and_count(records)
        if error is not None:
            return error
        self._reset_batch()
        self._deferred.append((self.written_offset, waiters))
        self._advance()
        return None

    def _append_and_count(
        self,
        records: list[tuple[bytes, bytes | None]],
        producer: tuple[int, int] | None = None,
        marker: EndTxnMarker | None = None,
    ) -> KafkaError | None:
        """Append what leads to ``next_offset``; the error that it is answered with if that failed."""
        runtime = self._runtime
        started_ms = runtime.clock.monotonic_ms()
        try:
            end_offset = self._append(records, producer, marker)
        except Exception as error:  # noqa: BLE001  whatever it is, these operations have failed
            return self._append_failed(error)
        if end_offset != self.next_offset:
            reason = f"the log ends at {end_offset}, and not at {self.next_offset}: somebody else wrote to it"
            return self._append_failed(KafkaError(ErrorCode.NOT_COORDINATOR, reason))
        runtime.counters.count_append(len(records) or 1, runtime.clock.monotonic_ms() - started_ms)
        self.written_offset = end_offset
        return None

    def _append(
        self, records: list[tuple[bytes, bytes | None]], producer: tuple[int, int] | None, marker: EndTxnMarker | None
    ) -> int:
        now_ms = self._runtime.clock.now_ms()
        self._is_appending = True
        try:
            if marker is not None:
                return self.log.append_marker(marker, now_ms)
            return self.log.append(records, now_ms) if producer is None else self.log.append(records, now_ms, producer)
        finally:
            self._is_appending = False

    def _append_failed(self, error: Exception) -> KafkaError:
        self._runtime.counters.append_failures += 1
        if not isinstance(error, KafkaError) or error.code not in _REFUSALS:
            self._runtime.on_fault(f"the append to partition {self.partition} failed", error)
        if self._log_end_offset() == self.written_offset:
            answer = operation_error(error)
            self._fail_batch(self._pending, answer)
            return answer
        # The log has what we took back, or what somebody else wrote, or cannot be read: only reading it tells where we are.
        self._runtime.reload(self)
        return not_coordinator()

    def _log_end_offset(self) -> int | None:
        try:
            return self.log.log_end_offset
        except KafkaError:
            return None

    def _fail_batch(self, waiters: list[_Waiter], error: KafkaError) -> None:
        """Take back all that is not written."""
        self.context.snapshots.roll_back(self.written_offset)
        self.next_offset = self.written_offset
        self._reset_batch()
        self._fail(waiters, error)
        self._decide_queued()

    def _reset_batch(self) -> None:
        self._batch = []
        self._batch_bytes = _BATCH_OVERHEAD_BYTES
        self._batch_limit_bytes = 0
        self._pending = []

    def _advance(self) -> None:
        """The high watermark may have moved: answer those whose records it has passed."""
        if self._is_appending:
            # Who is answered may ask for more, and that is not to get into the batch being appended. ``flush`` comes back to it.
            return
        try:
            committed_offset = min(self.log.high_watermark, self.written_offset)
        except KafkaError as error:
            self._runtime.on_fault(f"partition {self.partition} loses what is not yet committed", error)
            self._runtime.reload(self)
            return
        if committed_offset <= self.committed_offset:
            return
        self.committed_offset = committed_offset
        self.context.snapshots.commit(committed_offset)
        ready: list[_Waiter] = []
        while self._deferred and self._deferred[0][0] <= committed_offset:
            ready += self._deferred.popleft()[1]
        for waiter in ready:
            if waiter.result.on_commit is not None:
                self._guard(waiter.result.on_commit)
        self._answerable += ready
        # What these decided, too, is in the log before anybody is answered: the next request does not find it half done.
        self.flush()
        if not self._is_answering:
            self._answer()

    def _answer(self) -> None:
        """Answer in the order of the decisions; what is committed on the way comes through ``_advance``, and joins the end.

        What follows from an answer is done when all have theirs, and is in the log before anybody can ask for more.
        """
        self._is_answering = True
        try:
            while self._answerable:
                following: list[Callable[[], None]] = []
                while self._answerable:
                    waiter = self._answerable.popleft()
                    self._guard_telling(waiter.respond, waiter.result.response)
                    if waiter.result.on_answered is not None:
                        following.append(waiter.result.on_answered)
                for follow in following:
                    if self.state is _ACTIVE:
                        self._guard(follow)
                if following:
                    self.flush()
        finally:
            self._is_answering = False

    def _refuse(self, result: Result[Any] | None, respond: Callable[[Any], None], error: Exception) -> None:
        """Answer an operation that raised, or whose records could not be taken."""
        if not isinstance(error, KafkaError):
            self._runtime.on_fault(f"an operation on partition {self.partition} failed", error)
        answer = operation_error(error)
        if result is None:
            respond(answer)
        else:
            self._fail([_Waiter(result, respond)], answer)

    def _fail(self, waiters: list[_Waiter], error: KafkaError) -> None:
        # First all that sets state right, what was decided last first, then the responses in the order of the decisions. Both may
        # bring new operations, which are to find all of it right.
        was_deciding, self._is_deciding = self._is_deciding, True
        for waiter in waiters[::-1]:
            if waiter.result.on_failure is not None:
                self._guard_telling(waiter.result.on_failure, error)
        for waiter in waiters:
            self._guard_telling(waiter.respond, error)
        self._is_deciding = was_deciding

    def _guard(self, callback: Callable[[], object]) -> None:
        """Call ``callback``; its failure is reported, and is not that of those who come after it."""
        try:
            callback()
        except Exception as error:  # noqa: BLE001  the same
            self._runtime.on_fault(f"a callback of partition {self.partition} failed", error)

    def _guard_telling(self, callback: Callable[[Any], object], what: object) -> None:
        """The same with something to tell."""
        try:
            callback(what)
        except Exception as error:  # noqa: BLE001  the same
            self._runtime.on_fault(f"a callback of partition {self.partition} failed", error)

    def _become(self, state: ShardState) -> None:
        ensure_transition(self.state, state)
        self.state = state


def _size_of(records: Sequence[tuple[bytes, bytes | None]]) -> int:
    """An upper bound of what encoded records come to, bytes."""
    size_bytes = 0
    for key, value in records:
        size_bytes += len(key) + _RECORD_OVERHEAD_BYTES if value is None else len(key) + len(value) + _RECORD_OVERHEAD_BYTES
    return size_bytes
