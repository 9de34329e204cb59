"""The machine's clock, asked several times for each request."""

from __future__ import annotations

from time import monotonic, time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.timing.clock import ClockedTimer


class SystemClock:
    """The machine's time."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch."""
        return time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds since the machine started, or thereabouts."""
        return monotonic() * 1000.0

    def attach(self, timer: ClockedTimer) -> None:
        """Nothing to remember: real time passes by itself, and `AsyncioDriver` notices."""

    def detach(self, timer: ClockedTimer) -> None:
        """Nothing was remembered."""
