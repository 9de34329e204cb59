"""How a broker connects to the others of its cluster: in the clear, or by TLS where the listener that it connects to is SSL.

Brokers are reached by the listener between brokers, controllers by the first of ``controller.listener.names``. As in Kafka, the
``ssl.`` configs for this listener are also those of the client: the key store is what it shows where it is asked, the trust store
what it trusts the other by, and ``ssl.endpoint.identification.algorithm`` whether that one has to be the host it was looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.endpoints import PLAINTEXT, SSL, inter_broker_listener, security_protocols
from odradek.client.node_client import connect_to

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.quorum.leader_discovery import Address
    from odradek.client.node_client import Connect


class PeerConnections:
    """Raises InvalidConfig where the stores cannot be loaded. Loop thread only."""

    def __init__(self, config: BrokerConfig) -> None:
        controllers = config["controller.listener.names"]
        self._broker_tls = _client_tls(config, inter_broker_listener(config))
        self._controller_tls = _client_tls(config, controllers[0].upper()) if controllers else None

    def to_broker(self, address: Address) -> Connect:
        """What connects to a broker."""
        return connect_to(*address, self._broker_tls)

    def to_controller(self, address: Address) -> Connect:
        """What connects to a controller."""
        return connect_to(*address, self._controller_tls)


def _client_tls(config: BrokerConfig, listener: str) -> Callable[[], ssl.SSLContext] | None:
    if security_protocols(config).get(listener, PLAINTEXT) != SSL:
        return None
    from odradek.broker.security.tls_client import TlsClient

    return TlsClient(config, listener).context
