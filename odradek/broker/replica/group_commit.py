"""Shared flushes for many producers: the syncs that ``flush.messages`` demands before an append is acknowledged.

An append that makes a flush due is in the log and waits. At the end of this turn of the event loop, a thread syncs the log once
for all of the turn's appends, while the loop goes on. Later appends wait for that log's next sync, which begins as soon as this
one is over. Then the high watermark moves: consumers see, and producers are told of, only records that are on disk.

One thread at a time syncs a log. Different logs are synced by different threads, so that a journalling file system can merge
their writes. If the background has no threads, the sync is done in the loop's next turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.storage.directories.log_flusher import LogFlusher
    from odradek.storage.log.log import Log
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.purgatory import DelayedOperation, Purgatory

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
