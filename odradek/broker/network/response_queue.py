"""The responses that a connection owes, in the order of its requests; and the outbox, which holds answers for a turn of the loop.

A begun request has a place in the queue until its response is written. Most requests are answered when they begin, with none
before them: their chunks are ready at once. Behind a pending response (a ``Reply`` of its chunks), all others keep their places.

The outbox holds answers until all bytes that arrived in one turn of the event loop have been handled. Waking a client takes
longer than sending it an answer, and a client that is awake need not be woken. Sending the answers to many clients together is
cheaper for all of them and for the broker. A request that arrived alone is answered immediately, so that its client continues
while the broker does the work after the answer. ``event_loop.BusyPoll`` reports arrivals and the end of a turn. Without it,
nothing is held.

Left out: the number of pending responses. The table of handlers limits it for each API (``Served.pipeline_depth``).
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from odradek.common.logging import log
from odradek.protocol.errors import MalformedMessage
from odradek.timing.reply import Reply

# A burst of pipelined requests is answered in writes of about this many chunks or bytes.
_WRITE_FROM_CHUNKS: Final = 512
_WRITE_FROM_BYTES: Final = 1024 * 1024


class ResponseQueue:
    """The responses of one connection."""

    __slots__ = ("_ready", "_ready_bytes", "is_broken", "places", "refusal")

    def __init__(self) -> None:
        # For each request with a pending response, or behind one: its chunks, or the Reply that will have them.
        self.places: deque[list[Any] | Reply[Any]] = deque()
        self._ready: list[Any] = []
        self._ready_bytes = 0
        # True if the next response failed: the connection must close.
        self.is_broken = False
        # The reason, if the client caused it.
        self.refusal: MalformedMessage | None = None

    def answer(self, chunks: list[Any]) -> bool:
        """Add the response to the request that began last. True if enough is ready for a write."""
        if not chunks:
            # No response is due.
            return False
        if self.places:
            self.places.append(chunks)
            return False
        self._ready += chunks
        for chunk in chunks:
            self._ready_bytes += len(chunk)
        return len(self._ready) > _WRITE_FROM_CHUNKS or self._ready_bytes > _WRITE_FROM_BYTES

    def wait_for(self, reply: Reply[Any]) -> None:
        """Keep a place for a pending response."""
        self.places.append(reply)

    def may_begin(self, pipeline_depth: int) -> bool:
        """Return whether a request with this pipeline depth may begin behind the unanswered ones."""
        places = self.places
        if not places:
            return True
        first = places[0]
        if not isinstance(first, Reply) or first.done:
            self.settle()
            if not places:
                return True
            if self.is_broken:
                return False
        last = places[-1]
        return len(places) < pipeline_depth and (not isinstance(last, Reply) or last.done or last.is_decided)

    def settle(self) -> None:
        """Move answered responses to the ready ones, up to the first pending response."""
        places = self.places
        if self.is_broken:
            return
        while places:
            place = places[0]
            if isinstance(place, Reply):
                if not place.done:
                    return
                chunks = place.response
                if chunks is None or isinstance(chunks, MalformedMessage):
                    self.is_broken = True
                    self.refusal = chunks
                    return
            else:
                chunks = place
            places.popleft()
            self._ready += chunks

    def take(self) -> list[Any]:
        """Take the chunks to write now, in order."""
        if self.places:
            self.settle()
        ready, self._ready = self._ready, []
        self._ready_bytes = 0
        return ready

    def clear(self) -> None:
        """Drop all responses: the connection is lost."""
        self.places.clear()
        self._ready = []


class Holder(Protocol):
    """A connection's writer that holds answers until the turn is over."""

    def send_held(self) -> None:
        """Send the held answers."""


class Outbox:
    """The connections with held answers, sent when the turn is over. Loop thread only."""

    __slots__ = ("_arrivals", "_holders", "is_holding", "last_arrivals")

    def __init__(self) -> None:
        # True if answers written now are held.
        self.is_holding = False
        # The number of arrivals in the last turn that had any.
        self.last_arrivals = 0
        self._arrivals = 0
        self._holders: list[Holder] = []

    def arrived(self) -> None:
        """Note that a client's bytes arrived. ``turn_ended`` is called before the loop polls again."""
        self._arrivals += 1
        # At a turn's first arrival the number of arrivals is unknown. The last turn's number is a good guess.
        self.is_holding = self._arrivals > 1 or self.last_arrivals > 1

    def put(self, holder: Holder) -> None:
        """Let ``holder`` send its held answers when the turn is over."""
        self._holders.append(holder)

    def turn_ended(self) -> None:
        """End the turn: its bytes have been handled."""
        self.last_arrivals = self._arrivals
        self._arrivals = 0
        self._send()

    def run(self, callback: Callable[[], None]) -> None:
        """Call ``callback``, which completes requests of the last turn, and send their answers together."""
        self.is_holding = self.last_arrivals > 1
        try:
            callback()
        finally:
            self._send()

    def _send(self) -> None:
        self.is_holding = False
        holders, self._holders = self._holders, []
        for holder in holders:
            try:
                holder.send_held()
            except Exception as error:  # noqa: BLE001  any failure concerns this connection only
                log.error("cannot send an answer", error)
