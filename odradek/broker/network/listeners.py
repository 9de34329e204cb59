"""The listeners: the addresses that the broker binds and those that it advertises.

``listeners`` has the addresses to bind. ``advertised.listeners`` has the address that Metadata returns to clients of the listener
of that name. A port of 0 takes a free port, and the advertised port follows it.

TLS and SASL are set up by the server (``tls_connection``, ``sasl_listeners``).
"""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.config.listener_config import Endpoint

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


SYSTEM_BUFFER = -1


class SocketSettings(NamedTuple):
    """``socket.listen.backlog.size``, and a connection's buffer sizes in bytes; SYSTEM_BUFFER is the system's default."""

    backlog: int
    send_buffer_bytes: int = SYSTEM_BUFFER
    receive_buffer_bytes: int = SYSTEM_BUFFER


OTHER_PORT = "choose another port, or port 0 for a free one"


def cannot_bind(host: str, port: int, error: OSError, way_out: str = OTHER_PORT) -> OSError:
    """Return an error that names the address that could not be bound; for a port in use, it says what to do."""
    # asyncio's own text repeats the address. A name that cannot be resolved has a number of its own.
    reason = error.strerror or str(error)
    if error.errno is not None and error.errno in errno.errorcode:
        reason = os.strerror(error.errno)
    if error.errno == errno.EADDRINUSE:
        reason = f"address already in use; {way_out}"
    return OSError(error.errno, f"cannot bind {host}:{port}: {reason}")


class Listeners:
    """The listening sockets of a broker."""

    def __init__(self, make_connection: Callable[[str], asyncio.BaseProtocol]) -> None:
        self._make_connection = make_connection
        self._servers: list[asyncio.Server] = []
        self.bound: dict[str, Endpoint] = {}

    async def bind(self, endpoints: list[Endpoint], loop: asyncio.AbstractEventLoop, settings: SocketSettings) -> None:
        """Bind every address, without accepting connections. If one fails, none stays bound, and OSError is raised."""
        try:
            for endpoint in endpoints:
                self.bound[endpoint.name] = await self._bind(endpoint, loop, settings)
        except OSError:
            self.close()
            raise

    async def serve(self) -> None:
        """Accept connections."""
        for server in self._servers:
            await server.start_serving()

    def close(self) -> None:
        """Accept no more connections. Open ones stay."""
        for server in self._servers:
            server.close()
        self._servers = []

    async def _bind(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop, settings: SocketSettings) -> Endpoint:
        name = endpoint.name
        try:
            server = await loop.create_server(
                lambda: self._make_connection(name),
                endpoint.host or None,
                endpoint.port,
                backlog=settings.backlog,
                reuse_address=True,
                start_serving=False,
            )
        except OSError as error:
            raise cannot_bind(endpoint.host, endpoint.port, error) from error
        self._servers.append(server)
        for listening in server.sockets:
            _set_buffers(listening, settings)
        port = server.sockets[0].getsockname()[1]
        return Endpoint(name, endpoint.host, port)


def _set_buffers(listening: socket.socket, settings: SocketSettings) -> None:
    """Set the sizes, which accepted connections inherit. A receive buffer's size must be set before the connection is made."""
    if settings.send_buffer_bytes != SYSTEM_BUFFER:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if settings.receive_buffer_bytes != SYSTEM_BUFFER:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)


def advertised_endpoints(bound: dict[str, Endpoint], advertised: list[Endpoint]) -> dict[str, Endpoint]:
    """Return the address advertised to each listener's clients: from ``advertised.listeners``, else the bound address.

    An advertised port of 0 stands for the bound port. A listener bound to every address is advertised as localhost.
    """
    told = {endpoint.name: endpoint for endpoint in advertised}
    result = {}
    for name, endpoint in bound.items():
        chosen = told.get(name, endpoint)
        host = chosen.host if chosen.host not in {"", "0.0.0.0", "::"} else "localhost"  # noqa: S104  compared, not bound
        result[name] = Endpoint(name, host, chosen.port or endpoint.port)
    return result
