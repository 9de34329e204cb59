"""The base of every simulated world: a source of randomness, a clock, scheduled steps, and a record of events."""

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
    """``events`` has the last events: (virtual ms, format, arguments). ``counts`` counts requests, responses and faults."""

    def __init__(self, seed: int, show: Callable[[str], None] | None) -> None:
        self.rng = Random(seed)
        self.clock = VirtualClock()
        self.counts: Counter[str] = Counter()
        self.events: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=_LAST_EVENTS)
        self._show = show
        self._timer = Timer(self.clock)

    def note(self, event: str, *details: object) -> None:
        """Record an event."""
        now_ms = int(self.clock.monotonic_ms())
        self.events.append((now_ms, event, details))
        if self._show is not None:
            self._show(f"{now_ms:>8} {event % details}")

    def last_events(self) -> list[str]:
        """The last events, as lines."""
        return [f"{now_ms:>8} {event % details}" for now_ms, event, details in self.events]

    def at_tick(self, delay_ms: float, tick_ms: int, step: Callable[[], None]) -> None:
        """Schedule ``step`` in ``delay_ms``, rounded up to a multiple of ``tick_ms``, so that several steps coincide."""
        due_ms = self.clock.monotonic_ms() + delay_ms
        self._timer.call_at(-(-due_ms // tick_ms) * tick_ms, step)

    def next_due_ms(self, broker: Timer | None) -> float:
        """The time of the next step, here or of the broker's timer; infinity for none."""
        deadlines = [timer.next_deadline_ms() for timer in (self._timer, broker) if timer is not None]
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=float("inf"))
