"""TLS in front of a server's connections, for its SSL and SASL_SSL listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.network.handshake_turns import HandshakeTurns
from odradek.broker.network.tls_connection import TlsConnection
from odradek.broker.security.tls.tls_listeners import TlsListeners

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from odradek.broker.network.connection import Connection
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.endpoints import Endpoint
    from odradek.common.logging import LineLimit
    from odradek.timing.timer import Timer


class TlsFront:
    """The TLS setup of a server's listeners. Loads their stores. Raises InvalidConfig.

    When dynamic configs are altered, ``config`` calls back to check the stores and load them again.
    """

    def __init__(
        self,
        config: BrokerConfig,
        endpoints: Sequence[Endpoint],
        timer: Timer,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._listeners = TlsListeners(config, endpoints)
        self._timer = timer
        self._turns = HandshakeTurns(call_soon)
        config.watch(self._listeners.check, self._listeners.reload)

    def secured(self, connection: Connection, line_limit: LineLimit) -> asyncio.BaseProtocol:
        """Return the protocol for the socket of a new connection: the connection itself, or TLS in front of it."""
        name = connection.session.listener_name
        if name not in self._listeners:
            return connection
        return TlsConnection(connection, self._listeners[name], self._timer, self._turns, line_limit)
