"""Where operations wait for something to happen, or for their deadline: Kafka's DelayedOperationPurgatory.

An operation that cannot complete now is watched under keys. Whoever changes what operations may be waiting for (an append
moves a high watermark, a member rejoins) checks the key afterwards, and the operations under it are tried again. An
operation completes exactly once, by such a try or by force at its deadline, and leaves all its keys and the timer at once.

Kafka leaves completed operations in their watch lists until a reaper purges them, since there many threads share the
lists. Here one thread owns them, so an operation takes itself out, counts are exact and there is no garbage to bound.

Left out: locks, shards, the reaper thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from odradek.timing.timer import Timer, TimerTask


class DelayedOperation(ABC):
    """Something that completes once: as soon as `try_complete` finds it can, or at `deadline_ms` (monotonic) by force.

    `purgatory`, `watch_keys` and `timer_task` are the purgatory's notes on it: where it is, and what to undo when it leaves.
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
        """True from just before `on_complete` is called."""
        return self._is_completed

    @abstractmethod
    def try_complete(self) -> bool:
        """Look whether the operation can complete now; if so return `self.force_complete()`, otherwise False."""

    @abstractmethod
    def on_complete(self) -> None:
        """Finish the operation. Called exactly once; may check keys and hand in operations itself."""

    def on_expiration(self) -> None:  # noqa: B027 - most operations have nothing to add to their completion
        """Called after `on_complete` when it was the deadline that forced it."""

    def force_complete(self) -> bool:
        """Complete now, whatever the state of things; False when it was complete already."""
        if self._is_completed:
            return False
        self._is_completed = True
        if self.purgatory is not None:
            self.purgatory.note_completed(self)
        self.on_complete()
        return True


OperationT = TypeVar("OperationT", bound=DelayedOperation)


class Purgatory(Generic[OperationT]):
    """The operations of one kind that wait. `name` is Kafka's (`Fetch`, `Produce`, `Rebalance`, ...), for the metrics.

    Counts: `watched` (operations over all keys, one under three keys counts three times; Kafka's PurgatorySize), `delayed`
    (operations that wait; NumDelayedOperations); and, growing only, `completed` (in whatever way) and `expired` (those of
    them that their deadline forced).
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

        True when it was completed by this call's own try; then it has cost neither watching nor timer. Raises ValueError
        when it would have to wait under no key at all.
        """
        operation.purgatory = self
        checks_before = self._checks
        if operation.try_complete():
            return True
        if operation.is_completed:
            return False
        self._watch(operation, keys)
        # A key checked while the operation was being tried found it not yet watched. Had none been, nothing can have been
        # missed, for whoever changes something checks afterwards: so only then is a second, costly try worth while.
        if self._checks != checks_before and operation.try_complete():
            return True
        if operation.watch_keys:
            operation.timer_task = self._timer.call_at(operation.deadline_ms, lambda: self._expire(operation))
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try what is watched under `key`, in order of arrival; the number this completed."""
        self._checks += 1
        if not self._watchers:
            return 0
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        for operation in tuple(watchers):
            # One that has gone meanwhile was completed or cancelled by another's on_complete.
            if operation in watchers and operation.try_complete():
                completed += 1
        return completed

    def cancel_for_key(self, key: Hashable) -> list[OperationT]:
        """Let go of what is watched under `key`, uncompleted: from its other keys and the timer too. In order of arrival."""
        operations = list(self._watchers.get(key, ()))
        for operation in operations:
            self._release(operation)
            operation.purgatory = None
        return operations

    def note_completed(self, operation: OperationT) -> None:
        """Told by an operation that was handed in, when it completes in whatever way."""
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
