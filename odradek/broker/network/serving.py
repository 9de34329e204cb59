"""What a broker's server and a controller's do alike: the settings of sockets, the limits of connections, a tidy end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.broker.network.connection_registry import ConnectionLimits
from odradek.broker.network.listeners import SocketSettings
from odradek.common.config.endpoints import SASL_PROTOCOLS, TLS_PROTOCOLS, per_ip_overrides, security_protocols_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.network.connection_registry import ConnectionRegistry
    from odradek.broker.network.sasl_listeners import SaslHost, SaslListeners
    from odradek.broker.network.tls_front import TlsFront
    from odradek.broker.security.sasl.scram import ScramCredential, TokenCredential
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.endpoints import Endpoint
    from odradek.protocol.scram import ScramMechanism
    from odradek.timing.background import Background
    from odradek.timing.timer import Timer

# How long a stop lets requests in flight finish: so many steps, whatever the broker's clock does meanwhile.
_DRAIN_STEPS = 300
_DRAIN_STEP_S = 0.01


def socket_settings(config: BrokerConfig) -> SocketSettings:
    """``socket.*``: the backlog and the buffers."""
    return SocketSettings(
        backlog=config["socket.listen.backlog.size"],
        send_buffer_bytes=config["socket.send.buffer.bytes"],
        receive_buffer_bytes=config["socket.receive.buffer.bytes"],
    )


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """The limits as they are now: they can be altered while the server runs."""
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
    """TLS for the listeners among ``endpoints`` that have it, their stores loaded; None if none has. Raises InvalidConfig."""
    if not any(protocol in TLS_PROTOCOLS for protocol in security_protocols_of(config, endpoints)):
        return None
    from odradek.broker.network.tls_front import TlsFront

    return TlsFront(config, endpoints, timer, call_soon)


def sasl_front(
    host: SaslHost,
    endpoints: Sequence[Endpoint],
    connections: ConnectionRegistry,
    background: Background,
    find_scram_credential: Callable[[str, ScramMechanism], ScramCredential | None],
    find_token_credential: Callable[[str, ScramMechanism], TokenCredential | None],
) -> SaslListeners | None:
    """SASL for the listeners among ``endpoints`` that want it; None if none does. Raises InvalidConfig."""
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


async def drain(connections: ConnectionRegistry) -> None:
    """Let the answers in flight go out, and close the connections."""
    for _ in range(_DRAIN_STEPS):
        if not connections.busy():
            break
        await asyncio.sleep(_DRAIN_STEP_S)
    connections.close_all()
    # One turn of the loop, in which the transports close.
    await asyncio.sleep(0)
