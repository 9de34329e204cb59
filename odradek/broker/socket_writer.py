"""Chunks to a socket: small ones joined, file slices by ``sendfile`` where the way is free.

A response is a list of chunks: ``bytes``, and slices of log files that nobody has read yet (``LogSlice``: a file, a position, a
length). While nothing is queued in the transport, a slice is sent by the kernel straight from the page cache; what the
socket does not take at once, and every slice that comes while something is queued, is read and handed to the transport, whose
flow control then holds the connection up.
"""

import asyncio
import os
from typing import Any

# Below this a read and a copy cost less than one more system call.
_SENDFILE_FROM_BYTES = 16 * 1024
_HIGH_WATER_BYTES = 1024 * 1024


class SocketWriter:
    """Writes responses of one connection to its transport."""

    __slots__ = ("_fd", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        sock = transport.get_extra_info("socket")
        self._fd: int = sock.fileno() if sock is not None and hasattr(os, "sendfile") else -1

    @property
    def pending_bytes(self) -> int:
        """What the transport has not yet given to the kernel."""
        return self._transport.get_write_buffer_size()

    def write(self, chunks: list[Any]) -> None:
        """Send the chunks, in order."""
        plain: list[bytes] = []
        for chunk in chunks:
            if type(chunk) is bytes:
                plain.append(chunk)
                continue
            if len(chunk) < _SENDFILE_FROM_BYTES or self._fd < 0:
                plain.append(chunk.read())
                continue
            if plain:
                self._transport.write(b"".join(plain))
                plain = []
            self._send_slice(chunk)
        if plain:
            self._transport.write(b"".join(plain))

    def _send_slice(self, chunk: Any) -> None:
        file_fd = chunk.file.fileno()
        sent = 0
        if file_fd is not None and self._transport.get_write_buffer_size() == 0:
            try:
                sent = os.sendfile(self._fd, file_fd, chunk.position, chunk.length)
            except BlockingIOError:
                sent = 0
            except OSError:
                # The socket is gone or the file cannot be mapped: the ordinary way finds out which, and says so.
                sent = 0
        if sent < chunk.length:
            self._transport.write(chunk.file.pread(chunk.length - sent, chunk.position + sent))
