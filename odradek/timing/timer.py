"""Deadlines, and operations that wait for an event or for their deadline: ``Timer`` and ``Purgatory``.

A timer's callback runs when the monotonic clock has passed a given time. The pending tasks are in a binary heap ordered by
(deadline, order of arrival). A cancelled task only drops its callback. Its heap entry is removed when it reaches the top, or
when cancelled entries outnumber pending ones and the heap is rebuilt without them. So cancelling is O(1) amortised, and garbage
is at most half of the heap (plus a small floor).

Kafka uses a hierarchy of timing wheels instead, for O(1) insertion. Here `heapq` is C code and a wheel would be bytecode: with
100,000 pending tasks, a push onto the heap takes less time than computing a wheel's bucket, and deadlines need no rounding to a
tick. Most tasks (a fetch's max wait, a session's timeout) are also pushed in the order of their deadlines. Such a push does not
climb the heap at all.

The purgatory is Kafka's DelayedOperationPurgatory. An operation that cannot complete now is watched under keys. Code that
changes awaited state (an append moves a high watermark, a member rejoins) checks the key afterwards. Then the operations under
that key are tried again. An operation completes exactly once, by such a try or at its deadline by force. It then leaves all its
keys and the timer at once.

Kafka leaves completed operations in their watch lists until a reaper purges them, since many threads share the lists. Here one
thread owns the lists, so an operation removes itself, counts are exact, and no garbage accumulates.

Left out: periodic tasks, locks, shards, the reaper thread. Single-threaded: everything belongs to the loop thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from odradek.timing.clock import Clock

# With fewer cancelled entries than this, the heap is not worth rebuilding.
COMPACTION_FLOOR: Final = 64


class TimerTask:
    """A callback and its deadline, created by `Timer.call_at`. It runs at most once."""

    __slots__ = ("_callback", "_timer", "deadline_ms")

    def __init__(self, timer: Timer, deadline_ms: float, callback: Callable[[], object]) -> None:
        self._timer = timer
        self._callback: Callable[[], object] | None = callback
        self.deadline_ms = deadline_ms

    @property
    def is_pending(self) -> bool:
        """Return whether the task is pending: until the callback starts or the task is cancelled."""
        return self._callback is not None

    def cancel(self) -> bool:
        """Keep the callback from running. Return False if it has run, is running, or was cancelled before."""
        if self._callback is None:
            return False
        self._callback = None
        self._timer.note_cancelled()
        return True

    def take_callback(self) -> Callable[[], object] | None:
        """Return the callback at the first call, then None. For the timer, which runs or drops the task."""
        callback = self._callback
        self._callback = None
        return callback


class Timer:
    """The pending deadlines of one event loop.

    `advance` must be called: by `AsyncioDriver` on a real loop, by `VirtualClock.advance` in a test. `on_earlier_deadline` is
    called with the new deadline whenever an added task is due before all others.
    """

    __slots__ = ("_cancelled", "_heap", "_sequence", "clock", "on_earlier_deadline")

    def __init__(self, clock: Clock) -> None:
        # Deadlines are measured on its monotonic face.
        self.clock = clock
        # (deadline, order of arrival, task): the second keeps equal deadlines in order and tasks from being compared.
        self._heap: list[tuple[float, int, TimerTask]] = []
        self._sequence = 0
        self._cancelled = 0
        self.on_earlier_deadline: Callable[[float], None] | None = None
        clock.attach(self)

    def __len__(self) -> int:
        """Return the number of pending tasks, without cancelled ones."""
        return len(self._heap) - self._cancelled

    def call_at(self, deadline_ms: float, callback: Callable[[], object]) -> TimerTask:
        """Run `callback` when the monotonic clock reads `deadline_ms` or more; at the earliest in the next `advance`."""
        task = TimerTask(self, deadline_ms, callback)
        heappush(self._heap, (deadline_ms, self._sequence, task))
        self._sequence += 1
        if self._heap[0][2] is task and self.on_earlier_deadline is not None:
            self.on_earlier_deadline(deadline_ms)
        return task

    def call_after(self, delay_ms: float, callback: Callable[[], object]) -> TimerTask:
        """Run `callback` when `delay_ms` have passed from now."""
        return self.call_at(self.clock.monotonic_ms() + delay_ms, callback)

    def advance(self) -> int:
        """Run the due tasks in the order of their deadlines. Return the number of callbacks run.

        A task added by a callback also runs if it was due when `advance` was called. An exception of a callback passes through
        to the caller; the remaining tasks stay due, for the next `advance`.
        """
        now_ms = self.clock.monotonic_ms()
        callbacks_run = 0
        # self._heap is read again in each iteration, since a callback may rebuild it.
        while self._heap and self._heap[0][0] <= now_ms:
            callback = heappop(self._heap)[2].take_callback()
            if callback is None:
                self._cancelled -= 1
                continue
            callbacks_run += 1
            callback()
        return callbacks_run

    def next_deadline_ms(self) -> float | None:
        """Return the deadline of the earliest pending task; None if no task is pending."""
        heap = self._heap
        while heap:
            deadline_ms, _, task = heap[0]
            if task.is_pending:
                return deadline_ms
            heappop(heap)
            self._cancelled -= 1
        return None

    def close(self) -> None:
        """Cancel all tasks and detach from the clock."""
        for _, _, task in self._heap:
            task.take_callback()
        self._heap = []
        self._cancelled = 0
        self.clock.detach(self)

    def note_cancelled(self) -> None:
        """Count a cancelled task of this timer, and rebuild the heap if needed. The task calls it."""
        self._cancelled += 1
        if self._cancelled > COMPACTION_FLOOR and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].is_pending]
            heapify(self._heap)
            self._cancelled = 0


class DelayedOperation(ABC):
    """An operation that completes once: as soon as `try_complete` succeeds, or at `deadline_ms` (monotonic) by force.

    `purgatory`, `watch_keys` and `timer_task` belong to the purgatory: they locate the operation, and are undone when it leaves.
    """

    __slots__ = ("deadline_ms", "is_completed", "purgatory", "timer_task", "watch_keys")

    def __init__(self, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        # True from just before `on_complete` is called.
        self.is_completed = False
        self.purgatory: Purgatory[Any] | None = None
        self.watch_keys: tuple[Hashable, ...] = ()
        self.timer_task: TimerTask | None = None

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
        if self.is_completed:
            return False
        self.is_completed = True
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

    def check_together(self, keys: Iterable[Hashable]) -> None:
        """Try the operations under any of `keys`, each once."""
        self._checks += 1
        for operation in dict.fromkeys(operation for key in keys for operation in self._watchers.get(key, ())):
            if not operation.is_completed:
                operation.try_complete()

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
