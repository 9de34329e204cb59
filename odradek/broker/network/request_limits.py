"""Limits that keep connections from holding each other up: the memory of partial requests, and turns in which requests begin.

**Memory**: ``queued.max.request.bytes``, and a limit per turn of the loop. A connection with a partial frame asks here before its
buffer grows. If there is no room, the connection is not read until there is: its bytes stay with the kernel, and so with the
client. As in Kafka, one frame may exceed the limit. The first frame without room is let through, so that frames never wait for
each other. Unlike Kafka, a frame counts with its received bytes, not with its announced size, and small frames always pass. New
memory takes a millisecond per megabyte, so its amount per turn of the loop is limited. Further connections are read in later
turns. If a client does not send its announced bytes while others wait, ``stalled`` returns its connection, to be closed.

**Turns**: a few milliseconds per turn of the loop, shared by all connections. A connection that sends faster than it is answered
may have thousands of requests in one read. It begins them in its turns, a few milliseconds each while others wait. The least
served connection goes first (start-time fair queuing). So a connection that was idle never waits behind another's backlog,
however many others there are. Without a backlog, requests begin when they arrive.

Left out: single requests that take long (``timing.slices``). Under a clock that stands still, turns never end.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.timing.clock import Clock

# A buffer up to this size counts for the turn's limit only.
SMALL_BYTES: Final = 64 * 1024
_TURN_BYTES: Final = 8 * 1024 * 1024
# Kafka's clients give up a request after this time (``request.timeout.ms``).
_STALLED_MS: Final = 30_000


class Holder(Protocol):
    """A connection with a read buffer."""

    last_active_ms: float

    def resume_receiving(self) -> None:
        """Ask again: there may be room now."""

    def trim(self) -> None:
        """Free unused memory, and report it with ``release``."""


class RequestMemory:
    """The memory held by each connection, and the connections that wait for memory. Loop thread only.

    ``limit_bytes`` is the config; there is no limit unless it is positive. ``call_soon`` calls back in the loop's next turn;
    without it, turns have no limit.
    """

    def __init__(self, limit_bytes: int, clock: Clock, call_soon: Callable[[Callable[[], None]], object] | None) -> None:
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._call_soon = call_soon
        # The sizes of large buffers, and the start of the frame in each.
        self._held: dict[Holder, int] = {}
        self._since_ms: dict[Holder, float] = {}
        self.held_bytes = 0
        # The connection that may exceed the limit.
        self._privileged: Holder | None = None
        self._wait_for_memory: deque[Holder] = deque()
        self._wait_for_turn: deque[Holder] = deque()
        self._turn_bytes = 0
        self._is_turn_due = False

    @property
    def is_short(self) -> bool:
        """Return whether a connection waits for memory, and not just for the next turn."""
        return bool(self._wait_for_memory)

    def may_receive(self, holder: Holder, size: int, added: int) -> bool:
        """Return whether ``holder`` may read on, into a buffer of ``size`` bytes. ``added`` counts for the turn's limit.

        ``added`` is the bytes just received, and the growth of the buffer. After False, ``resume_receiving`` tells when to ask
        again.
        """
        if self._turn_bytes >= _TURN_BYTES:
            self._wait_for_turn.append(holder)
            self._arm_turn()
            return False
        if size > SMALL_BYTES:
            growth = size - self._held.get(holder, 0)
            if growth > 0:
                if not self._has_room(holder, growth):
                    self._wait_for_memory.append(holder)
                    return False
                self._held[holder] = size
                self.held_bytes += growth
                self._since_ms.setdefault(holder, self._clock.monotonic_ms())
        self._turn_bytes += added
        self._arm_turn()
        return True

    def release(self, holder: Holder, size: int, *, is_whole: bool) -> None:
        """Note the buffer's new size, perhaps a smaller one. ``is_whole``: the frame in it is complete."""
        held = self._held.get(holder, 0)
        if size <= SMALL_BYTES:
            self._held.pop(holder, None)
            size = 0
        elif held:
            self._held[holder] = size
        else:
            size = 0
        self.held_bytes += size - held
        if is_whole:
            self._since_ms.pop(holder, None)
            if self._privileged is holder:
                self._privileged = None
        if self._wait_for_memory or self._wait_for_turn:
            self._arm_turn()

    def forget(self, holder: Holder) -> None:
        """Release the memory of a lost connection."""
        if holder in self._held or self._privileged is holder:
            self.release(holder, 0, is_whole=True)

    def stalled(self) -> list[Holder]:
        """Return the holders with a partial frame, or a silent buffer, for half a minute; empty if nobody waits for memory."""
        if not self.is_short:
            return []
        before_ms = self._clock.monotonic_ms() - _STALLED_MS
        return [holder for holder in self._held if self._since_ms.get(holder, holder.last_active_ms) < before_ms]

    def _has_room(self, holder: Holder, growth: int) -> bool:
        if self._limit_bytes <= 0 or self.held_bytes + growth <= self._limit_bytes:
            return True
        if self._privileged is None:
            for other in tuple(self._held):
                other.trim()
            if self.held_bytes + growth > self._limit_bytes:
                self._privileged = holder
            return True
        return self._privileged is holder

    def _arm_turn(self) -> None:
        if self._call_soon is None:
            self._turn()
        elif not self._is_turn_due:
            self._is_turn_due = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        """Begin a turn of the loop: let waiting connections ask again."""
        self._is_turn_due = False
        self._turn_bytes = 0
        _resume(self._wait_for_turn, self._has_turn)
        _resume(self._wait_for_memory, self._has_memory)

    def _has_turn(self) -> bool:
        return self._turn_bytes < _TURN_BYTES

    def _has_memory(self) -> bool:
        return self._has_turn() and (self._privileged is None or self.held_bytes < self._limit_bytes)


def _resume(waiting: deque[Holder], goes_on: Callable[[], bool]) -> None:
    """Let the first of ``waiting`` ask again, while ``goes_on`` is true and none of them has to wait again."""
    left = len(waiting)
    while left and goes_on():
        left -= 1
        waiting.popleft().resume_receiving()
        if len(waiting) > left:
            return


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
