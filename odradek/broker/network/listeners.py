"""The listeners of a server (broker or controller): addresses, sockets, connections, TLS, SASL, and an orderly end.

``listeners`` has the addresses to bind. ``advertised.listeners`` has the address that Metadata returns to clients of the listener
of that name. A port of 0 takes a free port, and the advertised port follows it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_registry import ConnectionLimits, ConnectionRegistry
from odradek.broker.network.request_limits import RequestMemory
from odradek.common.config.listener_config import (
    SASL_PROTOCOLS,
    TLS_PROTOCOLS,
    Endpoint,
    parse_endpoints,
    per_ip_overrides,
    security_protocols_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.broker.large import ResponseMemory
    from odradek.broker.network.connection_registry import IpQuotas
    from odradek.broker.network.dispatch import Dispatcher
    from odradek.broker.network.sasl_listeners import SaslListeners
    from odradek.broker.network.tls_connection import TlsFront
    from odradek.broker.security.sasl.scram import ScramCredential, TokenCredential
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.protocol.scram import ScramMechanism
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

SYSTEM_BUFFER = -1
# The time in which requests may finish at a stop: a number of real-time steps, independent of the broker's clock.
_DRAIN_STEPS = 300
_DRAIN_STEP_S = 0.01


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


def advertised_endpoints(config: BrokerConfig, bound: Mapping[str, Endpoint]) -> dict[str, Endpoint]:
    """Return the address advertised to each listener's clients: from ``advertised.listeners``, else the bound address.

    An advertised port of 0 stands for the bound port. A listener bound to every address is advertised as localhost.
    """
    configured = parse_endpoints("advertised.listeners", config["advertised.listeners"] or ())
    advertised = {endpoint.name: endpoint for endpoint in configured}
    result = {}
    for name, endpoint in bound.items():
        chosen = advertised.get(name, endpoint)
        host = chosen.host if chosen.host not in {"", "0.0.0.0", "::"} else "localhost"  # noqa: S104  compared, not bound
        result[name] = Endpoint(name, host, chosen.port or endpoint.port)
    return result


def socket_settings(config: BrokerConfig) -> SocketSettings:
    """Return the backlog and the buffer sizes of the ``socket.*`` configs."""
    return SocketSettings(
        backlog=config["socket.listen.backlog.size"],
        send_buffer_bytes=config["socket.send.buffer.bytes"],
        receive_buffer_bytes=config["socket.receive.buffer.bytes"],
    )


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """Return the current limits. They can be altered while the server runs."""
    return ConnectionLimits(
        max_connections=config["max.connections"],
        max_creation_rate=config["max.connection.creation.rate"],
        max_connections_per_ip=config["max.connections.per.ip"],
        per_ip_overrides=per_ip_overrides(config["max.connections.per.ip.overrides"]),
        max_idle_ms=config["connections.max.idle.ms"],
    )


def tls_front(
    config: BrokerConfig, endpoints: Sequence[Endpoint], timer: Timer, call_soon: Callable[[Callable[[], None]], object]
) -> TlsFront | None:
    """Return TLS for the listeners that use it, with their stores loaded; None if none does. Raises InvalidConfig."""
    if not any(protocol in TLS_PROTOCOLS for protocol in security_protocols_of(config, endpoints)):
        return None
    from odradek.broker.network.tls_connection import TlsFront  # 4.6 ms

    return TlsFront(config, endpoints, timer, call_soon)


class ListenersHost(Protocol):
    """The process that listens."""

    config: BrokerConfig
    clock: Clock
    timer: Timer
    background: Background
    call_soon: Callable[[Callable[[], None]], object]


class Credentials(Protocol):
    """The credentials in the metadata of a node. They may change while it serves."""

    def scram(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return a user's credential."""

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """Return the credential of a delegation token."""


class ServedNode(Protocol):
    """The broker or controller that answers the requests."""

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher of clients' requests."""

    @property
    def credentials(self) -> Credentials:
        """The clients' credentials."""

    @property
    def ip_quotas(self) -> IpQuotas:
        """The quotas on addresses."""

    @property
    def response_memory(self) -> ResponseMemory | None:
        """The memory of large responses; None if it has no limit."""

    def answer_waiting(self) -> None:
        """Answer every waiting request: the node is about to stop."""


