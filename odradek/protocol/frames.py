"""Cutting a byte stream into frames.

A frame is a four-byte big-endian length and that many bytes (protocol guide, "Protocol Primitives"). ``FrameReader`` owns one
receive buffer that the socket fills in place: the transport asks for room (``writable``), says how much it filled (``filled``)
and takes the whole frames that are there. A frame comes out as ``bytes`` of its own, so that what a request holds stays valid
while the buffer goes on. The buffer starts small, grows to what the frame under way needs and shrinks again when it is done:
an idle connection costs a few KiB.

Left out: anything about what is inside a frame.
"""

from odradek.protocol.errors import MalformedMessage

_IDLE_BYTES = 4 * 1024
_READ_BYTES = 64 * 1024
_SHRINK_ABOVE_BYTES = 256 * 1024
# The smallest request is a v0 header without a client id: key, version, correlation id.
MIN_FRAME_BYTES = 8


class FrameReader:
    """Frames out of a stream, whatever the sizes in which it arrives.

    ``max_frame_bytes`` is ``socket.request.max.bytes``: a frame that announces more, or less than a header needs, raises
    ``MalformedMessage`` and the stream cannot go on.
    """

    __slots__ = ("_buffer", "_end", "_max_frame_bytes", "_start", "_view")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._set_buffer(bytearray(_IDLE_BYTES))
        self._start = 0
        self._end = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes received that are not yet part of a frame taken."""
        return self._end - self._start

    def writable(self) -> memoryview:
        """Room for the socket to fill: never empty, larger when a large frame is under way."""
        free = len(self._buffer) - self._end
        wanted = self._wanted()
        if free < wanted:
            self._make_room(wanted)
        return self._view[self._end :]

    def filled(self, count: int) -> list[bytes]:
        """Account for ``count`` bytes the socket has put at ``writable()``; return the frames now whole, in order."""
        buffer = self._buffer
        end = self._end + count
        start = self._start
        frames: list[bytes] = []
        while end - start >= 4:
            length = int.from_bytes(buffer[start : start + 4], "big", signed=True)
            if not MIN_FRAME_BYTES <= length <= self._max_frame_bytes:
                raise MalformedMessage(
                    f"a frame of {length} bytes: allowed are {MIN_FRAME_BYTES} to {self._max_frame_bytes}"
                    " (socket.request.max.bytes)"
                )
            stop = start + 4 + length
            if stop > end:
                break
            frames.append(bytes(self._view[start + 4 : stop]))
            start = stop
        if start == end:
            start = end = 0
            if len(buffer) > _SHRINK_ABOVE_BYTES:
                self._set_buffer(bytearray(_READ_BYTES))
        self._start = start
        self._end = end
        return frames

    def feed(self, data: bytes) -> list[bytes]:
        """``writable`` and ``filled`` in one, for callers that hold the bytes already."""
        frames: list[bytes] = []
        position = 0
        while position < len(data):
            room = self.writable()
            chunk = data[position : position + len(room)]
            room[: len(chunk)] = chunk
            frames += self.filled(len(chunk))
            position += len(chunk)
        return frames

    def _wanted(self) -> int:
        """How much room is worth having: the rest of the frame under way, or a first little bit."""
        have = self._end - self._start
        if have < 4:
            return 1 if len(self._buffer) > _IDLE_BYTES else _IDLE_BYTES // 2
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
