"""Requests that wait until records are safe: Produce and DeleteRecords, and the flushes that producers share.

A Produce waits until its batches are replicated, or flushed. A DeleteRecords waits until all replicas have moved their log start
offsets: a follower that has not could become leader and serve the deleted records again.

``GroupCommit`` does the syncs that ``flush.messages`` demands before an append is acknowledged. An append that makes a flush due
is in the log and waits. At the end of this turn of the event loop, a thread syncs the log once for all of the turn's appends,
while the loop goes on. Later appends wait for that log's next sync, which begins as soon as this one is over. Then the high
watermark moves: consumers see, and producers are told of, only records that are on disk. One thread at a time syncs a log.
Different logs are synced by different threads, so that a journalling file system can merge their writes. If the background has no
threads, the sync is done in the loop's next turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC
from odradek.protocol.errors import ErrorCode
from odradek.timing.timer import DelayedOperation

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.storage.directories.upkeep import LogFlusher
    from odradek.storage.log.log import Log
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Purgatory


class DelayedProduce(DelayedOperation):
    """A Produce that completes when every batch is as safe as ``acks`` ask for, or at the deadline.

    ``waiting`` holds (partition, last offset of the batch). ``respond`` is called with the error code of each:

    - REQUEST_TIMED_OUT: the batch was not safe by the deadline.
    - KAFKA_STORAGE_ERROR: the partition went offline meanwhile, or its log cannot be synced.
    - NOT_LEADER_OR_FOLLOWER: another broker leads now.
    - NOT_ENOUGH_REPLICAS_AFTER_APPEND: replicated, but on fewer than ``min.insync.replicas`` by now.

    A batch that was safe once stays so, whatever becomes of its partition while others are waited for.
    """

    __slots__ = ("_acks", "_codes", "_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], acks: int, respond: Callable[[list[ErrorCode]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._acks = acks
        self._waiting = waiting
        # None while it is open whether the batch is safe.
        self._codes: list[ErrorCode | None] = [None] * len(waiting)
        self._respond = respond

    def try_complete(self) -> bool:
        """See DelayedOperation."""
        return self._decide() and self.force_complete()

    def _decide(self) -> bool:
        """Note what is certain by now. Return whether all is."""
        is_open = False
        for number, (partition, last_offset) in enumerate(self._waiting):
            if self._codes[number] is None:
                code = self._codes[number] = _code(partition, last_offset, self._acks)
                is_open = is_open or code is None
        return not is_open

    def on_complete(self) -> None:
        """See DelayedOperation."""
        self._decide()
        self._respond([ErrorCode.REQUEST_TIMED_OUT if code is None else code for code in self._codes])


def _code(partition: Partition, last_offset: int, acks: int) -> ErrorCode | None:
    """Return the outcome of a batch; None while it is open."""
    log = partition.log
    if log is None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.leader is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not partition.is_acknowledged(last_offset, acks):
        return ErrorCode.KAFKA_STORAGE_ERROR if log.has_lost_sync else None
    return ErrorCode.NONE if partition.has_enough_replicas(acks) else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class DelayedDeleteRecords(DelayedOperation):
    """A DeleteRecords that completes when all live replicas start at the requested offset, or at the deadline.

    ``waiting`` holds (partition, offset). ``respond`` is called with (low watermark, error code) of each: NOT_LEADER_OR_FOLLOWER
    if another broker leads now, REQUEST_TIMED_OUT if followers were too slow, KAFKA_STORAGE_ERROR if the partition is offline.
    """

    __slots__ = ("_outcomes", "_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], respond: Callable[[list[tuple[int, ErrorCode]]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._waiting = waiting
        # None while replicas still start before the offset.
        self._outcomes: list[tuple[int, ErrorCode] | None] = [None] * len(waiting)
        self._respond = respond

    def try_complete(self) -> bool:
        """See DelayedOperation."""
        return self._decide() and self.force_complete()

    def _decide(self) -> bool:
        """Note what is certain by now. Return whether all is."""
        is_open = False
        for number, (partition, offset) in enumerate(self._waiting):
            if self._outcomes[number] is None:
                outcome = self._outcomes[number] = _outcome(partition, offset)
                is_open = is_open or outcome is None
        return not is_open

    def on_complete(self) -> None:
        """See DelayedOperation."""
        self._decide()
        told: list[tuple[int, ErrorCode]] = []
        for (partition, _), outcome in zip(self._waiting, self._outcomes, strict=True):
            low_watermark = partition.low_watermark
            told.append(outcome or (-1 if low_watermark is None else low_watermark, ErrorCode.REQUEST_TIMED_OUT))
        self._respond(told)


def _outcome(partition: Partition, offset: int) -> tuple[int, ErrorCode] | None:
    low_watermark = partition.low_watermark
    if low_watermark is None:
        return -1, ErrorCode.KAFKA_STORAGE_ERROR
    if partition.leader is None:
        return -1, ErrorCode.NOT_LEADER_OR_FOLLOWER
    return None if low_watermark < offset else (low_watermark, ErrorCode.NONE)


_THREADS: Final = "flush"


class GroupCommit:
    """The syncs of one broker that producers wait for. Loop thread only."""

    def __init__(
        self,
        *,
        partitions: Partitions,
        produce_purgatory: Purgatory[DelayedOperation],
        flusher: LogFlusher,
        clock: Clock,
        background: Background,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """``call_soon`` is the event loop's."""
        self._partitions = partitions
        self._produce_purgatory = produce_purgatory
        self._flusher = flusher
        self._clock = clock
        self._background = background
        self._call_soon = call_soon
        # Logs whose sync is due and has not begun, with their partitions; and logs that are being synced.
        self._due: dict[Log, Partition | None] = {}
        self._running: set[Log] = set()
        self._is_scheduled = False

    def request(self, log: Log) -> None:
        """Sync ``log`` soon; the transaction log at once. KafkaError: KAFKA_STORAGE_ERROR if a sync at once fails."""
        if log.topic == TRANSACTION_STATE_TOPIC:
            # A transaction ends with several appends, each after the one before is on disk. Its producer is told after the first.
            # If the rest were slow, the producer's next transaction would be refused and retried, as with Kafka.
            log.flush(self._clock.now_ms())
            return
        self._due[log] = self._partitions.get(log.topic, log.partition)
        if not self._is_scheduled and log not in self._running:
            self._is_scheduled = True
            self._call_soon(self._begin_all)

    async def finish(self) -> None:
        """Wait until no sync is due or running."""
        while self._running or self._is_scheduled:
            await asyncio.sleep(0)
            await self._background.finish()

    def _begin_all(self) -> None:
        self._is_scheduled = False
        for log in [log for log in self._due if log not in self._running]:
            self._begin(log)

    def _begin(self, log: Log) -> None:
        partition = self._due.pop(log)
        if not log.awaits_flush or log.has_lost_sync:
            # Something else has synced it meanwhile, or it cannot be synced.
            self._release(log, partition)
            return
        try:
            task = log.flush_state.commit_task()
        except OSError as error:
            log.flush_state.sync_failed(error)
            self._release(log, partition)
            return
        self._running.add(log)

        def done(outcome: Future[None]) -> None:
            self._running.discard(log)
            error = outcome.exception()
            if error is not None and not isinstance(error, OSError):
                error = OSError(repr(error))
            self._flusher.finished(log, task, error, self._clock.now_ms())
            self._release(log, partition)
            if log in self._due:
                self._begin(log)

        self._background.run(task.run, done, name=_THREADS)

    def _release(self, log: Log, partition: Partition | None) -> None:
        """Complete the requests that wait for ``log``, after its sync or failure."""
        if partition is not None:
            if partition.log is log and not log.has_lost_sync:
                partition.flushed()
            else:
                partition.flush_failed()
            self._produce_purgatory.check_and_complete(partition)
