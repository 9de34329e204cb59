"""What every simulated world has: a source of chance, a clock, things that happen later, and notes of what has happened."""

from __future__ import annotations

from collections import Counter, deque
from random import Random
from typing import TYPE_CHECKING

from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

_LAST_EVENTS = 60


class Chronicle:
    """``events`` has what happened last: (virtual ms, format, arguments). ``counts`` what was asked, answered, and went wrong."""

    def __init__(self, seed: int, show: Callable[[str], None] | None) -> None:
        self.rng = Random(seed)
        self.clock = VirtualClock()
        self.counts: Counter[str] = Counter()
        self.events: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=_LAST_EVENTS)
        self._show = show
        self._timer = Timer(self.clock)

    def note(self, event: str, *details: object) -> None:
        """Something happens."""
        now_ms = int(self.clock.monotonic_ms())
        self.events.append((now_ms, event, details))
        if self._show is not None:
            self._show(f"{now_ms:>8} {event % details}")

    def last_events(self) -> list[str]:
        """The last of them, as lines."""
        return [f"{now_ms:>8} {event % details}" for now_ms, event, details in self.events]

    def at_tick(self, delay_ms: float, tick_ms: int, step: Callable[[], None]) -> None:
        """In ``delay_ms``, rounded up to a whole ``tick_ms`` so that several things happen at one moment."""
        due_ms = self.clock.monotonic_ms() + delay_ms
        self._timer.call_at(-(-due_ms // tick_ms) * tick_ms, step)

    def next_due_ms(self, broker: Timer | None) -> float:
        """When the next thing happens, here or by the broker's timer; infinity where nothing will."""
        deadlines = [timer.next_deadline_ms() for timer in (self._timer, broker) if timer is not None]
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=float("inf"))
