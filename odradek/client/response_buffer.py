"""Cutting what a node sends into responses, each in memory that nobody writes to again.

A frame is a four-byte big-endian length and that many bytes. Small frames are copied out of one receive buffer. A frame that
does not fit into it gets memory of its own, which the socket fills in place: the records of a Fetch lie there, and are neither
moved nor overwritten as long as somebody holds a view of them. (``protocol.frames`` reuses its buffer, as a broker has done
with a request before it reads on.)

The memory of a large frame is taken when its length is known. The system hands it out page by page as it is written to, so a
length that is a lie costs little.
"""

from typing import Final

from odradek.client.errors import InvalidFrame

_BUFFER_BYTES: Final = 16 * 1024
_LENGTH_BYTES: Final = 4
# The correlation id.
_MIN_RESPONSE_BYTES: Final = 4


class ResponseBuffer:
    """Frames out of a stream, whatever the sizes in which it arrives."""

    __slots__ = ("_buffer", "_end", "_large", "_large_end", "_max_response_bytes", "_start")

    def __init__(self, max_response_bytes: int) -> None:
        self._max_response_bytes = max_response_bytes
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = 0
        self._end = 0
        self._large: memoryview | None = None
        self._large_end = 0

    def writable(self) -> memoryview:
        """Room for the socket to fill; never empty once ``next_frame`` has given None."""
        if self._large is not None:
            return self._large[self._large_end :]
        if self._start:
            have = self._end - self._start
            self._buffer[:have] = self._buffer[self._start : self._end]
            self._start, self._end = 0, have
        return self._buffer[self._end :]

    def filled(self, count: int) -> None:
        """Account for ``count`` bytes that the socket has put at ``writable()``."""
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_frame(self) -> bytes | memoryview | None:
        """The next whole frame without its length, None where none is there. Raises InvalidFrame."""
        if self._large is not None:
            return self._take_large()
        have = self._end - self._start
        if have < _LENGTH_BYTES:
            return None
        begin = self._start + _LENGTH_BYTES
        length = int.from_bytes(self._buffer[self._start : begin], "big", signed=True)
        if not _MIN_RESPONSE_BYTES <= length <= self._max_response_bytes:
            raise InvalidFrame(f"a response of {length} bytes: allowed are {_MIN_RESPONSE_BYTES} to {self._max_response_bytes}")
        if have >= _LENGTH_BYTES + length:
            self._start = begin + length
            return bytes(self._buffer[begin : self._start])
        if _LENGTH_BYTES + length > _BUFFER_BYTES:
            self._begin_large(length, begin)
        return None

    def _begin_large(self, length: int, begin: int) -> None:
        """Go on in memory of the frame's own; everything in the buffer from ``begin`` on belongs to it."""
        large = memoryview(bytearray(length))
        have = self._end - begin
        large[:have] = self._buffer[begin : self._end]
        self._large, self._large_end = large, have
        self._start = self._end = 0

    def _take_large(self) -> memoryview | None:
        large = self._large
        if large is None or self._large_end < len(large):
            return None
        self._large = None
        return large.toreadonly()
