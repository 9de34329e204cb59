"""The context a shard is made with: its partition, the registry of its timelines, the clock, and deadlines.

A deadline has a key; setting it again replaces it. When it expires, its operation decides like any other, and its records are
appended and replayed. Unloading the shard drops all its deadlines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from odradek.coordinator.runtime.result import CoordinatorResult
    from odradek.timing.clock import Clock
    from odradek.timing.reply import Reply
    from odradek.timing.timer import Timer, TimerTask

# The delay before a deadline's operation is retried after a failed append; as in Kafka.
RETRY_BACKOFF_MS: Final = 500


class ShardContext:
    """The context of one shard, from a load to the next unload. ``write`` runs an operation on the shard, as a request would."""

    __slots__ = ("_after_answer", "_tasks", "clock", "is_open", "leader_epoch", "partition", "snapshots", "timer", "write")

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        timer: Timer,
        write: Callable[[Callable[[], CoordinatorResult[Any]]], Reply[Any]],
        after_answer: Callable[[Callable[[], object]], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.clock: Clock = timer.clock
        self.snapshots = SnapshotRegistry()
        self.write = write
        self.is_open = True
        self.timer = timer
        self._after_answer = after_answer
        self._tasks: dict[Hashable, TimerTask] = {}

    def __len__(self) -> int:
        """Return the number of deadlines set."""
        return len(self._tasks)

    def after_answer(self, callback: Callable[[], object]) -> None:
        """Call back once the answers of this operation have been delivered, unless the shard is unloaded by then.

        The callback runs when this turn of the event loop ends, or when the shard's next operation is submitted, whichever is
        first. So the next operation always finds it done.
        """
        self._after_answer(callback)

    def schedule(
        self, key: Hashable, delay_ms: float, operation: Callable[[], CoordinatorResult[Any]], *, retry: bool = True
    ) -> None:
        """Run ``operation`` in ``delay_ms``, replacing the deadline under ``key``. Does nothing once the shard is unloaded.

        If the append fails, the operation is retried after RETRY_BACKOFF_MS, unless ``retry`` is False or the key has been set
        again.
        """
        if not self.is_open:
            return
        task = self._tasks.get(key)
        if task is not None:
            task.cancel()
        self._tasks[key] = self.timer.call_after(delay_ms, lambda: self._expire(key, operation, retry=retry))

    def cancel(self, key: Hashable) -> bool:
        """Drop the deadline. Return False if there is none."""
        task = self._tasks.pop(key, None)
        return task is not None and task.cancel()

    def is_scheduled(self, key: Hashable) -> bool:
        """Return whether a deadline is set under ``key``."""
        return key in self._tasks

    def close(self) -> None:
        """Drop all deadlines; none can be set from now on."""
        self.is_open = False
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _expire(self, key: Hashable, operation: Callable[[], CoordinatorResult[Any]], *, retry: bool) -> None:
        del self._tasks[key]

        def finished(outcome: object) -> None:
            if retry and isinstance(outcome, KafkaError) and key not in self._tasks:
                self.schedule(key, RETRY_BACKOFF_MS, operation)

        self.write(operation).when_done(finished)
