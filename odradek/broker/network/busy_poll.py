"""Looking for the next request before the event loop sleeps.

Between requests the loop would sleep. Waking costs more than many a request: the wake-up itself, and a processor that has gone
cold. While clients come back within ``socket.busy.poll.us`` of their last answer, the loop polls its sockets again instead of
sleeping; other work is done between two looks. Polling stops when clients take longer, so that an idle broker uses no processor
time for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.network.outbox import Outbox
    from odradek.timing.clock import Clock

# The score of recent gaps between requests: a short one adds 1, a long one takes _LOST, since polling in vain costs several times
# what a spared wake-up gains. Polling goes on from _ENOUGH up; _MOST bounds how much the past counts.
_LOST = 4
_ENOUGH = 4
_MOST = 16


class BusyPoll:
    """Keeps an event loop from sleeping for up to ``window_ms`` after its last request. Loop thread only.

    ``call_soon`` is the loop's: its callbacks run after all bytes that have come in are handled, and before the loop polls its
    sockets again. With a window of 0 nothing is polled, and only ``outbox`` is told of turns.
    """

    __slots__ = (
        "_call_soon",
        "_clock",
        "_has_arrived",
        "_idle_since_ms",
        "_is_polling",
        "_outbox",
        "_score",
        "_window_ms",
        "polls",
    )

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], clock: Clock, window_ms: float, outbox: Outbox) -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._window_ms = window_ms
        self._outbox = outbox
        # When the last bytes had been handled.
        self._idle_since_ms = -window_ms
        self._has_arrived = False
        self._is_polling = False
        # Of recent gaps, as said above.
        self._score = 0
        # How often the loop looked again instead of sleeping, in all.
        self.polls = 0

    def arrived(self, now_ms: float) -> None:
        """Bytes of a client have come, at ``now_ms`` (monotonic)."""
        self._outbox.arrived()
        if self._has_arrived:
            return
        self._has_arrived = True
        if now_ms - self._idle_since_ms <= self._window_ms:
            self._score = min(self._score + 1, _MOST)
        else:
            self._score = max(self._score - _LOST, 0)
        if not self._is_polling:
            self._is_polling = True
            self._call_soon(self._look)

    def _look(self) -> None:
        """All bytes that had come are handled: have the loop look again, or sleep."""
        has_arrived, self._has_arrived = self._has_arrived, False
        if has_arrived:
            self._outbox.turn_ended()
        now_ms = self._clock.monotonic_ms()
        if has_arrived:
            self._idle_since_ms = now_ms
        if self._score >= _ENOUGH and now_ms - self._idle_since_ms <= self._window_ms:
            self.polls += 1
            self._call_soon(self._look)
        else:
            self._is_polling = False
