"""The listeners: where the broker binds, what it tells clients, and which connections there are.

``listeners`` names where to bind, ``advertised.listeners`` what Metadata answers to a client that came in by the listener of
that name; a port of 0 takes a free one, and the advertised port follows. Limits: ``max.connections`` and
``max.connections.per.ip`` refuse by closing at once, ``connections.max.idle.ms`` closes what has been silent.

Left out: TLS and SASL. ``listener.security.protocol.map`` may say PLAINTEXT only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.broker.config.endpoints import Endpoint
from odradek.broker.logging import log
from odradek.broker.network.outbox import Outbox

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping

    from odradek.broker.network.busy_poll import BusyPoll
    from odradek.broker.network.connection import Connection
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

_MIN_SWEEP_MS = 100
_TRIM_AFTER_MS = 10_000


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """``max.connections``, ``max.connections.per.ip`` with its overrides, ``connections.max.idle.ms`` (negative: never)."""

    max_connections: int
    max_connections_per_ip: int
    per_ip_overrides: Mapping[str, int]
    max_idle_ms: int


class ConnectionRegistry:
    """The open connections of a broker, counted and limited by what ``limits`` says at that moment. Loop thread only."""

    def __init__(self, limits: Callable[[], ConnectionLimits], clock: Clock, timer: Timer) -> None:
        self.clock = clock
        self.is_stopping = False
        # Told of all that comes.
        self.busy_poll: BusyPoll | None = None
        self.outbox = Outbox()
        self._limits = limits
        self._timer = timer
        self._connections: set[Connection] = set()
        self._by_ip: dict[str, int] = {}
        self._is_sweep_armed = False
        self.accepted = 0
        self.refused = 0
        self.closed_idle = 0
        self.closed_malformed = 0
        # Of the connections that are gone; the others' are with them.
        self._received_bytes = 0
        self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._connections)

    @property
    def received_bytes(self) -> int:
        """What all connections have received since the broker started."""
        return self._received_bytes + sum(connection.received_bytes for connection in self._connections)

    @property
    def sent_bytes(self) -> int:
        """What all connections have sent since the broker started."""
        return self._sent_bytes + sum(connection.sent_bytes for connection in self._connections)

    def add(self, connection: Connection) -> bool:
        """Take in a new connection; False where a limit forbids it."""
        ip = connection.peer[0]
        here = self._by_ip.get(ip, 0)
        limits = self._limits()
        if self.is_stopping or len(self._connections) >= limits.max_connections:
            return self._refuse(connection, "max.connections", limits.max_connections)
        allowed_here = limits.per_ip_overrides.get(ip, limits.max_connections_per_ip)
        if here >= allowed_here:
            return self._refuse(connection, "max.connections.per.ip", allowed_here)
        self._arm_sweep()
        self.accepted += 1
        self._by_ip[ip] = here + 1
        self._connections.add(connection)
        connection.last_active_ms = self.clock.monotonic_ms()
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that was lost; one that was refused is not known."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._received_bytes += connection.received_bytes
        self._sent_bytes += connection.sent_bytes
        ip = connection.peer[0]
        self._by_ip[ip] -= 1
        if not self._by_ip[ip]:
            del self._by_ip[ip]

    def stop_reading(self) -> None:
        """No further request is taken from any connection."""
        self.is_stopping = True
        for connection in self._connections:
            connection.stop_reading()

    def busy(self) -> int:
        """How many connections still owe an answer."""
        return sum(connection.is_busy for connection in self._connections)

    def close_all(self) -> None:
        """Close every connection, whatever its client has not taken by now."""
        for connection in tuple(self._connections):
            connection.end()

    def _refuse(self, connection: Connection, config: str, limit: int) -> bool:
        self.refused += 1
        if not self.is_stopping:
            log.warn("refusing a connection", peer=f"{connection.peer[0]}:{connection.peer[1]}", config=config, limit=limit)
        return False

    def _arm_sweep(self) -> None:
        max_idle_ms = self._limits().max_idle_ms
        if not self._is_sweep_armed:
            self._is_sweep_armed = True
            interval_ms = max(max_idle_ms / 4, _MIN_SWEEP_MS) if max_idle_ms >= 0 else _TRIM_AFTER_MS
            self._timer.call_after(min(interval_ms, _TRIM_AFTER_MS), self._sweep)

    def _sweep(self) -> None:
        """Close what has neither sent nor taken anything for too long; goes on as long as anybody is connected."""
        self._is_sweep_armed = False
        max_idle_ms = self._limits().max_idle_ms
        now_ms = self.clock.monotonic_ms()
        for connection in tuple(self._connections):
            if 0 <= max_idle_ms < connection.idle_ms(now_ms):
                self.closed_idle += 1
                connection.end()
            elif now_ms - connection.last_active_ms > _TRIM_AFTER_MS:
                connection.trim()
        if self._connections:
            self._arm_sweep()


class Listeners:
    """The sockets a broker listens on."""

    def __init__(self, make_connection: Callable[[str], Connection]) -> None:
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
