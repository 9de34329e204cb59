"""The SASL listeners of a server: what guards a new connection to one of them, and what came of authentications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.config.definitions import InvalidConfig
from odradek.broker.config.sasl_config import SaslConfig
from odradek.broker.logging import log
from odradek.broker.network.sasl_guard import SaslGuard
from odradek.broker.sasl.listeners import SaslListener, SaslServices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.network.connection import Connection
    from odradek.broker.network.connection_registry import ConnectionRegistry
    from odradek.broker.network.dispatch import Dispatcher
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer


class SaslHost(Protocol):
    """The broker that clients authenticate at."""

    config: BrokerConfig
    clock: Clock
    timer: Timer

    @property
    def dispatcher(self) -> Dispatcher:
        """Where the requests of those go who have authenticated."""


class SaslListeners:
    """The listeners ``names``, which are in upper case. Loop thread only."""

    def __init__(
        self,
        host: SaslHost,
        connections: ConnectionRegistry,
        names: Iterable[str],
        services: SaslServices,
        max_frame_bytes: int,
    ) -> None:
        """Raises InvalidConfig."""
        self._host = host
        self._connections = connections
        self._max_frame_bytes = max_frame_bytes
        self._services = services
        self._listeners: dict[str, SaslListener] = {}
        # What is set for each: made anew only if that is another than before.
        self._settings: dict[str, dict[str, str]] = {}
        for name in names:
            config = host.config.sasl_config(name)
            self._listeners[name] = listener = SaslListener(config, services)
            if listener.signing_keys is not None:
                from odradek.broker.sasl.bearer_configs import load_keys

                load_keys(config, listener.signing_keys)
            self._settings[name] = config.settings()
            for key in config.without_effect(listener.mechanisms):
                log.warn("config", reason=f"{key} has no effect: the mechanism is not among sasl.enabled.mechanisms")

    def check(self, _values: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        """Raise InvalidConfig where a listener could not be served with these configs."""
        for name, settings in self._settings.items():
            config = SaslConfig(name, texts)
            if config.settings() != settings:
                SaslListener(config, self._services)

    def reload(self) -> None:
        """Have new connections authenticate by the configs in force. Sessions that are open go on."""
        for name, settings in self._settings.items():
            config = self._host.config.sasl_config(name)
            if config.settings() == settings:
                continue
            try:
                self._listeners[name] = listener = SaslListener(config, self._services)
            except InvalidConfig as error:
                log.warn("mechanisms not altered: those in force stay", listener=name, reason=str(error))
            else:
                self._settings[name] = config.settings()
                if listener.signing_keys is not None:
                    listener.signing_keys.refresh()
                log.info("mechanisms altered", listener=name)

    def guard(self, connection: Connection, listener_name: str) -> None:
        """Have the client of a new connection authenticate, if its listener wants that."""
        listener = self._listeners.get(listener_name)
        if listener is not None:
            host = self._host
            SaslGuard(
                connection,
                host.dispatcher,
                listener,
                self._connections.sasl,
                max_frame_bytes=self._max_frame_bytes,
                clock=host.clock,
                timer=host.timer,
                line_limit=self._connections.line_limit,
            )
