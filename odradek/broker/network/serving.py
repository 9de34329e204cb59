"""The listeners of a server (broker or controller): sockets, connections, TLS, SASL, and an orderly end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_registry import ConnectionLimits, ConnectionRegistry
from odradek.broker.network.listeners import Listeners, SocketSettings
from odradek.broker.network.request_limits import RequestMemory
from odradek.common.config.listener_config import SASL_PROTOCOLS, TLS_PROTOCOLS, per_ip_overrides, security_protocols_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.network.dispatch import Dispatcher
    from odradek.broker.network.sasl_listeners import SaslHost, SaslListeners
    from odradek.broker.network.tls_connection import TlsFront
    from odradek.broker.security.sasl.scram import ScramCredential, TokenCredential
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.protocol.scram import ScramMechanism
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

# The time in which requests may finish at a stop: a number of real-time steps, independent of the broker's clock.
_DRAIN_STEPS = 300
_DRAIN_STEP_S = 0.01


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
    from odradek.broker.network.tls_connection import TlsFront

    return TlsFront(config, endpoints, timer, call_soon)


def sasl_front(
    host: SaslHost,
    endpoints: Sequence[Endpoint],
    connections: ConnectionRegistry,
    background: Background,
    find_scram_credential: Callable[[str, ScramMechanism], ScramCredential | None],
    find_token_credential: Callable[[str, ScramMechanism], TokenCredential | None],
) -> SaslListeners | None:
    """Return SASL for the listeners among ``endpoints`` that use it; None if none does. Raises InvalidConfig."""
    config = host.config
    protocols = security_protocols_of(config, endpoints)
    names = [endpoint.name for endpoint, protocol in zip(endpoints, protocols, strict=True) if protocol in SASL_PROTOCOLS]
    if not names:
        return None
    from odradek.broker.network.sasl_listeners import SaslListeners
    from odradek.broker.security.sasl.listeners import SaslServices
    from odradek.broker.security.sasl.scram import new_nonce

    services = SaslServices(find_scram_credential, new_nonce, host.clock, background, find_token_credential)
    front = SaslListeners(host, connections, names, services, config["socket.request.max.bytes"])
    config.watch(front.check, front.reload)
    return front


class ServedListeners:
    """The listeners of a server, with their connections, TLS and SASL. Loop thread only."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        call_soon: Callable[[Callable[[], None]], object],
        dispatcher: Callable[[], Dispatcher],
    ) -> None:
        """Make the listeners, unbound. ``dispatcher`` is called for each connection."""
        memory = RequestMemory(config["queued.max.request.bytes"], clock, call_soon)
        self.connections = ConnectionRegistry(partial(connection_limits, config), clock, timer, call_soon, memory)
        # Set before ``bind`` if a listener uses TLS.
        self.tls: TlsFront | None = None
        self.config = config
        self._dispatcher = dispatcher
        self._listeners = Listeners(self._make_connection)
        self._sasl: SaslListeners | None = None

    @property
    def bound(self) -> dict[str, Endpoint]:
        """The bound addresses by listener name."""
        return self._listeners.bound

    @property
    def bound_address(self) -> tuple[str, int]:
        """The (host, port) of the first listener."""
        endpoint = next(iter(self._listeners.bound.values()))
        return endpoint.host, endpoint.port

    def enable_mechanisms(
        self,
        host: SaslHost,
        endpoints: Sequence[Endpoint],
        background: Background,
        find_scram_credential: Callable[[str, ScramMechanism], ScramCredential | None],
        find_token_credential: Callable[[str, ScramMechanism], TokenCredential | None],
    ) -> None:
        """Set up SASL for the listeners among ``endpoints`` that use it. Raises InvalidConfig."""
        self._sasl = sasl_front(host, endpoints, self.connections, background, find_scram_credential, find_token_credential)

    async def bind(self, endpoints: list[Endpoint]) -> None:
        """Bind the addresses. If one fails, none stays bound, and OSError is raised."""
        await self._listeners.bind(endpoints, asyncio.get_running_loop(), socket_settings(self.config))

    async def serve(self) -> None:
        """Accept connections. Raises OSError."""
        await self._listeners.serve()

    def stop_accepting(self) -> None:
        """Accept no more connections, and no more requests on open ones."""
        self._listeners.close()
        self.connections.stop_reading()

    def close(self) -> None:
        """Close the listeners and all connections at once."""
        self.stop_accepting()
        self.connections.close_all()

    def _make_connection(self, listener_name: str) -> asyncio.BaseProtocol:
        connection = Connection(self._dispatcher(), self.connections, listener_name, self.config["socket.request.max.bytes"])
        if self._sasl is not None:
            self._sasl.guard(connection, listener_name)
        return connection if self.tls is None else self.tls.secured(connection, self.connections.line_limit)


async def drain(connections: ConnectionRegistry) -> None:
    """Let pending answers go out, then close the connections."""
    for _ in range(_DRAIN_STEPS):
        if not connections.busy():
            break
        await asyncio.sleep(_DRAIN_STEP_S)
    connections.close_all()
    # One turn of the loop, in which the transports close.
    await asyncio.sleep(0)
