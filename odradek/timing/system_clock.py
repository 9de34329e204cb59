"""The machine's clock, read several times for each request."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.timing.clock import ClockedTimer

# A call takes 39 ns where compiled, against 48 ns through the module.
_monotonic: Final = time.monotonic
_time_ns: Final = time.time_ns


def machine_time() -> str:
    """Return the wall time for a line of a log, such as ``2026-11-27T09:30:00.123456Z``."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class SystemClock:
    """The machine's time."""

    __slots__ = ()

    @property
    def passes_by_itself(self) -> bool:
        """True."""
        return True

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch."""
        return _time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds since about the machine's start."""
        return _monotonic() * 1000.0

    def machine_ms(self, duration_ms: float) -> float:
        """The same."""
        return duration_ms

    def attach(self, timer: ClockedTimer) -> None:
        """No effect: real time passes by itself, and `AsyncioDriver` wakes the timer."""

    def detach(self, timer: ClockedTimer) -> None:
        """No effect."""
