"""How long a teller may be silent: by a clock that stands still while the broker or the teller could not do anything.

A silent teller is stuck, or it was kept waiting: while the broker was away, which the run knows, or while the main thread of the
broker or of the teller was ready to run and the machine ran others, which the kernel counts (``schedstat``). These times excuse a
silence, and nothing else does. Where the kernel does not count, only the broker's absence does.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def waited_s(pid: int) -> float:
    """How long the main thread of a process has been ready to run and did not; 0 where that is not known."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class ServedClock:
    """Seconds in which the broker was up and did not wait for a processor; ``look`` often."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic, waited_s: Callable[[int], float] = waited_s) -> None:
        self.away_s = 0.0
        self.starved_s = 0.0
        self.waited_s = waited_s
        self._now_s = now_s
        self._pid = -1
        self._waited_s = 0.0

    def now_s(self) -> float:
        """Comparable with what this clock has shown before."""
        return self.wall_s() - self.away_s - self.starved_s

    def wall_s(self) -> float:
        """As on the clock on the wall."""
        return self._now_s()

    def look(self, pid: int) -> None:
        """``pid`` is the broker's, which runs."""
        waited_s = self.waited_s(pid)
        if pid == self._pid:
            self.starved_s += waited_s - self._waited_s
        self._pid, self._waited_s = pid, waited_s

    @contextmanager
    def away(self) -> Iterator[None]:
        """The broker is away within this."""
        began_s = self._now_s()
        try:
            yield
        finally:
            self.away_s += self._now_s() - began_s


class Silence:
    """How long the process ``pid`` has made no step, by the served clock, less the time in which it waited for a processor.

    What it and the broker waited at the same time counts twice; ``teller.LONGEST_SILENCE_S`` bounds all excuses.
    """

    def __init__(self, clock: ServedClock, pid: int) -> None:
        self._clock = clock
        self._pid = pid
        self._mark = 0
        self._note()

    def seconds(self, mark: int) -> float:
        """``mark`` changes with each step."""
        if mark != self._mark:
            self._mark = mark
            self._note()
        return self._clock.now_s() - self._since_s - (self._clock.waited_s(self._pid) - self._waited_s)

    def wall_seconds(self) -> float:
        """With all that excuses it."""
        return self._clock.wall_s() - self._wall_since_s

    def _note(self) -> None:
        self._wall_since_s = self._clock.wall_s()
        self._since_s = self._clock.now_s()
        self._waited_s = self._clock.waited_s(self._pid)
