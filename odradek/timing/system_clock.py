"""The machine's clock, asked several times for each request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.timing.clock import ClockedTimer

# 39 ns a call where compiled, and 48 ns by way of the module.
_monotonic: Final = time.monotonic
_time_ns: Final = time.time_ns


class SystemClock:
    """The machine's time."""

    __slots__ = ()

    @property
    def passes_by_itself(self) -> bool:
        """It does."""
        return True

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch."""
        return _time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds since the machine started, or thereabouts."""
        return _monotonic() * 1000.0

    def attach(self, timer: ClockedTimer) -> None:
        """Nothing to remember: real time passes by itself, and `AsyncioDriver` notices."""

    def detach(self, timer: ClockedTimer) -> None:
        """Nothing was remembered."""
