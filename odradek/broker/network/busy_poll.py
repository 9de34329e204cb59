"""Asking for the next request before sleeping on it.

Between its client's requests the loop would sleep, and to be woken costs more than many a request: the wake-up itself, and a
processor that has gone cold. While clients come back within ``socket.busy.poll.us`` of their last answer, the loop looks again
instead; other work is done as it comes, between two looks. It stops as soon as they take longer, so that a broker that has
nothing to do, or whose clients come at longer intervals, uses no processor time for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.network.outbox import Outbox
    from odradek.timing.clock import Clock

# To look for nothing costs several times what is won by having looked: so much does a gap that was too long weigh more.
_LOST = 4
_ENOUGH = 4
_MOST = 16


class BusyPoll:
    """Keeps an event loop from sleeping for up to ``window_ms`` after its last request. Loop thread only.

    ``call_soon`` is the loop's: what it is given runs when all that has come in has been handled, and before the next look.
    With a window of 0 it sleeps at once, and only ``outbox`` has something of it.
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
        # When all that had come had been handled.
        self._idle_since_ms = -window_ms
        self._has_arrived = False
        self._is_polling = False
        # How often gaps were short enough of late.
        self._score = 0
        # How often it was looked again, in all.
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
        """All that had come has been handled: have the loop look again, or sleep."""
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
