"""What a controller does from time to time by itself."""

from collections.abc import Callable
from math import inf

from odradek.timing.timer import Timer, TimerTask

# Before a task that has not done all goes on: others have their turn.
_SOON_MS = 10


class PeriodicTasks:
    """Tasks that are run on ``timer`` until ``close``."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._next: dict[int, TimerTask] = {}

    def add(self, interval_ms: float, task: Callable[[], bool], due_in_ms: Callable[[], float] = lambda: inf) -> None:
        """Run ``task`` each ``interval_ms``, sooner if it is due sooner, and soon again where it says that more is to be done."""
        key = len(self._next)

        def run() -> None:
            has_more = False
            try:
                has_more = task()
            finally:
                # Whatever befalls one turn, there is a next one.
                self._next[key] = self._timer.call_after(_SOON_MS if has_more else min(interval_ms, due_in_ms()), run)

        self._next[key] = self._timer.call_after(interval_ms, run)

    def close(self) -> None:
        """Cancel all tasks."""
        for task in self._next.values():
            task.cancel()
