"""The memory limit of large responses, being written or not yet taken by their clients: ``queued.max.response.bytes``.

A small request may have a response of megabytes, and its client may be slow to take it. While the large responses together exceed
the limit, only the oldest unwritten one continues; none does while untaken responses alone reach the limit. The others wait, and
fail after half a minute. Small responses do not count. If a client does not take its response while others wait, ``stalled``
returns its session, to be closed.

The C library keeps memory that was freed in small pieces. It is asked to give it back when the last large response is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.common.context import Session
    from odradek.timing.timer import Timer, TimerTask

# Kafka's clients give up a request after this time (``request.timeout.ms``).
_PATIENCE_MS: Final = 30_000
_STALLED_MS: Final = 10_000
# From this size on it pays to trim the heap, which takes up to some milliseconds.
_TRIM_FROM_BYTES: Final = 8 * 1024 * 1024
_TRIM_AFTER_MS: Final = 500


class NoRoom(Exception):
    """Other responses have held the memory for too long."""

    def __init__(self) -> None:
        super().__init__("responses to other clients use all of queued.max.response.bytes")


class HeldResponse:
    """The large response of one session."""

    __slots__ = ("_memory", "session", "since_ms", "size_bytes")

    def __init__(self, memory: ResponseMemory, session: Session) -> None:
        self._memory = memory
        self.session = session
        self.size_bytes = 0
        # The time at which it was completely written; None before.
        self.since_ms: float | None = None

    def release(self) -> None:
        """Free the memory: the client has taken the response, or is gone."""
        self._memory.release(self)


class ResponseMemory:
    """The large responses that hold memory, and those that wait for it. Loop thread only.

    There is no limit unless ``limit_bytes`` is positive. ``call_soon`` calls back in the loop's next turn. ``trim`` gives free
    memory back to the system.
    """

    def __init__(
        self,
        limit_bytes: int,
        timer: Timer,
        monotonic_ms: Callable[[], float],
        call_soon: Callable[[Callable[[], None]], object],
        trim: Callable[[], object],
    ) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        # The part of the held bytes that is completely written.
        self._written_bytes = 0
        self._timer = timer
        self._monotonic_ms = monotonic_ms
        self._call_soon = call_soon
        self._trim = trim
        # The responses that hold memory, the oldest first.
        self._held: dict[HeldResponse, None] = {}
        self._waiting: dict[HeldResponse, tuple[Reply[bool], TimerTask]] = {}
        self._is_due = False
        # The peak of the held bytes since the last trim.
        self._peak_bytes = 0
        self._is_trim_due = False

    @property
    def is_full(self) -> bool:
        """Return whether responses have reached the limit."""
        return 0 < self.limit_bytes <= self.held_bytes

    def begin(self, session: Session) -> HeldResponse:
        """Register a large response to ``session`` that is about to be written."""
        held = HeldResponse(self, session)
        self._held[held] = None
        if session.connection is not None:
            session.held_response = held
        return held

    def grow(self, held: HeldResponse, count: int) -> None:
        """Add ``count`` bytes, perhaps negative, to a response."""
        if held in self._held:
            held.size_bytes += count
            self.held_bytes += count
            self._peak_bytes = max(self._peak_bytes, self.held_bytes)

    def turn(self, held: HeldResponse) -> Reply[bool] | None:
        """Return None if the response may be written on, else a Reply: True to continue, False to give up."""
        if (
            not self.is_full
            or held not in self._held
            or (held is self._first_unwritten() and self._written_bytes < self.limit_bytes)
        ):
            return None
        return self._wait(held)

    def room(self, session: Session) -> Reply[bool] | None:
        """Return None if a new response to ``session`` may be made, else a Reply as from ``turn``."""
        return self._wait(HeldResponse(self, session)) if self.is_full else None

    def _wait(self, held: HeldResponse) -> Reply[bool]:
        reply: Reply[bool] = Reply()
        self._waiting[held] = reply, self._timer.call_after(_PATIENCE_MS, lambda: self._go_on(held, may=False))
        return reply

    def written(self, held: HeldResponse) -> None:
        """Note that a response is completely written, and on its way."""
        if held in self._held:
            held.since_ms = self._monotonic_ms()
            self._written_bytes += held.size_bytes
            self._wake()

    def release(self, held: HeldResponse) -> None:
        """Free the memory of a response that was taken or dropped."""
        if held not in self._held:
            return
        self.held_bytes -= held.size_bytes
        if held.since_ms is not None:
            self._written_bytes -= held.size_bytes
        del self._held[held]
        held.session.held_response = None
        if not self._held and self._peak_bytes >= _TRIM_FROM_BYTES and not self._is_trim_due:
            self._is_trim_due = True
            self._timer.call_after(_TRIM_AFTER_MS, self._give_back)
        self._wake()

    def stalled(self) -> frozenset[Session]:
        """Return the sessions that have not taken their response in ten seconds, if others wait for the memory."""
        if not self._waiting:
            return frozenset()
        before_ms = self._monotonic_ms() - _STALLED_MS
        return frozenset([held.session for held in self._held if held.since_ms is not None and held.since_ms < before_ms])

    def _first_unwritten(self) -> HeldResponse | None:
        return next((held for held in self._held if held.since_ms is None), None)

    def _wake(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._call_soon(self._let_go_on)

    def _let_go_on(self) -> None:
        self._is_due = False
        if not self.is_full:
            for held in tuple(self._waiting):
                self._go_on(held, may=True)
            return
        first = self._first_unwritten()
        if first is not None and self._written_bytes < self.limit_bytes:
            self._go_on(first, may=True)

    def _go_on(self, held: HeldResponse, *, may: bool) -> None:
        waiting = self._waiting.pop(held, None)
        if waiting is not None:
            reply, patience = waiting
            patience.cancel()
            reply.complete(may)

    def _give_back(self) -> None:
        self._is_trim_due = False
        if not self._held:
            self._peak_bytes = 0
            self._trim()
