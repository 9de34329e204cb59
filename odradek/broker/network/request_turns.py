"""Fair turns for connections with requests to begin: a few milliseconds per turn of the loop, shared by all connections.

A connection that sends faster than it is answered may have thousands of requests in one read. It begins them in its turns, a few
milliseconds each while others wait. The least served connection goes first (start-time fair queuing). So a connection that was
idle never waits behind another's backlog, however many others there are. Without a backlog, requests begin when they arrive.

Left out: single requests that take long (``timing.slices``). Under a clock that stands still, turns never end.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# The time limit for all connections together in one turn of the loop.
TURN_MS: Final = 10.0
# The time limit for one connection while others wait, and the length of one round through all waiting connections.
SLICE_MS: Final = 2.5
ROUND_MS: Final = 20.0
# A connection that used at most this share of a slice, with nothing left to begin, goes before all others. A new one does not.
_LIGHT: Final = 0.25


class TurnTaker(Protocol):
    """A connection that takes turns. The attributes belong to ``RequestTurns``."""

    served_ms: float
    asks_little: bool
    waits_for_turn: bool

    def take_turn(self, until_ms: float) -> bool:
        """Begin requests until ``until_ms`` (monotonic), at least one; True if some that could have begun are left."""


class RequestTurns:
    """The connections that wait for their turn. Loop thread only. ``call_soon`` calls back in the loop's next turn."""

    __slots__ = ("_call_soon", "_count", "_is_due", "_is_serving", "_monotonic_ms", "_until_ms", "_virtual_ms", "_waiting")

    def __init__(self, monotonic_ms: Callable[[], float], call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._monotonic_ms = monotonic_ms
        self._call_soon = call_soon
        # (time served, whether it may ask for much, sequence number, connection)
        self._waiting: list[tuple[float, bool, int, TurnTaker]] = []
        self._count = 0
        # The virtual time: the served time of the waiting connections, and the starting value of one that was idle.
        self._virtual_ms = 0.0
        self._is_serving = False
        # True while a call of ``_turn`` is scheduled; and the end of this turn's time.
        self._is_due = False
        self._until_ms = 0.0

    def ask(self, taker: TurnTaker, now_ms: float) -> bool:
        """Let ``taker`` begin requests: now (True), or as soon as its turn comes (False)."""
        if taker.waits_for_turn:
            return False
        if not self._is_due:
            self._until_ms = now_ms + TURN_MS
        if self._waiting or self._is_serving or now_ms >= self._until_ms:
            self.wait(taker)
            return False
        self._virtual_ms = max(self._virtual_ms, taker.served_ms)
        # For short requests no call at the turn's end is scheduled.
        if self._serve(taker, now_ms) - now_ms > _LIGHT * SLICE_MS and not self._is_due:
            self._arm(self._until_ms)
        return True

    def wait(self, taker: TurnTaker) -> None:
        """Let ``taker`` begin requests in a later turn."""
        if taker.waits_for_turn:
            return
        taker.waits_for_turn = True
        slice_ms = self._slice_ms()
        # A larger debt would mean a wait of several rounds, for one large request or a moment without a processor.
        debt_ms = max(0.0, min(taker.served_ms - self._virtual_ms, slice_ms))
        taker.served_ms = self._virtual_ms + debt_ms
        due_ms = self._virtual_ms if taker.asks_little else taker.served_ms
        heappush(self._waiting, (due_ms, not taker.asks_little, self._count, taker))
        self._count += 1
        if not self._is_due:
            self._arm(0.0)

    def _arm(self, until_ms: float) -> None:
        self._is_due = True
        self._until_ms = until_ms
        self._call_soon(self._turn)

    def _turn(self) -> None:
        """Serve waiting connections in a new turn of the loop."""
        self._is_due = False
        waiting = self._waiting
        if not waiting:
            return
        now_ms = self._monotonic_ms()
        self._arm(now_ms + TURN_MS)
        while waiting and now_ms < self._until_ms:
            served_ms, _, _, taker = heappop(waiting)
            self._virtual_ms = max(self._virtual_ms, served_ms)
            taker.waits_for_turn = False
            now_ms = self._serve(taker, now_ms)

    def _slice_ms(self) -> float:
        return min(SLICE_MS, ROUND_MS / (len(self._waiting) + 1))

    def _serve(self, taker: TurnTaker, now_ms: float) -> float:
        """Let ``taker`` take its turn. Return the time after it."""
        self._is_serving = True
        try:
            has_more = taker.take_turn(min(now_ms + self._slice_ms(), self._until_ms) if self._waiting else self._until_ms)
        finally:
            self._is_serving = False
        ended_ms = self._monotonic_ms()
        taker.served_ms = max(taker.served_ms, self._virtual_ms) + ended_ms - now_ms
        taker.asks_little = not has_more and ended_ms - now_ms <= _LIGHT * SLICE_MS
        if has_more:
            self.wait(taker)
        return ended_ms
