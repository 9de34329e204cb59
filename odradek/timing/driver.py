"""Joins a timer to an asyncio event loop, with at most one loop timer armed however many tasks are pending.

A loop timer is armed for the earliest known deadline. If that task is cancelled, the loop timer stays: it fires once without
effect and is armed anew. This costs less than re-arming at every cancel, since nearly all tasks are cancelled.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from odradek.timing.timer import Timer

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Handle
    from collections.abc import Callable, Coroutine

    from odradek.timing.timer import Timer


class AsyncioDriver:
    """Runs `timer` on `loop` until closed. Only for a clock that passes by itself: a `VirtualClock` runs its own timers.

    `wakings` counts the wake-ups by the loop, and `late_ms` sums up their lateness: they measure how far the loop lags behind.
    """

    __slots__ = ("_armed_deadline_ms", "_asked_ms", "_handle", "_loop", "_timer", "late_ms", "wakings")

    def __init__(self, timer: Timer, loop: AbstractEventLoop) -> None:
        self._timer = timer
        self._loop = loop
        self._handle: Handle | None = None
        self._armed_deadline_ms = inf
        self._asked_ms = 0.0
        self.wakings = 0
        self.late_ms = 0.0
        timer.on_earlier_deadline = self._arm
        self._arm_next()

    def close(self) -> None:
        """Detach from loop and timer; the timer's tasks stay pending."""
        self._timer.on_earlier_deadline = None
        self._disarm()

    def rearm(self) -> None:
        """Arm the loop timer again, because the clock was moved, or changed its speed."""
        self._disarm()
        if self._timer.on_earlier_deadline is not None:
            self._arm_next()

    def _arm(self, deadline_ms: float) -> None:
        if deadline_ms >= self._armed_deadline_ms:
            return
        self._disarm()
        clock = self._timer.clock
        now_ms = clock.monotonic_ms()
        wait_ms = clock.machine_ms(max(deadline_ms - now_ms, 0.0))
        if wait_ms == inf:
            return
        self._armed_deadline_ms = deadline_ms
        delay_ms = ceil(wait_ms)
        self._asked_ms = max(deadline_ms, now_ms) + delay_ms - wait_ms
        # Rounded up to a resolution that every loop has: uvloop counts whole milliseconds. A timer that fired a fraction too
        # early would find nothing due, and spin until it is.
        self._handle = self._loop.call_soon(self._fire) if delay_ms == 0 else self._loop.call_later(delay_ms / 1000, self._fire)

    def _arm_next(self) -> None:
        deadline_ms = self._timer.next_deadline_ms()
        if deadline_ms is not None:
            self._arm(deadline_ms)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._armed_deadline_ms = inf

    def _fire(self) -> None:
        self._handle = None
        self.wakings += 1
        self.late_ms += max(self._timer.clock.monotonic_ms() - self._asked_ms, 0.0)
        # While callbacks run, new tasks need no loop timer: the earliest one is armed afterwards.
        self._armed_deadline_ms = -inf
        try:
            self._timer.advance()
        finally:
            self._armed_deadline_ms = inf
            if self._timer.on_earlier_deadline is not None:
                self._arm_next()


def loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """Return uvloop's loop factory if it is installed, else None, for the standard library's loop."""
    with suppress(ImportError):
        import uvloop  # not on Windows

        return uvloop.new_event_loop
    return None


class OwnTasks:
    """The tasks of one owner that nobody awaits. An event loop alone keeps no task from the garbage collector."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` on the running loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Cancel the tasks that have not ended."""
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Wait until all have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Wakeup:
    """A wake-up call for one waiting task. A ``wake`` while nobody waits ends the next wait."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._is_woken = False
        self._waiting: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """End the wait, or the next one."""
        self._is_woken = True
        self._end()

    def forget(self) -> None:
        """Forget an earlier ``wake``, so that the next wait lasts."""
        self._is_woken = False

    async def wait(self, duration_ms: float) -> None:
        """Wait ``duration_ms``, or until woken."""
        if not self._is_woken:
            self._waiting = asyncio.get_running_loop().create_future()
            task = self._timer.call_after(duration_ms, self._end)
            try:
                await self._waiting
            finally:
                task.cancel()
                self._waiting = None
        self._is_woken = False

    def _end(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
