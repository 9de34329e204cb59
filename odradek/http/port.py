"""The sockets of the HTTP port, on the broker's own event loop, with TLS or without.

The port is bound before the broker touches its disk, and served after the start. Connections that come in between wait. Each
connection counts from the moment that it is accepted, including its handshake. Those beyond ``MOST_CONNECTIONS`` are closed. The
context is asked for at each connection, so a new certificate is used at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.network.listeners import OTHER_PORT, cannot_bind
from odradek.broker.network.tls_connection import handshake_cause
from odradek.common.logging import LineLimit, log
from odradek.timing.driver import OwnTasks
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.http.access import AsgiApp
    from odradek.http.connection import HttpConnection

MOST_CONNECTIONS: Final = 256
HANDSHAKE_S: Final = 10.0
BACKLOG: Final = 1024
WAY_OUT: Final = "choose another --http-port, or --http-port 0 for a free one"
_AGAIN_S: Final = 1.0
_CLOSING_TURNS: Final = 3
_MOST_CLOSING_TURNS: Final = 1_000
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104  compared, not bound


async def _listening(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at every address of ``host``, all at one port. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            try:
                listening = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                if error.errno == errno.EAFNOSUPPORT and len(found) > 1:
                    continue
                raise
            sockets.append(listening)
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken = sockets[0].getsockname()[1] if len(sockets) > 1 else port
            listening.bind((address[0], taken, *address[2:]))
            listening.listen(BACKLOG)
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


class HttpPort:
    """The port: ``bind`` it, ``serve`` an application, ``close`` it. ``context`` turns TLS on. Loop thread only."""

    def __init__(self, context: Callable[[], ssl.SSLContext] | None = None) -> None:
        """``context`` is called for each connection."""
        self._context = context
        self._sockets: list[socket.socket] = []
        self._tasks = OwnTasks()
        # Accepted connections; None during the handshake.
        self._open: dict[socket.socket, HttpConnection | None] = {}
        self._line_limit = LineLimit(SystemClock())
        self._requests: set[asyncio.Task[None]] = set()
        self.host = ""
        self.port = 0

    @property
    def url(self) -> str:
        """The URL, for a browser on this machine if the port is bound to every address."""
        host = "localhost" if self.host in _ANY_ADDRESS else self.host
        return f"{'http' if self._context is None else 'https'}://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def bind(self, host: str, ports: Iterable[int]) -> None:
        """Listen at the first of ``ports`` that is free; 0 is a free one. Empty host: every interface. Raises OSError."""
        refusal: OSError | None = None
        for port in ports:
            try:
                self._sockets = await _listening(host, port)
            except OSError as error:
                refusal = cannot_bind(host, port, error, WAY_OUT)
                if error.errno != errno.EADDRINUSE:
                    break
            else:
                self.host, self.port = host, self._sockets[0].getsockname()[1]
                return
        raise refusal or OSError("no port to bind")

    async def first_connection(self) -> None:
        """Wait until a connection waits to be accepted."""
        loop = asyncio.get_running_loop()
        waits = asyncio.Event()
        for listening in self._sockets:
            loop.add_reader(listening, waits.set)
        try:
            await waits.wait()
        finally:
            for listening in self._sockets:
                loop.remove_reader(listening)

    def serve(self, app: AsgiApp) -> None:
        """Accept connections for ``app``, an ASGI application."""
        from uvicorn.config import Config
        from uvicorn.server import ServerState

        from odradek.http.access import MOST_HEAD_BYTES
        from odradek.http.connection import ADMITTED_IDLE_S, HttpConnection

        # Uvicorn describes an application by types of its own.
        served: Any = app
        config = Config(
            served,
            http=HttpConnection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            timeout_keep_alive=int(ADMITTED_IDLE_S),
        )
        config.load()
        state = ServerState()
        self._requests = state.tasks

        def make(accepted: socket.socket) -> HttpConnection:
            connection = self._open[accepted] = HttpConnection(config, state, lambda: self._open.pop(accepted, None))
            return connection

        for listening in self._sockets:
            self._tasks.start(self._accept(listening, make))

    async def close(self) -> None:
        """Stop accepting, abort the connections, and cancel what they wait for."""
        for listening in self._sockets:
            listening.close()
        for connection in list(self._open.values()):
            if connection is not None and connection.transport is not None:
                connection.transport.abort()
        for task in self._requests:
            task.cancel()
        self._tasks.cancel()
        await asyncio.gather(self._tasks.ended(), *self._requests, return_exceptions=True)
        # Transports close in turns of the loop: first they are lost, then their sockets close.
        for _ in range(_MOST_CLOSING_TURNS):
            if not self._open:
                break
            await asyncio.sleep(0)
        for _ in range(_CLOSING_TURNS):
            await asyncio.sleep(0)

    async def _accept(self, listening: socket.socket, make: Callable[[socket.socket], HttpConnection]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError as error:
                # Out of file descriptors, mostly.
                self._warn("cannot accept an HTTP connection", "", str(error))
                await asyncio.sleep(_AGAIN_S)
                continue
            if len(self._open) >= MOST_CONNECTIONS:
                accepted.close()
                continue
            self._open[accepted] = None
            self._tasks.start(self._connect(accepted, peer, make))

    async def _connect(
        self, accepted: socket.socket, peer: tuple[Any, ...], make: Callable[[socket.socket], HttpConnection]
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            if self._context is None:
                await loop.connect_accepted_socket(lambda: make(accepted), accepted)
            else:
                await loop.connect_accepted_socket(
                    lambda: make(accepted), accepted, ssl=self._context(), ssl_handshake_timeout=HANDSHAKE_S
                )
        except (OSError, TimeoutError) as error:
            if isinstance(error, ssl.SSLError):
                self._warn("TLS handshake failed", f"{peer[0]}:{peer[1]}", handshake_cause(error))
            self._open.pop(accepted, None)
            accepted.close()
        except BaseException:
            self._open.pop(accepted, None)
            accepted.close()
            raise

    def _warn(self, event: str, peer: str, cause: str) -> None:
        extra_fields = self._line_limit.admit((event, cause, peer.rpartition(":")[0]))
        if extra_fields is not None:
            log.warn(event, peer=peer, listener="http", cause=cause, **extra_fields)


async def ensure_free(host: str, port: int, way_out: str = OTHER_PORT) -> None:
    """Raise OSError, which names the address, if it cannot be bound now."""
    try:
        sockets = await _listening(host, port)
    except OSError as error:
        raise cannot_bind(host, port, error, way_out) from error
    for each in sockets:
        with contextlib.suppress(OSError):
            each.close()
