"""Cutting a byte stream into frames.

A frame is a four-byte big-endian length and that many bytes (protocol guide, "Protocol Primitives"). ``FrameReader`` owns one
receive buffer that the socket fills in place: the transport asks for room (``writable``), says how much it filled (``filled``)
and takes the whole frames that are there. A small frame comes out as ``bytes`` of its own; a large one, most of which is records
on their way to a file, as a view of the buffer, valid until ``writable`` is next called. Room is given so that a large frame
ends where the room does: nothing behind it has to be moved.

The buffer starts small and grows as bytes come, not as they are announced. It is kept for the next large frame, but for one of
extraordinary size, until ``trim``: taking fresh memory from the system for each would cost more than the copy that is saved.

Left out: anything about what is inside a frame.
"""

from typing import Final

from odradek.protocol.errors import MalformedMessage

_IDLE_BYTES: Final = 4 * 1024
_READ_BYTES: Final = 64 * 1024
# A producer with a megabyte for each of a few partitions sends them in one request.
_KEEP_BYTES: Final = 32 * 1024 * 1024
# Below this a copy is cheaper than the care a view wants.
_VIEW_FROM_BYTES: Final = 16 * 1024
# The smallest request is a v0 header without a client id: key, version, correlation id.
MIN_FRAME_BYTES: Final = 8


class FrameReader:
    """Frames out of a stream, whatever the sizes in which it arrives.

    ``max_frame_bytes`` is ``socket.request.max.bytes``: a frame that announces more, or less than a header needs, raises
    ``MalformedMessage`` and the stream cannot go on. Where whole frames came before it in the same read, these are returned and
    ``error`` is what is to be raised after them.
    """

    __slots__ = ("_buffer", "_end", "_max_frame_bytes", "_start", "_view", "error")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._set_buffer(bytearray(_IDLE_BYTES))
        self._start = 0
        self._end = 0
        self.error: MalformedMessage | None = None

    @property
    def buffered_bytes(self) -> int:
        """Bytes received that are not yet part of a frame taken."""
        return self._end - self._start

    @property
    def allocated_bytes(self) -> int:
        """What the buffer takes."""
        return len(self._buffer)

    def writable(self) -> memoryview:
        """Room for the socket to fill, never empty. Ends the life of the views that ``filled`` gave out."""
        wanted = self._wanted()
        if len(self._buffer) - self._end < wanted:
            self._make_room(wanted)
        return self._view[self._end : self._end + max(wanted, _READ_BYTES)]

    def filled(self, count: int) -> list[bytes | memoryview]:
        """Account for ``count`` bytes the socket has put at ``writable()``; return the frames now whole, in order."""
        buffer = self._buffer
        end = self._end + count
        start = self._start
        frames: list[bytes | memoryview] = []
        while end - start >= 4:
            length = int.from_bytes(buffer[start : start + 4], "big", signed=True)
            if not MIN_FRAME_BYTES <= length <= self._max_frame_bytes:
                self.error = MalformedMessage(
                    f"a frame of {length} bytes: allowed are {MIN_FRAME_BYTES} to {self._max_frame_bytes}"
                    " (socket.request.max.bytes)"
                )
                if not frames:
                    raise self.error
                break
            stop = start + 4 + length
            if stop > end:
                break
            frame = self._view[start + 4 : stop]
            frames.append(frame if length >= _VIEW_FROM_BYTES else bytes(frame))
            start = stop
        if start == end:
            start = end = 0
            if len(buffer) > _KEEP_BYTES:
                self._set_buffer(bytearray(_READ_BYTES))
        self._start = start
        self._end = end
        return frames

    def feed(self, data: bytes) -> list[bytes]:
        """``writable`` and ``filled`` in one, for callers that hold the bytes already; every frame is a copy."""
        frames: list[bytes] = []
        position = 0
        while position < len(data):
            room = self.writable()
            chunk = data[position : position + len(room)]
            room[: len(chunk)] = chunk
            frames += map(bytes, self.filled(len(chunk)))
            position += len(chunk)
        return frames

    def trim(self) -> None:
        """Give back the memory of a buffer that large frames have left, if nothing is in it."""
        if self._end == 0 and len(self._buffer) > _IDLE_BYTES:
            self._set_buffer(bytearray(_IDLE_BYTES))

    def _wanted(self) -> int:
        """How much room is worth having: the rest of the frame under way, or a first little bit."""
        have = self._end - self._start
        if have < 4:
            return _IDLE_BYTES // 2
        length = int.from_bytes(self._buffer[self._start : self._start + 4], "big")
        return max(4 + length - have, 1)

    def _make_room(self, wanted: int) -> None:
        """Move what is there to the front, of a larger buffer where this one is too small."""
        have = self._end - self._start
        needed = have + wanted
        if needed > len(self._buffer):
            # Doubling, not all at once: a frame's length is only a claim until its bytes have come.
            size = min(max(needed, _READ_BYTES), max(2 * len(self._buffer), 2 * _READ_BYTES))
            larger = bytearray(max(size, have + 1))
            larger[:have] = self._view[self._start : self._end]
            self._set_buffer(larger)
        else:
            self._buffer[:have] = self._buffer[self._start : self._end]
        self._start = 0
        self._end = have

    def _set_buffer(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)
