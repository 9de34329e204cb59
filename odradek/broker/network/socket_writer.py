"""Writer of a response's chunks to a socket: small ones through the transport, file slices by ``sendfile``.

A response is a list of chunks: ``bytes``, and unread slices of log files (``LogSlice``: a file, a position, a length). A response
with a large slice bypasses the transport, which would need it as bytes. Its chunks are sent straight to the socket, the slices by
the kernel from the page cache. A response with large ``bytes`` chunks does the same, since copying them would take long. Chunks
that the socket does not take wait here, in order, until the socket is writable again and the transport has sent its earlier
bytes. While chunks wait, all later ones queue behind them. Small answers may be held until the loop's turn is over (``outbox``).

Encrypted responses (``tls_connection``) always go through the transport, which owns the socket. A large slice is read and
encrypted piece by piece, and waits here while the transport is full.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from odradek.broker.network.response_queue import Outbox
from odradek.common.logging import log
from odradek.storage.log.local_log import LogSlice

# Below this size a read and a copy cost less than one more system call.
_SENDFILE_FROM_BYTES: Final = 16 * 1024
# Chunks of bytes from this size on are not joined with others.
_LARGE_BYTES: Final = 512 * 1024
# The most that one turn of the loop sends, so that one fast reader does not hold up the others.
_TURN_BYTES: Final = 4 * 1024 * 1024
_HIGH_WATER_BYTES: Final = 1024 * 1024
# The most that one turn of the loop encrypts, and the size of a piece.
_ENCRYPTED_TURN_BYTES: Final = 1024 * 1024
_PIECE_BYTES: Final = 256 * 1024
# The most that one connection holds until the end of the turn.
_HELD_BYTES: Final = 64 * 1024


class SocketWriter:
    """The writer of one connection's responses. ``on_drained`` is called when the queue has been sent."""

    __slots__ = (
        "_fd",
        "_held",
        "_held_bytes",
        "_is_encrypted",
        "_is_full",
        "_is_turn_due",
        "_loop",
        "_on_drained",
        "_outbox",
        "_transport",
        "_watched_fd",
        "queue",
        "sent_bytes",
    )

    def __init__(self, transport: asyncio.Transport, on_drained: Callable[[], None], outbox: Outbox) -> None:
        self._transport = transport
        self._on_drained = on_drained
        self._outbox = outbox
        # Answers held until the turn's end. They go out before the queue.
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        # Chunks that wait for the socket to take more.
        self.queue: deque[Any] = deque()
        # The loop watches a duplicate of the descriptor, since the transport manages its own.
        self._watched_fd = -1
        self.sent_bytes = 0
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        sock = transport.get_extra_info("socket")
        self._fd: int = sock.fileno() if sock is not None and hasattr(os, "sendfile") else -1
        self._is_encrypted: bool = transport.get_extra_info("sslcontext") is not None
        # For encrypted connections: whether the transport's buffer is full, and whether ``_go_on`` is scheduled.
        self._is_full = False
        self._is_turn_due = False

    @property
    def is_waiting(self) -> bool:
        """Return whether chunks wait for the socket."""
        return bool(self.queue)

    @property
    def pending_bytes(self) -> int:
        """The bytes not passed to the kernel yet."""
        return self._transport.get_write_buffer_size() + self._held_bytes + sum(map(len, self.queue))

    def write(self, chunks: list[Any]) -> None:
        """Send the chunks, in order."""
        if self.queue:
            self.queue.extend(chunks)
        elif len(chunks) == 1 and type(chunks[0]) is bytes:
            self._write_small(chunks[0])
        elif sum(map(len, chunks)) < _SENDFILE_FROM_BYTES or not any(map(_is_large, chunks)):
            self._write_small(b"".join([chunk if type(chunk) is bytes else chunk.read() for chunk in chunks]))
        elif self._fd >= 0:
            self.send_held()
            self.queue.extend(_joined(chunks))
            self._send_turn()
            if self.queue:
                self._watch()
        elif self._is_encrypted:
            self.send_held()
            self.queue.extend(_joined(chunks))
            self._send_encrypted()
        else:
            self._write_small(b"".join([chunk if type(chunk) is bytes else chunk.read() for chunk in chunks]))

    def write_through(self, transport: asyncio.Transport) -> bool:
        """Pass all later writes to ``transport``, and none to the socket itself.

        While chunks wait for the socket, return False and change nothing.
        """
        if self.queue:
            return False
        self.send_held()
        self._transport = transport
        self._fd = -1
        self._is_encrypted = False
        return True

    def pause(self) -> None:
        """Note that the transport's buffer is full."""
        self._is_full = True

    def resume(self) -> None:
        """Continue: the transport's buffer has drained."""
        self._is_full = False
        if self._is_encrypted and not self._is_turn_due:
            self._go_on()

    def send_held(self) -> None:
        """Send the held answers, if any."""
        if self._held:
            held, self._held = self._held, []
            self._held_bytes = 0
            if not self._transport.is_closing():
                self._write_now(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Drop everything that waits: the connection is lost."""
        self._held = []
        self._held_bytes = 0
        self.queue.clear()
        self._unwatch()

    def _write_small(self, data: bytes) -> None:
        """Send the data, or hold it until the turn is over."""
        size = len(data)
        self.sent_bytes += size
        if self._outbox.is_holding and self._held_bytes + size <= _HELD_BYTES:
            if not self._held:
                self._outbox.put(self)
            self._held.append(data)
            self._held_bytes += size
            return
        if self._held:
            self.send_held()
        self._write_now(data)

    def _write_now(self, data: bytes) -> None:
        """Write to the socket directly, and pass the rest to the transport, which would write only when the turn is over."""
        transport = self._transport
        if self._fd >= 0 and not transport.get_write_buffer_size():
            try:
                sent = os.write(self._fd, data)
            except OSError:
                # The transport will see the same error, and handle it.
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        transport.write(data)

    def _send_turn(self) -> None:
        """Send chunks until the socket is full, this turn's share is used up, or the queue is empty."""
        if self._transport.get_write_buffer_size():
            # The transport's bytes come first. It continues at the same event of the loop.
            return
        queue = self.queue
        left = _TURN_BYTES
        chunk: Any = b""
        try:
            while queue and left > 0:
                chunk = queue[0]
                size = len(chunk)
                if type(chunk) is bytes:
                    sent = os.write(self._fd, chunk)
                    if sent < size:
                        queue[0] = chunk[sent:]
                else:
                    sent = os.sendfile(self._fd, chunk.file.fileno(), chunk.position, size)
                    if sent == 0:
                        raise EOFError("a log file is shorter than the slice to send")  # noqa: TRY301  handled like others
                    if sent < size:
                        queue[0] = chunk.without(sent)
                if sent == size:
                    queue.popleft()
                left -= sent
                self.sent_bytes += sent
        except BlockingIOError:
            return
        except (ConnectionError, TimeoutError):
            self._abort()
        except (OSError, EOFError) as error:
            log.error("cannot send a response", error)
            # With sendfile, EIO comes from the file. Other errors may come from the socket.
            if isinstance(error, OSError) and error.errno == errno.EIO and isinstance(chunk, LogSlice) and chunk.on_error:
                chunk.on_error(error)
            self._abort()

    def _send_encrypted(self) -> None:
        """Send chunks through an encrypted transport. Continues in the loop's next turn, or when the transport has drained."""
        queue = self.queue
        left = _ENCRYPTED_TURN_BYTES
        try:
            while queue and left > 0 and not self._is_full and not self._transport.is_closing():
                chunk = queue[0]
                size = min(len(chunk), _PIECE_BYTES)
                data = chunk[:size] if type(chunk) is bytes else chunk.first(size).read()
                if len(data) < size:
                    raise EOFError("a log file is shorter than the slice to send")  # noqa: TRY301  handled like others
                if size == len(chunk):
                    queue.popleft()
                else:
                    queue[0] = chunk[size:] if type(chunk) is bytes else chunk.without(size)
                left -= size
                self.sent_bytes += size
                self._transport.write(data)
        except (OSError, EOFError) as error:
            log.error("cannot send a response", error)
            self._abort()
        if queue and not self._is_full:
            self._is_turn_due = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Send more chunks through the encrypted transport, if any wait."""
        self._is_turn_due = False
        if self.queue:
            self._send_encrypted()
            if not self.queue:
                self._on_drained()

    def _abort(self) -> None:
        self.close()
        self._transport.abort()

    def _on_writable(self) -> None:
        self._send_turn()
        if not self.queue and self._watched_fd >= 0:
            self._unwatch()
            self._on_drained()

    def _watch(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched_fd = os.dup(self._fd)
        self._loop.add_writer(self._watched_fd, self._on_writable)

    def _unwatch(self) -> None:
        if self._watched_fd >= 0 and self._loop is not None:
            # Typed to return object, not bool: uvloop's returns None, which compiled code would not accept as a bool.
            remove_writer: Callable[[int], object] = self._loop.remove_writer
            remove_writer(self._watched_fd)
            os.close(self._watched_fd)
            self._watched_fd = -1


def _is_large(chunk: Any) -> bool:
    if type(chunk) is bytes:
        return len(chunk) >= _LARGE_BYTES
    return len(chunk) >= _SENDFILE_FROM_BYTES and chunk.file.fileno() is not None


def _joined(chunks: list[Any]) -> list[Any]:
    """Return the same bytes in fewer chunks: all small chunks between two large ones become one."""
    result: list[Any] = []
    small: list[bytes] = []
    for chunk in chunks:
        if _is_large(chunk):
            if small:
                result.append(b"".join(small))
                small = []
            result.append(chunk)
        else:
            small.append(chunk if type(chunk) is bytes else chunk.read())
    if small:
        result.append(b"".join(small))
    return [chunk for chunk in result if len(chunk)]