class ServedListeners:
    """The listeners of a broker or a controller, with their connections, TLS and SASL. Loop thread only.

    They accept no connection before ``serve`` is called with the node that answers.
    """

    def __init__(self, host: ListenersHost, endpoints: list[Endpoint], tls: TlsFront | None) -> None:
        """Make the listeners, unbound. Raises InvalidConfig if a SASL listener's mechanisms are not available."""
        config = self._config = host.config
        memory = RequestMemory(config["queued.max.request.bytes"], host.clock, host.call_soon)
        self.connections = ConnectionRegistry(partial(connection_limits, config), host.clock, host.timer, host.call_soon, memory)
        self._node: asyncio.Future[ServedNode] = asyncio.get_running_loop().create_future()
        self._endpoints = endpoints
        self._tls = tls
        self._sasl = self._make_sasl(host)
        self._listeners = Listeners(self._make_connection)

    @property
    def bound(self) -> dict[str, Endpoint]:
        """The bound addresses by listener name."""
        return self._listeners.bound

    @property
    def bound_address(self) -> tuple[str, int]:
        """The (host, port) of the first listener."""
        endpoint = next(iter(self._listeners.bound.values()))
        return endpoint.host, endpoint.port

    async def bind(self) -> None:
        """Bind the addresses. If one fails, none stays bound, and OSError is raised."""
        await self._listeners.bind(self._endpoints, asyncio.get_running_loop(), socket_settings(self._config))

    async def serve(self, node: ServedNode) -> None:
        """Accept connections for ``node``. Raises OSError."""
        self._node.set_result(node)
        self.connections.ip_quotas = node.ip_quotas
        self.connections.response_memory = node.response_memory
        await self._listeners.serve()

    async def stop(self) -> None:
        """Refuse new requests, answer the waiting ones, let the answers go out, and close the connections."""
        self._stop_accepting()
        self._node.result().answer_waiting()
        for _ in range(_DRAIN_STEPS):
            if not self.connections.busy():
                break
            await asyncio.sleep(_DRAIN_STEP_S)
        self.connections.close_all()
        # One turn of the loop, in which the transports close.
        await asyncio.sleep(0)

    def close(self) -> None:
        """Close the listeners and all connections at once."""
        self._stop_accepting()
        self.connections.close_all()

    def _stop_accepting(self) -> None:
        """Accept no more connections, and no more requests on open ones."""
        self._listeners.close()
        self.connections.stop_reading()

    def _make_sasl(self, host: ListenersHost) -> SaslListeners | None:
        """Return SASL for the listeners that use it; None if none does. Raises InvalidConfig."""
        config = host.config
        protocols = security_protocols_of(config, self._endpoints)
        names = [each.name for each, protocol in zip(self._endpoints, protocols, strict=True) if protocol in SASL_PROTOCOLS]
        if not names:
            return None
        from odradek.broker.network.sasl_listeners import SaslListeners  # 14 ms
        from odradek.broker.security.sasl.listeners import SaslServices
        from odradek.broker.security.sasl.scram import new_nonce

        services = SaslServices(self._scram_credential, new_nonce, host.clock, host.background, self._token_credential)
        sasl = SaslListeners(config, host.timer, self.connections, names, services)
        config.watch(sasl.check, sasl.reload)
        return sasl

    def _scram_credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._node.result().credentials.scram(user, mechanism)

    def _token_credential(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        return self._node.result().credentials.token(token_id, mechanism)

    def _make_connection(self, listener_name: str) -> asyncio.BaseProtocol:
        dispatcher = self._node.result().dispatcher
        connection = Connection(dispatcher, self.connections, listener_name, self._config["socket.request.max.bytes"])
        if self._sasl is not None:
            self._sasl.guard(connection, dispatcher, listener_name)
        return connection if self._tls is None else self._tls.secured(connection, self.connections.line_limit)
