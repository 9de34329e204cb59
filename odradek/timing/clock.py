"""The port through which the broker reads the time, and the virtual clock; the real clock is in ``system_clock``.

A clock has two faces. The wall face (`now_ms`, milliseconds since the Unix epoch) stamps records and may jump when an operator
sets the machine's time. The monotonic face (`monotonic_ms`, milliseconds from an arbitrary start) never goes back; every
deadline is measured on it. A virtual clock stands still until a test advances it, and then runs the due callbacks.
"""

from __future__ import annotations

from contextvars import Context, copy_context
from math import inf
from typing import Protocol


class ClockedTimer(Protocol):
    """A timer, as a virtual clock sees it."""

    def next_deadline_ms(self) -> float | None:
        """Return the monotonic time of the earliest deadline; None when nothing is pending."""

    def advance(self) -> int:
        """Run the callbacks that are due by now. Return their number."""


class Clock(Protocol):
    """The port through which all other packages read the time."""

    @property
    def passes_by_itself(self) -> bool:
        """Return whether time passes without `advance`: then an event loop must wake timers, else the clock runs them."""

    def now_ms(self) -> int:
        """Return wall time in milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start; never goes back."""

    def machine_ms(self, duration_ms: float) -> float:
        """Return how long an event loop has to wait for ``duration_ms`` of this clock; infinity while it stands still."""

    def attach(self, timer: ClockedTimer) -> None:
        """Add a timer. Every timer of this clock calls it when it is created."""

    def detach(self, timer: ClockedTimer) -> None:
        """Remove a timer. The timer calls it when it closes."""


class VirtualClock:
    """A clock that moves only when advanced, and runs its timers.

    `now_ms` is its initial wall time, `monotonic_ms` the initial monotonic time.
    """

    __slots__ = ("_monotonic_ms", "_timers", "_wall_offset_ms")

    @property
    def passes_by_itself(self) -> bool:
        """Return False: the clock moves when advanced."""
        return False

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._monotonic_ms: float = monotonic_ms
        self._wall_offset_ms = now_ms - monotonic_ms
        # Each timer with the context in which it was created: its callbacks belong to the same broker.
        self._timers: dict[ClockedTimer, Context] = {}

    def now_ms(self) -> int:
        """Return wall time in milliseconds since the Unix epoch, as set and advanced."""
        return int(self._monotonic_ms) + self._wall_offset_ms

    def monotonic_ms(self) -> float:
        """Return the initial monotonic time plus all advanced milliseconds."""
        return self._monotonic_ms

    def machine_ms(self, duration_ms: float) -> float:  # noqa: ARG002
        """Return infinity: the clock moves when advanced."""
        return inf

    def attach(self, timer: ClockedTimer) -> None:
        """Run this timer, too, as time passes."""
        self._timers[timer] = copy_context()

    def detach(self, timer: ClockedTimer) -> None:
        """Stop running this timer; no effect if it is not attached."""
        self._timers.pop(timer, None)

    def set(self, now_ms: int) -> None:
        """Set the wall face only, as an operator or NTP would, forward or back. Deadlines do not move."""
        self._wall_offset_ms = now_ms - int(self._monotonic_ms)

    def advance(self, duration_ms: int) -> int:
        """Let `duration_ms` pass. Return the number of callbacks run.

        All due callbacks run in the order of their deadlines, over all timers (equal deadlines: in the order of the timers'
        creation), while both faces read the deadline's time. This includes callbacks that callbacks schedule. Raises
        ValueError for a negative duration.
        """
        if duration_ms < 0:
            raise ValueError(f"time cannot go back: {duration_ms} ms")
        end_ms = self._monotonic_ms + duration_ms
        callbacks_run = 0
        while (due := self._next_due(end_ms)) is not None:
            deadline_ms, timer = due
            self._move_to(deadline_ms)
            # A copy, since a context cannot be entered twice, and a callback may itself advance the clock.
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
