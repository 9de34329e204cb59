"""Deadlines: callbacks to run when the monotonic clock has passed a given moment.

The pending tasks lie in a binary heap ordered by (deadline, order of arrival). A cancelled task only drops its callback;
its heap entry is thrown away when it comes to the top, or when cancelled entries outnumber pending ones and the heap is
rebuilt without them. So cancelling is O(1) amortised, and garbage is never more than half of the heap (plus a small floor).

Kafka keeps a hierarchy of timing wheels instead, for O(1) insertion. Here `heapq` is C code and the wheel would be
bytecode: with 100,000 pending, pushing onto the heap takes less time than computing a wheel's bucket, and deadlines need
no rounding to a tick. Most tasks (a fetch's max wait, a session's timeout) are also pushed in the order of their
deadlines, for which a push does not climb the heap at all.

Left out: periodic tasks. Single-threaded: all of it belongs to the loop thread.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timing.clock import Clock

# Below this many cancelled entries the heap is not worth rebuilding.
COMPACTION_FLOOR: Final = 64


class TimerTask:
    """One callback and its deadline, as handed out by `Timer.call_at`. It runs at most once."""

    __slots__ = ("_callback", "_timer", "deadline_ms")

    def __init__(self, timer: Timer, deadline_ms: float, callback: Callable[[], object]) -> None:
        self._timer = timer
        self._callback: Callable[[], object] | None = callback
        self.deadline_ms = deadline_ms

    @property
    def is_pending(self) -> bool:
        """True until the callback starts or the task is cancelled."""
        return self._callback is not None

    def cancel(self) -> bool:
        """Keep the callback from running; False when it has run, is running, or was cancelled before."""
        if self._callback is None:
            return False
        self._callback = None
        self._timer.note_cancelled()
        return True

    def take_callback(self) -> Callable[[], object] | None:
        """The timer's way to run or drop the task: the callback, once; None from then on."""
        callback = self._callback
        self._callback = None
        return callback


class Timer:
    """The pending deadlines of one event loop.

    Somebody has to call `advance`: `AsyncioDriver` on a real loop, `VirtualClock.advance` in a test. `on_earlier_deadline`
    is called with the new deadline whenever a task is added that is due before all others.
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
        """The clock whose monotonic face the deadlines are measured on."""
        return self._clock

    def __len__(self) -> int:
        """The number of pending tasks; cancelled ones do not count."""
        return len(self._heap) - self._cancelled

    def call_at(self, deadline_ms: float, callback: Callable[[], object]) -> TimerTask:
        """Run `callback` when the monotonic clock reads `deadline_ms` or more; never before the next `advance`."""
        task = TimerTask(self, deadline_ms, callback)
        heappush(self._heap, (deadline_ms, self._sequence, task))
        self._sequence += 1
        if self._heap[0][2] is task and self.on_earlier_deadline is not None:
            self.on_earlier_deadline(deadline_ms)
        return task

    def call_after(self, delay_ms: float, callback: Callable[[], object]) -> TimerTask:
        """Run `callback` once `delay_ms` have passed from now."""
        return self.call_at(self._clock.monotonic_ms() + delay_ms, callback)

    def advance(self) -> int:
        """Run what is due by now, in the order of deadlines; the number of callbacks run.

        What the callbacks add runs too when it is due by the moment `advance` was called. A callback's exception
        passes through to the caller; the callbacks after it stay due, for the next `advance`.
        """
        now_ms = self._clock.monotonic_ms()
        callbacks_run = 0
        # self._heap is looked up anew each time, since a callback may compact it.
        while self._heap and self._heap[0][0] <= now_ms:
            callback = heappop(self._heap)[2].take_callback()
            if callback is None:
                self._cancelled -= 1
                continue
            callbacks_run += 1
            callback()
        return callbacks_run

    def next_deadline_ms(self) -> float | None:
        """When the earliest pending task is due; None when nothing is pending."""
        heap = self._heap
        while heap:
            deadline_ms, _, task = heap[0]
            if task.is_pending:
                return deadline_ms
            heappop(heap)
            self._cancelled -= 1
        return None

    def close(self) -> None:
        """Cancel everything and part from the clock."""
        for _, _, task in self._heap:
            task.take_callback()
        self._heap = []
        self._cancelled = 0
        self._clock.detach(self)

    def note_cancelled(self) -> None:
        """Told by a task of this timer that it will not run."""
        self._cancelled += 1
        if self._cancelled > COMPACTION_FLOOR and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].is_pending]
            heapify(self._heap)
            self._cancelled = 0
