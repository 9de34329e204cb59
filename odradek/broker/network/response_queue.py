"""The responses that a connection owes, in the order of its requests.

A begun request has a place here until its response is written. Most requests are answered when they begin, with none before them:
their chunks are ready at once. Behind a pending response (a ``Reply`` of its chunks), all others keep their places.

Left out: the number of pending responses. The table of handlers limits it for each API (``Served.pipeline_depth``).
"""

from collections import deque
from typing import Any, Final

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
