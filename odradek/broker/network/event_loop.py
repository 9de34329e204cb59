"""The event loop's edges: busy polling before it sleeps, and its errors as lines of the broker's log.

Between requests the loop would sleep, and waking it costs more than many requests: the wake-up itself, and a cold processor.
While clients come back within ``socket.busy.poll.us`` of their last answer, the loop polls its sockets again instead of sleeping.
Other work is done between two polls. Polling stops when clients take longer, so an idle broker spends no processor time on it.

``LoopErrors`` replaces asyncio's tracebacks on stderr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.common.logging import LineLimit, log

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from odradek.broker.network.response_queue import Outbox
    from odradek.timing.clock import Clock

# The score of recent gaps between requests: a short gap adds 1, a long one subtracts _LOST, since polling in vain costs several
# times the gain of an avoided wake-up. The loop polls at a score of _ENOUGH or more; _MOST bounds the influence of the past.
_LOST = 4
_ENOUGH = 4
_MOST = 16


class BusyPoll:
    """Busy polling of one event loop, for up to ``window_ms`` after its last request. Loop thread only.

    ``call_soon`` is the loop's: its callbacks run after all received bytes are handled, and before the loop polls its sockets
    again. With a window of 0 there is no busy polling; ``outbox`` is still told of turns.
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
        # The time at which the last bytes had been handled.
        self._idle_since_ms = -window_ms
        self._has_arrived = False
        self._is_polling = False
        # The score of recent gaps, see above.
        self._score = 0
        # Total polls in place of sleeping.
        self.polls = 0

    def arrived(self, now_ms: float) -> None:
        """Note that a client's bytes arrived, at ``now_ms`` (monotonic)."""
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
        """End a turn, with all received bytes handled: let the loop poll again, or sleep."""
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


class LoopErrors:
    """Reporter of a loop's errors. A ``LineLimit`` limits the lines for the same cause."""

    def __init__(self, clock: Clock) -> None:
        self._line_limit = LineLimit(clock)

    def report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG002  asyncio's signature
        """Log one line with the cause, and the peer if a connection is concerned. For ``loop.set_exception_handler``.

        An OSError comes from the machine or the network, and needs no traceback: for example, no file descriptor is left.
        """
        error = context.get("exception")
        extra_fields = self._line_limit.admit((context["message"], type(error)))
        if extra_fields is None:
            return
        fields: dict[str, object] = {"cause": context["message"], **extra_fields}
        transport = context.get("transport")
        peer = None if transport is None else transport.get_extra_info("peername")
        if peer:
            fields["peer"] = f"{peer[0]}:{peer[1]}"
        if isinstance(error, OSError | MemoryError):
            log.warn("error in the event loop", error=str(error), **fields)
        else:
            log.error("error in the event loop", error, **fields)
