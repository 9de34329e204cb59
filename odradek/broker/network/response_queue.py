"""The responses that a connection owes, in the order of its requests.

A request that has begun has its place here until its response is written. Most are answered when they begin, with nothing before
them: their chunks are ready at once. Behind a response that is not there yet (a ``Reply`` of its chunks) all others keep their
places.

Left out: how many may wait. The table of handlers says that for each API (``Served.pipeline_depth``).
"""

from collections import deque
from typing import Any, Final

from odradek.protocol.errors import MalformedMessage
from odradek.timing.reply import Reply

# A burst of pipelined requests is answered in writes of about this many chunks, or bytes.
_WRITE_FROM_CHUNKS: Final = 512
_WRITE_FROM_BYTES: Final = 1024 * 1024


class ResponseQueue:
    """One connection's responses; what is ``ready`` may be written."""

    __slots__ = ("_ready", "_ready_bytes", "is_broken", "places", "refusal")

    def __init__(self) -> None:
        # Chunks, or the reply that will have them: of each request whose response is not there yet, or stands behind one.
        self.places: deque[list[Any] | Reply[Any]] = deque()
        self._ready: list[Any] = []
        self._ready_bytes = 0
        # Whether the next response is one that cannot be told: the connection has to end.
        self.is_broken = False
        # Why it cannot, where that is the client's doing.
        self.refusal: MalformedMessage | None = None

    def answer(self, chunks: list[Any]) -> bool:
        """Put in the response to the request that has begun last; True where enough is ready to be written."""
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
        """Keep the place of a response that comes later."""
        self.places.append(reply)

    def may_begin(self, pipeline_depth: int) -> bool:
        """Return whether a request of this depth may begin behind those that have."""
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
        """Make ready what has been answered, up to the first response that is not there."""
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
        """The chunks that are to be written now, in order."""
        if self.places:
            self.settle()
        ready, self._ready = self._ready, []
        self._ready_bytes = 0
        return ready

    def clear(self) -> None:
        """Forget all of it: the connection is lost."""
        self.places.clear()
        self._ready = []
