"""Deadlines: callbacks that run when the monotonic clock has passed a given time.

The pending tasks are in a binary heap ordered by (deadline, order of arrival). A cancelled task only drops its callback. Its
heap entry is removed when it reaches the top, or when cancelled entries outnumber pending ones and the heap is rebuilt without
them. So cancelling is O(1) amortised, and garbage is at most half of the heap (plus a small floor).

Kafka uses a hierarchy of timing wheels instead, for O(1) insertion. Here `heapq` is C code and a wheel would be bytecode: with
100,000 pending tasks, a push onto the heap takes less time than computing a wheel's bucket, and deadlines need no rounding to a
tick. Most tasks (a fetch's max wait, a session's timeout) are also pushed in the order of their deadlines. Such a push does not
climb the heap at all.

Left out: periodic tasks. Single-threaded: everything belongs to the loop thread.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

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

    __slots__ = ("_cancelled", "_clock", "_heap", "_sequence", "on_earlier_deadline")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # (deadline, order of arrival, task): the second keeps equal deadlines in order and tasks from being compared.
        self._heap: list[tuple[float, int, TimerTask]] = []
        self._sequence = 0
        self._cancelled = 0
        self.on_earlier_deadline: Callable[[float], None] | None = None
        clock.attach(self)

    @property
    def clock(self) -> Clock:
        """Return the clock; deadlines are measured on its monotonic face."""
        return self._clock

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
        return self.call_at(self._clock.monotonic_ms() + delay_ms, callback)

    def advance(self) -> int:
        """Run the due tasks in the order of their deadlines. Return the number of callbacks run.

        A task added by a callback also runs if it was due when `advance` was called. An exception of a callback passes through
        to the caller; the remaining tasks stay due, for the next `advance`.
        """
        now_ms = self._clock.monotonic_ms()
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
        self._clock.detach(self)

    def note_cancelled(self) -> None:
        """Count a cancelled task of this timer, and rebuild the heap if needed. The task calls it."""
        self._cancelled += 1
        if self._cancelled > COMPACTION_FLOOR and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].is_pending]
            heapify(self._heap)
            self._cancelled = 0
