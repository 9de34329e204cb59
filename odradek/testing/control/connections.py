"""The connections of the control interface: a thread for each, and limits on what strangers can use.

A request's head is read first, and ``admit`` decides by it. Only then is its body read. If the request is refused, at most
``SMALL_BYTES`` of the body are read, so that its client gets the reason. ``MOST_CONNECTIONS`` are served at once; further ones
are closed. The bodies of all pending requests share ``MOST_BYTES``; a body that finds no room is answered with 503.
"""

from __future__ import annotations

import json
import sys
import threading
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol, cast

from odradek.common.logging import log

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable
    from io import BufferedIOBase

    from odradek.testing.control.route import Json

MOST_BYTES = 64 * 1024 * 1024
SMALL_BYTES = 64 * 1024
MOST_CONNECTIONS = 256
_BACKLOG = 1024
_MOST_HEAD_BYTES = 16 * 1024
_MOST_LENGTH_DIGITS = 10
# The time a connection may be silent: without a valid token, and with one.
_STRANGER_IDLE_S = 10.0
_IDLE_S = 60.0
_UNAUTHORIZED = 401
_UNAVAILABLE = 503


class Refusal(Exception):
    """A refused request. ``status`` is the status of its answer."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class Application(Protocol):
    """The application that answers requests, in threads of the server."""

    def admit(self, method: str, target: str, authorization: str, peer: str) -> int:
        """Return how many bytes the body of such a request may have. Raises Refusal."""

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Json]:
        """Return status and answer."""


class Server(ThreadingHTTPServer):
    """An HTTP server whose threads end with the process. A client that disconnects is not logged."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = _BACKLOG

    def __init__(
        self, address: tuple[str, int], application: Application, context: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        """Listen on ``address``. ``context`` is called for each connection. Raises OSError."""
        self.application = application
        self.room = _Room(MOST_BYTES)
        self._context = context
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept a connection. Its handshake is done later in its own thread, with its first bytes."""
        connection, address = super().get_request()
        if self._context is not None:
            connection = self._context().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its own thread, if there is a place for it."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  the standard library's signature
        """Log the error, unless it is an OSError. The connection is closed."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            log.error("a control connection failed", error)


class _Room:
    """The bytes available to the bodies of all requests."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take ``size`` bytes. Return whether there was room."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give(self, size: int) -> None:
        """Give ``size`` bytes back."""
        with self._lock:
            self._left += size


class _Reader:
    """Reads a connection, and limits a request's head to ``_MOST_HEAD_BYTES``."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._left = 0
        self.read = file.read
        self.close = file.close

    def begin_head(self) -> None:
        """Start the head of a request."""
        self._left = _MOST_HEAD_BYTES

    def readline(self, limit: int) -> bytes:
        """Return a line of the head. Raises LineTooLong."""
        line = self._file.readline(min(limit, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("head")
        return line


class _Handler(BaseHTTPRequestHandler):
    """The handler of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "odradek"
    sys_version = ""
    timeout = _STRANGER_IDLE_S
    server: Server

    def setup(self) -> None:
        """Prepare for the first request."""
        super().setup()
        self._reader = _Reader(self.rfile)
        # The standard library uses no other methods of the file.
        self.rfile = cast("BufferedIOBase", self._reader)

    def handle_one_request(self) -> None:
        """Handle one request, or none if the client has gone."""
        self._reader.begin_head()
        try:
            super().handle_one_request()
        except LineTooLong:
            # The limit was reached within the request's first line.
            self.command = self.requestline = ""
            self.request_version = self.protocol_version
            self.close_connection = True
            self._send(431, {"error": f"a head has {_MOST_HEAD_BYTES} bytes at most"})

    def handle_expect_100(self) -> bool:
        """Send nothing yet: ``_serve`` decides by the whole head whether the body is wanted."""
        return True

    def _serve(self) -> None:
        try:
            most_bytes = self.server.application.admit(
                self.command, self.path, self.headers.get("Authorization", ""), self.client_address[0]
            )
        except Refusal as refusal:
            # After an unread body, the next request could not be found.
            is_read = self._length() <= SMALL_BYTES and not self._waits_to_send and self._read_body() is not None
            self.close_connection |= not is_read
            self._send(refusal.status, {"error": str(refusal)})
            return
        if most_bytes > SMALL_BYTES:
            self.connection.settimeout(_IDLE_S)
        size = self._length()
        if not 0 <= size <= most_bytes:
            self.close_connection = True
            is_chunked = "Transfer-Encoding" in self.headers
            self._send(411 if is_chunked else 413, {"error": f"a body has a Content-Length, of {most_bytes} at most"})
            return
        if not self.server.room.take(size):
            self.close_connection = True
            self._send(_UNAVAILABLE, {"error": f"other requests' bodies take the room, {MOST_BYTES} bytes: try again"})
            return
        try:
            body = self._read_body()
            if body is None:
                # The client has disconnected in the middle of the body.
                self.close_connection = True
            else:
                self._send(*self.server.application.answer(self.command, self.path, body))
        finally:
            self.server.room.give(size)

    do_GET = do_POST = do_DELETE = do_PUT = _serve  # noqa: N815  the standard library's names

    def _length(self) -> int:
        """Return the size of the body; ``sys.maxsize`` if it is unknown."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal() or len(length) > _MOST_LENGTH_DIGITS:
            return sys.maxsize
        return int(length)

    @property
    def _waits_to_send(self) -> bool:
        return self.headers.get("Expect", "").lower() == "100-continue"

    def _read_body(self) -> bytes | None:
        """Return the body; None if the client disconnects before its end."""
        size = self._length()
        if self._waits_to_send:
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(size)
        return body if len(body) == size else None

    def _send(self, status: int, answer: Json) -> None:
        body = json.dumps(answer).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        if status == _UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == _UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the standard library's signature
        """Do nothing: requests are not logged."""
