"""The port through which the broker is told the time, and the virtual clock; the real one is ``system_clock``.

A clock has two faces. The wall face (`now_ms`, milliseconds since the Unix epoch) stamps records and may jump when an
operator sets the machine's time; the monotonic face (`monotonic_ms`, milliseconds from an arbitrary start) never goes
back, and every deadline is measured on it. A virtual clock stands still until a test moves it, and runs what falls due on
the way.
"""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import Protocol


class ClockedTimer(Protocol):
    """What a virtual clock needs to know of a timer to run it."""

    def next_deadline_ms(self) -> float | None:
        """The monotonic time at which something falls due next; None when nothing is pending."""

    def advance(self) -> int:
        """Run what is due by now; the number of callbacks run."""


class Clock(Protocol):
    """The port through which everything outside this room is told the time."""

    @property
    def passes_by_itself(self) -> bool:
        """Whether an event loop is to be asked to wake timers; a clock that is moved runs them itself."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> float:
        """Milliseconds since an arbitrary start; never goes back."""

    def attach(self, timer: ClockedTimer) -> None:
        """Told by every timer that reads this clock when it is made."""

    def detach(self, timer: ClockedTimer) -> None:
        """Told by the timer when it closes."""


class VirtualClock:
    """Time that moves only when told to, and runs the timers that read it.

    `now_ms` is the wall time it starts at, `monotonic_ms` the monotonic one.
    """

    __slots__ = ("_monotonic_ms", "_timers", "_wall_offset_ms")

    @property
    def passes_by_itself(self) -> bool:
        """It moves when it is told to."""
        return False

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._monotonic_ms: float = monotonic_ms
        self._wall_offset_ms = now_ms - monotonic_ms
        # Each with the context in which it was made: what it runs belongs to the same broker.
        self._timers: dict[ClockedTimer, Context] = {}

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch, as set and moved."""
        return int(self._monotonic_ms) + self._wall_offset_ms

    def monotonic_ms(self) -> float:
        """Milliseconds that have passed by `advance`, and the start given."""
        return self._monotonic_ms

    def attach(self, timer: ClockedTimer) -> None:
        """Run this timer too as time passes."""
        self._timers[timer] = copy_context()

    def detach(self, timer: ClockedTimer) -> None:
        """Run this timer no longer; nothing happens when it was not attached."""
        self._timers.pop(timer, None)

    def set(self, now_ms: int) -> None:
        """Set the wall face alone, as an operator or NTP would, back as well as forth. Deadlines do not notice."""
        self._wall_offset_ms = now_ms - int(self._monotonic_ms)

    def advance(self, duration_ms: int) -> int:
        """Let `duration_ms` pass; the number of callbacks run.

        Everything that falls due on the way runs in the order of its deadline, over all timers (in the order they
        were made where deadlines are equal), with both faces reading that very moment. This includes what the
        callbacks themselves schedule. Raises ValueError when asked to go back.
        """
        if duration_ms < 0:
            raise ValueError(f"time does not go back: {duration_ms} ms")
        end_ms = self._monotonic_ms + duration_ms
        callbacks_run = 0
        while (due := self._next_due(end_ms)) is not None:
            deadline_ms, timer = due
            self._move_to(deadline_ms)
            # A copy, since a context cannot be entered twice, and a callback may advance the clock.
            callbacks_run += self._timers[timer].copy().run(timer.advance)
        self._move_to(end_ms)
        return callbacks_run

    def _next_due(self, end_ms: float) -> tuple[float, ClockedTimer] | None:
        earliest: tuple[float, ClockedTimer] | None = None
        for timer in self._timers:
            deadline_ms = timer.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= end_ms and (earliest is None or deadline_ms < earliest[0]):
                earliest = (deadline_ms, timer)
        return earliest

    def _move_to(self, monotonic_ms: float) -> None:
        # A deadline may lie in the past, and a callback may itself have advanced the clock beyond it.
        self._monotonic_ms = max(monotonic_ms, self._monotonic_ms)
