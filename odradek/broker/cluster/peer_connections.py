"""Connections of a broker to the other nodes of its cluster, with TLS and login if the target listener requires them.

Brokers are reached through the listener between brokers, controllers through the first of ``controller.listener.names``. As in
Kafka, the ``ssl.`` configs of this listener are also the client's: its certificate is in the key store, the certificates it
trusts are in the trust store, and ``ssl.endpoint.identification.algorithm`` says whether to verify the host name. The listener's
JAAS line is used, too (``sasl.peer_login``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client.node_client import connect_to
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.endpoints import PLAINTEXT, SASL_PROTOCOLS, TLS_PROTOCOLS, inter_broker_listener, security_protocols

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.client.login import Login
    from odradek.client.node_client import Connect
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.quorum.leader_discovery import Address
    from odradek.timing.clock import Clock


class PeerConnections:
    """The connectors to brokers and controllers. Loop thread only.

    ``to_controllers``: whether there are controllers elsewhere. Raises InvalidConfig if stores cannot be loaded, or if the login
    is ambiguous.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, *, to_controllers: bool) -> None:
        listener = inter_broker_listener(config)
        self._broker = _By(config, listener, "sasl.mechanism.inter.broker.protocol", clock)
        _ensure_mechanism_is_served(config, listener)
        self._controller: _By | None = None
        if to_controllers:
            controllers = config["controller.listener.names"][0].upper()
            self._controller = _By(config, controllers, "sasl.mechanism.controller.protocol", clock)

    def to_broker(self, address: Address) -> Connect:
        """Return the connector to a broker."""
        return self._broker.connect(address)

    def to_controller(self, address: Address) -> Connect:
        """Return the connector to a controller."""
        assert self._controller is not None  # noqa: S101  only a broker with controllers elsewhere connects to them
        return self._controller.connect(address)


class _By:
    """Connects through one listener."""

    def __init__(self, config: BrokerConfig, listener: str, config_name: str, clock: Clock) -> None:
        protocol = security_protocols(config).get(listener, PLAINTEXT)
        self._tls: Callable[[], ssl.SSLContext] | None = None
        self._login: Callable[[], Login] | None = None
        if protocol in TLS_PROTOCOLS:
            from odradek.broker.security.tls.tls_listeners import TlsClient

            self._tls = TlsClient(config, listener).context
        if protocol in SASL_PROTOCOLS:
            from odradek.broker.security.sasl.peer_login import PeerLogin

            self._login = PeerLogin(config, listener, config_name, clock)

    def connect(self, address: Address) -> Connect:
        return connect_to(*address, self._tls, self._login)


def _ensure_mechanism_is_served(config: BrokerConfig, listener: str) -> None:
    """Raise InvalidConfig unless this listener serves the mechanism: the other brokers have the same listener."""
    if security_protocols(config).get(listener) not in SASL_PROTOCOLS:
        return
    name = "sasl.mechanism.inter.broker.protocol"
    mechanism = config[name]
    sasl = config.sasl_config(listener)
    enabled = sasl.value("sasl.enabled.mechanisms")
    if mechanism not in enabled:
        key = sasl.key("sasl.enabled.mechanisms")
        raise InvalidConfig(name, mechanism, f"among the {key} of the listener between brokers: {', '.join(enabled)}")
