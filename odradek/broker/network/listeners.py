"""The listeners: where the broker binds, and what it tells clients.

``listeners`` names where to bind, ``advertised.listeners`` what Metadata answers to a client that came in by the listener of
that name; a port of 0 takes a free one, and the advertised port follows.

Left out: TLS and SASL. ``listener.security.protocol.map`` may say PLAINTEXT only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.endpoints import Endpoint

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Listeners:
    """The sockets a broker listens on."""

    def __init__(self, make_connection: Callable[[str], asyncio.BaseProtocol]) -> None:
        self._make_connection = make_connection
        self._servers: list[asyncio.Server] = []
        self.bound: dict[str, Endpoint] = {}

    async def bind(self, endpoints: list[Endpoint], loop: asyncio.AbstractEventLoop, backlog: int) -> None:
        """Take every address, without accepting connections; OSError where one cannot be had, and then none stays bound."""
        try:
            for endpoint in endpoints:
                self.bound[endpoint.name] = await self._bind(endpoint, loop, backlog)
        except OSError:
            await self.stop()
            raise

    async def serve(self) -> None:
        """Accept connections."""
        for server in self._servers:
            await server.start_serving()

    async def stop(self) -> None:
        """Accept no more connections; those that are open stay."""
        for server in self._servers:
            server.close()
        self._servers = []

    async def _bind(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop, backlog: int) -> Endpoint:
        name = endpoint.name
        server = await loop.create_server(
            lambda: self._make_connection(name),
            endpoint.host or None,
            endpoint.port,
            backlog=backlog,
            reuse_address=True,
            start_serving=False,
        )
        self._servers.append(server)
        port = server.sockets[0].getsockname()[1]
        return Endpoint(name, endpoint.host, port)


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
