"""One hosted shard: operations decide, their records are replayed and appended, their replies wait for the high watermark.

    committed_offset  <=  written_offset  <=  next_offset
    high watermark        the log's end       the open batch included

The shard's ``WriteOrder`` says whether records are first replayed or first appended. Records that are replayed first stay in the
open batch (``open_batch``) until the turn of the event loop ends. If its append fails, the timelines roll back to the start of
the batch. The replies of all operations decided since then fail, in order. Operations of appended batches wait in a queue by
offset (``deferred``) and are answered from there (``Answers``). If the high watermark does not move within the write timeout, the
waiting clients are told to look for another coordinator. Their records stay in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from odradek.coordinator.runtime.environment import ShardContext, ShardT
from odradek.coordinator.runtime.open_batch import (
    Answers,
    DeferredEvent,
    DeferredEventQueue,
    LogWriter,
    OpenBatch,
    OwnReply,
    fitting_size,
    size_of,
    split,
)
from odradek.coordinator.runtime.ports import TransactionalShard, WriteOrder
from odradek.coordinator.runtime.result import CoordinatorResult, encode_record
from odradek.coordinator.runtime.states import ShardState, ensure_transition, not_coordinator, operation_error, unavailable
from odradek.coordinator.runtime.timeline import COMMITTED, READ_ONLY
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.runtime.environment import RuntimeEnvironment
    from odradek.coordinator.runtime.ports import CoordinatorLog
    from odradek.coordinator.runtime.result import CoordinatorRecord, EndTxnMarker
    from odradek.timing.reply import Reply
    from odradek.timing.timer import TimerTask

T = TypeVar("T")

_ACTIVE: Final = ShardState.ACTIVE


class HostedShard(Generic[ShardT]):
    """A partition's shard, from LOADING to FAILED or CLOSED. Loop thread only.

    The offsets count from ACTIVE on. ``reload`` is called with a shard whose state and log differ; it loads the log again
    into a new object.
    """

    def __init__(
        self,
        environment: RuntimeEnvironment[ShardT],
        partition: int,
        leader_epoch: int,
        reload: Callable[[HostedShard[ShardT]], None],
    ) -> None:
        """Open the log and make an empty shard. Raises KafkaError where there is no such log, or it cannot be read."""
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = ShardState.LOADING
        self.log: CoordinatorLog = environment.logs.open(partition)
        self.committed_offset = 0
        self.written_offset = self.next_offset = self.log.log_end_offset
        self.context = ShardContext(partition, leader_epoch, environment.timer, self._write_from_shard, self._after_answer)
        self.shard: ShardT = environment.make_shard(partition, self.context)
        # Looked up once: for a protocol that takes longer than all the rest of an operation.
        self._transactional: TransactionalShard | None = self.shard if isinstance(self.shard, TransactionalShard) else None
        self._appends_first = self.shard.write_order is WriteOrder.APPEND_THEN_REPLAY
        self._environment = environment
        self._reload = reload
        self._writer = LogWriter(partition, self.log, environment)
        self._batch = OpenBatch()
        self._deferred = DeferredEventQueue()
        self._answers = Answers(partition, environment.on_fault)
        # Callbacks to run once the answers given so far have been delivered.
        self._following: list[Callable[[], object]] = []
        # The deadline of the first operation that waits for a commit. That operation may be committed by now.
        self._commit_deadline: TimerTask | None = None
        # Operations submitted during a decision.
        self._is_deciding = False
        self._queued: deque[tuple[Callable[[ShardT], CoordinatorResult[Any]], Reply[Any]]] = deque()

    @property
    def has_open_batch(self) -> bool:
        """Return whether records are replayed and not yet appended."""
        return bool(self._batch.records)

    # ------------------------------------------------------------------------------------------------------ life cycle

    def activate(self, now_ms: int) -> None:
        """Accept operations, now that the log has been replayed."""
        self._become(ShardState.ACTIVE)
        self.written_offset = self.next_offset = self.log.log_end_offset
        self.committed_offset = min(self.log.high_watermark, self.written_offset)
        self.context.snapshots.commit(self.committed_offset)
        self.context.snapshots.offset = READ_ONLY
        self._environment.logs.on_high_watermark(self.partition, self._advance)
        self._is_deciding = True
        try:
            self.shard.on_loaded(now_ms)
        finally:
            self._is_deciding = False
        self._decide_queued()

    def close(self, state: ShardState) -> None:
        """Become FAILED or CLOSED. Waiting requests are answered NOT_COORDINATOR; records not yet appended are dropped."""
        former = self.state
        self._become(state)
        if former is ShardState.FAILED:
            return
        if former is _ACTIVE:
            self._environment.logs.on_high_watermark(self.partition, None)
        self.context.close()
        if self._commit_deadline is not None:
            self._commit_deadline.cancel()
            self._commit_deadline = None
        events = self._deferred.take_all() + self._batch.events
        self._batch = OpenBatch()
        self._following = []
        self._answers.give_up_committed(not_coordinator())
        self._fail(events, not_coordinator())
        self._answers.guard(self._unload_shard)
        self._decide_queued()

    def _unload_shard(self) -> None:
        self._answers.give(self.shard.on_unloaded())

    def _become(self, state: ShardState) -> None:
        ensure_transition(self.state, state)
        self.state = state

    # ------------------------------------------------------------------------------------------------------- decisions

    def write(self, operation: Callable[[ShardT], CoordinatorResult[Any]], reply: Reply[Any]) -> None:
        """Decide; replay and append the decided records; complete ``reply`` on commit, or fail it with a KafkaError.

        Operations submitted during a decision are queued. HOT.
        """
        if self._following:
            self.settle()
        if self.state is not _ACTIVE:
            reply.complete(unavailable(self.state))
        elif self._is_deciding:
            self._queued.append((operation, reply))
        else:
            self._decide(operation, reply)
            if self._queued:
                self._decide_queued()

    def read(self, operation: Callable[[ShardT, int], T]) -> T:
        """Return the result of ``operation(shard, committed_offset)``. Raises KafkaError if the shard is not ACTIVE."""
        self.settle()
        if self.state is not _ACTIVE:
            raise unavailable(self.state)
        return operation(self.shard, self.committed_offset)

    def _after_answer(self, callback: Callable[[], object]) -> None:
        self._following.append(callback)
        if len(self._following) == 1:
            self._environment.turn_end.call(self._follow)

    def settle(self) -> None:
        """Run the callbacks that follow the answers given so far, unless an operation is deciding."""
        if self._following and not self._is_deciding:
            self._follow()

    def _follow(self) -> None:
        following, self._following = self._following, []
        for callback in following:
            if self.state is _ACTIVE:
                self._answers.guard(callback)

    def _write_from_shard(self, operation: Callable[[], CoordinatorResult[Any]]) -> Reply[Any]:
        reply = OwnReply()
        self.write(lambda _: operation(), reply)
        return reply

    def _decide(self, operation: Callable[[ShardT], CoordinatorResult[Any]], reply: Reply[Any]) -> None:
        result: CoordinatorResult[Any] | None = None
        self._is_deciding = True
        try:
            result = operation(self.shard)
            if result.records or result.marker is not None:
                if self._appends_first or result.producer is not None or result.marker is not None:
                    self._append_then_replay(result)
                else:
                    self._replay_then_append(result.records, atomic=result.atomic)
        except Exception as error:  # noqa: BLE001  any error belongs to this operation and is returned to its caller
            self._is_deciding = False
            self._refuse(result, reply, error)
            return
        self._is_deciding = False
        if self.committed_offset >= self.next_offset:
            if result.on_commit is not None:
                self._answers.guard(result.on_commit)
            self._answers.complete(result, reply)
        elif self._batch.records:
            self._batch.events.append(DeferredEvent(result, reply))
        else:
            self._defer([DeferredEvent(result, reply)])
            self._watch_commit()

    def _decide_queued(self) -> None:
        while self._queued and not self._is_deciding:
            operation, reply = self._queued.popleft()
            if self.state is _ACTIVE:
                self._decide(operation, reply)
            else:
                self._answers.give(((reply, unavailable(self.state)),))

    def _refuse(self, result: CoordinatorResult[Any] | None, reply: Reply[Any], error: Exception) -> None:
        """Answer an operation that raised, or whose records could not be taken."""
        if not isinstance(error, KafkaError):
            self._environment.on_fault(f"an operation on partition {self.partition} failed", error)
        answer = operation_error(error)
        if result is None:
            self._answers.give(((reply, answer),))
        else:
            self._fail([DeferredEvent(result, reply)], answer)

    def _fail(self, events: list[DeferredEvent], error: KafkaError) -> None:
        """Fail ``events``. Operations submitted meanwhile are queued until all of the state is corrected."""
        was_deciding, self._is_deciding = self._is_deciding, True
        self._answers.fail(events, error)
        self._is_deciding = was_deciding

    # ---------------------------------------------------------------------------------------------- replay, then append

    def _replay_then_append(self, records: Sequence[CoordinatorRecord], *, atomic: bool) -> None:
        """Replay ``records`` and add them to the open batch. Raises the error that prevents it; the batch has none of them then.

        Unless ``atomic``, batches that are full are appended in between, and their records stay.
        """
        encoded = [encode_record(record) for record in records]
        if atomic:
            self._make_room(encoded)
        snapshots = self.context.snapshots
        replay = self.shard.replay
        batch = self._batch.records
        try:
            for position, record in enumerate(records):
                pair = encoded[position]
                if not atomic:
                    self._make_room((pair,))
                    batch = self._batch.records
                offset = snapshots.offset = self.next_offset
                replay(record, offset)
                if not batch:
                    self._environment.turn_end.call(self.flush)
                batch.append(pair)
                self.next_offset = offset + 1
        except Exception as error:
            # The operations of this batch have seen half-applied state, so all of them fail.
            self._roll_back(operation_error(error))
            raise
        finally:
            snapshots.offset = READ_ONLY

    def _make_room(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Reserve room for encoded records in the open batch, after appending the batch if it is too full.

        Raises KafkaError if that fails or they fit no batch.
        """
        size_bytes = size_of(records)
        if self._batch.take_room(size_bytes):
            return
        limit_bytes = self.log.max_batch_bytes
        self._batch.set_limit(limit_bytes)
        if self._batch.take_room(size_bytes):
            return
        size_bytes = fitting_size(records, limit_bytes)
        error = self.flush()
        if error is not None:
            raise error
        self._batch.set_limit(limit_bytes)
        self._batch.take_room(size_bytes)

    def flush(self) -> KafkaError | None:
        """Append the open batch, if any. Return the error its operations were answered with, or None."""
        batch = self._batch
        if not batch.records or self.state is not _ACTIVE:
            return None
        failure = self._writer.append(batch.records, self.next_offset)
        if failure is not None:
            return self._append_failed(failure)
        self.written_offset = self.next_offset
        self._batch = OpenBatch()
        self._defer(batch.events)
        self._advance()
        self._watch_commit()
        return None

    # ---------------------------------------------------------------------------------------------- append, then replay

    def _append_then_replay(self, result: CoordinatorResult[Any]) -> None:
        """Append after the open batch, then replay. Raises the error that prevents it."""
        if self._transactional is None and (result.producer is not None or result.marker is not None):
            raise TypeError("this shard does not support transactions")
        encoded = [encode_record(record) for record in result.records]
        failed = self.flush()
        if failed is not None:
            raise failed
        if result.producer is not None or result.marker is not None:
            self._abort_left_open(result.producer, result.marker)
        limit_bytes = self.log.max_batch_bytes
        if result.atomic:
            fitting_size(encoded, limit_bytes)
            self._append_and_replay(result, result.records, encoded)
        else:
            for records, part in split(result.records, encoded, limit_bytes):
                fitting_size(part, limit_bytes)
                self._append_and_replay(result, records, part)

    def _abort_left_open(self, producer: tuple[int, int] | None, marker: EndTxnMarker | None) -> None:
        """Abort the transaction left open before these records of a later transaction, or before this marker, if there is one."""
        found = None
        if producer is not None:
            found = self.log.left_open(*producer)
        elif marker is not None and marker.is_commit:
            # A transaction's marker has its epoch, or the next one (KIP-890).
            found = self.log.left_open(marker.producer_id, marker.producer_epoch - 1)
        if found is not None:
            self._append_and_replay(CoordinatorResult((), None, marker=found), (), ())

    def _append_and_replay(
        self,
        result: CoordinatorResult[Any],
        records: Sequence[CoordinatorRecord],
        encoded: Sequence[tuple[bytes, bytes | None]],
    ) -> None:
        """Append and replay one batch."""
        if self.state is not _ACTIVE:
            raise not_coordinator()
        offset = self.next_offset
        self.next_offset = offset + (len(encoded) or 1)
        failure = self._writer.append(encoded, self.next_offset, result.producer, result.marker)
        if failure is not None:
            raise self._append_failed(failure)
        self.written_offset = self.next_offset
        try:
            self._replay_appended(result, records, offset, is_committed=self.log.high_watermark >= self.next_offset)
        except Exception as error:
            # The log is ahead of the state, so the state is loaded again.
            self._environment.on_fault(f"cannot replay a record of partition {self.partition}", error)
            self._reload(self)
            raise not_coordinator() from error
        finally:
            self.context.snapshots.offset = READ_ONLY
        self._advance()
        if self.state is not _ACTIVE:
            raise not_coordinator()

    def _replay_appended(
        self, result: CoordinatorResult[Any], records: Sequence[CoordinatorRecord], offset: int, *, is_committed: bool
    ) -> None:
        """Replay records that were appended at ``offset``."""
        snapshots = self.context.snapshots
        snapshots.offset = COMMITTED if is_committed else offset
        shard = self._transactional
        if shard is not None and result.marker is not None:
            shard.replay_marker(result.marker)
        for record in records:
            if shard is not None and result.producer is not None:
                shard.replay_in_transaction(record, offset, result.producer[0])
            else:
                self.shard.replay(record, offset)
            offset += 1
            if not is_committed:
                snapshots.offset = offset

    # ----------------------------------------------------------------------------------------------- commits and failures

    def _advance(self) -> None:
        """Answer the operations below the high watermark, which may have moved."""
        if self._writer.is_appending:
            # An answer may trigger the next operation, which must not enter the batch being appended. The append calls this
            # method again.
            return
        try:
            committed_offset = min(self.log.high_watermark, self.written_offset)
        except KafkaError as error:
            self._environment.on_fault(f"partition {self.partition} loses its uncommitted records", error)
            self._reload(self)
            return
        if committed_offset <= self.committed_offset:
            return
        self.committed_offset = committed_offset
        self.context.snapshots.commit(committed_offset)
        self._answers.commit(self._deferred.take_completed(committed_offset))
        # Append the hooks' records before any answer, so that the next request does not find them pending.
        self.flush()
        self._answers.deliver()

    def _defer(self, events: list[DeferredEvent]) -> None:
        """Queue events until everything written is committed or the write timeout passes: replicas or controller may be away."""
        environment = self._environment
        self._deferred.add(self.written_offset, environment.clock.monotonic_ms() + environment.write_timeout_ms, events)

    def _watch_commit(self) -> None:
        """Set the deadline of the operations that wait for a commit."""
        if self._commit_deadline is None and self.state is _ACTIVE:
            deadline_ms = self._deferred.next_deadline_ms()
            if deadline_ms is not None:
                self._commit_deadline = self._environment.timer.call_at(deadline_ms, self._give_up)

    def _give_up(self) -> None:
        self._commit_deadline = None
        late = self._deferred.pass_deadline(self._environment.clock.monotonic_ms())
        self._answers.give_up(late, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the write was not replicated in time"))
        self._watch_commit()

    def _append_failed(self, error: Exception) -> KafkaError:
        """Return the error for the operations whose append failed. Those of the open batch are answered with it."""
        if self._writer.ends_at(self.written_offset):
            answer = operation_error(error)
            self._roll_back(answer)
            return answer
        # The log holds rolled-back records or another writer's records, or is unreadable. Only loading it again gives the state.
        self._reload(self)
        return not_coordinator()

    def _roll_back(self, error: KafkaError) -> None:
        """Undo everything not written, and fail the operations of the open batch."""
        self.context.snapshots.roll_back(self.written_offset)
        self.next_offset = self.written_offset
        events = self._batch.events
        self._batch = OpenBatch()
        self._fail(events, error)
        self._decide_queued()
