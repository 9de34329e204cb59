"""How a broker connects to the others of its cluster: by TLS, and logging in, where the listener that it connects to wants that.

Brokers are reached by the listener between brokers, controllers by the first of ``controller.listener.names``. As in Kafka, the
``ssl.`` configs for this listener are also those of the client: the key store is what it shows where it is asked, the trust store
what it trusts the other by, and ``ssl.endpoint.identification.algorithm`` whether that one has to be the host it was looked for.
So is the listener's JAAS line (``sasl.peer_login``).
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
    """``to_controllers``: whether there are any elsewhere. Loop thread only.

    Raises InvalidConfig where stores cannot be loaded, or where it is not clear as who to log in.
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
        """What connects to a broker."""
        return self._broker.connect(address)

    def to_controller(self, address: Address) -> Connect:
        """What connects to a controller."""
        assert self._controller is not None  # noqa: S101  only who follows controllers elsewhere connects to them
        return self._controller.connect(address)


class _By:
    """What connects by one listener."""

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
    """The other brokers have this listener as it is here. Raises InvalidConfig."""
    if security_protocols(config).get(listener) not in SASL_PROTOCOLS:
        return
    name = "sasl.mechanism.inter.broker.protocol"
    mechanism = config[name]
    sasl = config.sasl_config(listener)
    enabled = sasl.value("sasl.enabled.mechanisms")
    if mechanism not in enabled:
        key = sasl.key("sasl.enabled.mechanisms")
        raise InvalidConfig(name, mechanism, f"among the {key} of the listener between brokers: {', '.join(enabled)}")
