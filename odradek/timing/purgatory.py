"""Operations that wait for an event or for their deadline: Kafka's DelayedOperationPurgatory.

An operation that cannot complete now is watched under keys. Code that changes awaited state (an append moves a high watermark,
a member rejoins) checks the key afterwards. Then the operations under that key are tried again. An
operation completes exactly once, by such a try or at its deadline by force. It then leaves all its keys and the timer at once.

Kafka leaves completed operations in their watch lists until a reaper purges them, since many threads share the lists. Here one
thread owns the lists, so an operation removes itself, counts are exact, and no garbage accumulates.

Left out: locks, shards, the reaper thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from odradek.timing.timer import Timer, TimerTask


class DelayedOperation(ABC):
    """An operation that completes once: as soon as `try_complete` succeeds, or at `deadline_ms` (monotonic) by force.

    `purgatory`, `watch_keys` and `timer_task` belong to the purgatory: they locate the operation, and are undone when it leaves.
    """

    __slots__ = ("_is_completed", "deadline_ms", "purgatory", "timer_task", "watch_keys")

    def __init__(self, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self._is_completed = False
        self.purgatory: Purgatory[Any] | None = None
        self.watch_keys: tuple[Hashable, ...] = ()
        self.timer_task: TimerTask | None = None

    @property
    def is_completed(self) -> bool:
        """Return whether the operation is complete. True from just before `on_complete` is called."""
        return self._is_completed

    @abstractmethod
    def try_complete(self) -> bool:
        """Check whether the operation can complete now. If so return `self.force_complete()`, otherwise False."""

    @abstractmethod
    def on_complete(self) -> None:
        """Finish the operation. Called exactly once; may check keys and add operations itself."""

    def on_expiration(self) -> None:  # noqa: B027 - most operations have nothing to add to their completion
        """Called after `on_complete` if the deadline forced the completion."""

    def force_complete(self) -> bool:
        """Complete now, unconditionally. Return False if it is complete already."""
        if self._is_completed:
            return False
        self._is_completed = True
        if self.purgatory is not None:
            self.purgatory.note_completed(self)
        self.on_complete()
        return True


OperationT = TypeVar("OperationT", bound=DelayedOperation)


class Purgatory(Generic[OperationT]):
    """The waiting operations of one kind. `name` is Kafka's (`Fetch`, `Produce`, `Rebalance`, ...), for the metrics.

    Gauges: `watched`, the operations over all keys (one under three keys counts three times; Kafka's PurgatorySize), and
    `delayed`, the operations that wait (NumDelayedOperations). Counters: `completed`, in whatever way, and `expired`,
    completed by their deadline.
    """

    __slots__ = ("_checks", "_timer", "_watchers", "completed", "delayed", "expired", "name", "watched")

    def __init__(self, name: str, timer: Timer) -> None:
        self.name = name
        self.watched = 0
        self.delayed = 0
        self.completed = 0
        self.expired = 0
        self._timer = timer
        # The inner dicts are sets that keep the order of arrival; none is ever empty.
        self._watchers: dict[Hashable, dict[OperationT, None]] = {}
        self._checks = 0

    def try_complete_else_watch(self, operation: OperationT, keys: Iterable[Hashable]) -> bool:
        """Complete `operation` if it can complete now, otherwise watch it under `keys` until its deadline.

        Return True if this call completed it; then it is neither watched nor timed. Raises ValueError if it would wait under
        no key.
        """
        operation.purgatory = self
        checks_before = self._checks
        if operation.try_complete():
            return True
        if operation.is_completed:
            return False
        self._watch(operation, keys)
        # A key checked during the first try did not yet watch this operation, so a second, costly try is needed. If no key was
        # checked, no change was missed, since every change is followed by a check.
        if self._checks != checks_before and operation.try_complete():
            return True
        if operation.watch_keys:
            operation.timer_task = self._timer.call_at(operation.deadline_ms, lambda: self._expire(operation))
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations under `key`, in order of arrival. Return the number completed."""
        self._checks += 1
        if not self._watchers:
            return 0
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        for operation in tuple(watchers):
            # An operation may be gone: another one's on_complete may have completed or cancelled it.
            if operation in watchers and operation.try_complete():
                completed += 1
        return completed

    def cancel_for_key(self, key: Hashable) -> list[OperationT]:
        """Remove the operations under `key`, uncompleted, from all their keys and the timer. Return them in order of arrival."""
        operations = list(self._watchers.get(key, ()))
        for operation in operations:
            self._release(operation)
            operation.purgatory = None
        return operations

    def waiting(self) -> list[OperationT]:
        """Return all operations that wait, each once."""
        return list(dict.fromkeys(operation for watchers in self._watchers.values() for operation in watchers))

    def note_completed(self, operation: OperationT) -> None:
        """Note that an operation of this purgatory has completed, in whatever way. The operation calls it."""
        self.completed += 1
        self._release(operation)

    def _watch(self, operation: OperationT, keys: Iterable[Hashable]) -> None:
        operation.watch_keys = tuple(dict.fromkeys(keys))
        if not operation.watch_keys:
            raise ValueError(f"an operation must be watched under at least one key in purgatory {self.name}")
        for key in operation.watch_keys:
            self._watchers.setdefault(key, {})[operation] = None
        self.watched += len(operation.watch_keys)
        self.delayed += 1

    def _release(self, operation: OperationT) -> None:
        keys = operation.watch_keys
        if not keys:
            return
        for key in keys:
            watchers = self._watchers[key]
            del watchers[operation]
            if not watchers:
                del self._watchers[key]
        self.watched -= len(keys)
        self.delayed -= 1
        operation.watch_keys = ()
        if operation.timer_task is not None:
            operation.timer_task.cancel()
            operation.timer_task = None

    def _expire(self, operation: OperationT) -> None:
        if operation.force_complete():
            self.expired += 1
            operation.on_expiration()
