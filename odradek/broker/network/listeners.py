"""The listeners: where the broker binds, and what it tells clients.

``listeners`` names where to bind, ``advertised.listeners`` what Metadata answers to a client that came in by the listener of
that name; a port of 0 takes a free one, and the advertised port follows.

What stands in front of a connection, TLS and SASL, is its server's affair (``tls_front``, ``sasl_listeners``).
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.config.endpoints import Endpoint

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


SYSTEM_BUFFER = -1


class SocketSettings(NamedTuple):
    """``socket.listen.backlog.size``, and a connection's buffers in bytes; SYSTEM_BUFFER leaves a size to the system."""

    backlog: int
    send_buffer_bytes: int = SYSTEM_BUFFER
    receive_buffer_bytes: int = SYSTEM_BUFFER


class Listeners:
    """The sockets a broker listens on."""

    def __init__(self, make_connection: Callable[[str], asyncio.BaseProtocol]) -> None:
        self._make_connection = make_connection
        self._servers: list[asyncio.Server] = []
        self.bound: dict[str, Endpoint] = {}

    async def bind(self, endpoints: list[Endpoint], loop: asyncio.AbstractEventLoop, settings: SocketSettings) -> None:
        """Take every address, without accepting connections; OSError where one cannot be had, and then none stays bound."""
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
        """Accept no more connections; those that are open stay."""
        for server in self._servers:
            server.close()
        self._servers = []

    async def _bind(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop, settings: SocketSettings) -> Endpoint:
        name = endpoint.name
        server = await loop.create_server(
            lambda: self._make_connection(name),
            endpoint.host or None,
            endpoint.port,
            backlog=settings.backlog,
            reuse_address=True,
            start_serving=False,
        )
        self._servers.append(server)
        for listening in server.sockets:
            _set_buffers(listening, settings)
        port = server.sockets[0].getsockname()[1]
        return Endpoint(name, endpoint.host, port)


def _set_buffers(listening: socket.socket, settings: SocketSettings) -> None:
    """Every connection that is accepted inherits the sizes; a receive buffer must have its size before the connection is made."""
    if settings.send_buffer_bytes != SYSTEM_BUFFER:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if settings.receive_buffer_bytes != SYSTEM_BUFFER:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)


def advertised_endpoints(bound: dict[str, Endpoint], advertised: list[Endpoint]) -> dict[str, Endpoint]:
    """What each listener's clients are told: ``advertised.listeners`` where it names the listener, else where it is bound.

    An advertised port of 0 stands for the port that was bound; a listener bound to every address is advertised as localhost.
    """
    told = {endpoint.name: endpoint for endpoint in advertised}
    result = {}
    for name, endpoint in bound.items():
        chosen = told.get(name, endpoint)
        host = chosen.host if chosen.host not in {"", "0.0.0.0", "::"} else "localhost"  # noqa: S104  compared, not bound
        result[name] = Endpoint(name, host, chosen.port or endpoint.port)
    return result
