"""Rates of counters that somebody reads now and then."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

# A rate is the mean over so long, and needs two readings.
WINDOW_MS: Final = 10_000.0
_LEAST_MS: Final = 100.0
_FORGOTTEN_MS: Final = 60_000.0


class Meter:
    """The readings of counters in the last seconds."""

    def __init__(self) -> None:
        self._readings: dict[Hashable, deque[tuple[float, float]]] = {}
        self._swept_ms = 0.0

    def rate(self, counter: Hashable, value: float, now_ms: float) -> float | None:
        """Note a reading, and return the counter's rate per second; None at the first reading. ``now_ms`` is monotonic."""
        self._sweep(now_ms)
        readings = self._readings.setdefault(counter, deque())
        if readings and value < readings[-1][1]:
            # The counter began anew, with its process or its topic.
            readings.clear()
        if not readings or now_ms - readings[-1][0] >= _LEAST_MS:
            readings.append((now_ms, value))
        while len(readings) > 2 and now_ms - readings[1][0] >= WINDOW_MS:
            readings.popleft()
        since_ms, before = readings[0]
        passed_ms = now_ms - since_ms
        return (value - before) * 1_000 / passed_ms if passed_ms >= _LEAST_MS else None

    def _sweep(self, now_ms: float) -> None:
        if now_ms - self._swept_ms < WINDOW_MS:
            return
        self._swept_ms = now_ms
        self._readings = {
            counter: readings for counter, readings in self._readings.items() if now_ms - readings[-1][0] < _FORGOTTEN_MS
        }
