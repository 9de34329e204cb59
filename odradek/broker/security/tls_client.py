"""TLS of a broker that connects to others by an SSL listener of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.definitions import InvalidConfig
from odradek.broker.logging import log
from odradek.broker.security.key_stores import store_files
from odradek.broker.security.tls_context import client_context

if TYPE_CHECKING:
    import ssl

    from odradek.broker.config.broker_config import BrokerConfig


class TlsClient:
    """Raises InvalidConfig. Loop thread only."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._config = config
        self._listener = listener
        self._load()

    def context(self) -> ssl.SSLContext:
        """For one connection. Configs and files that are not as they were are loaded again; those in force stay if that fails."""
        config = self._config.listener_config(self._listener)
        if (config.ssl_values(), store_files(config)) != self._loaded:
            try:
                self._load()
            except InvalidConfig as error:
                log.warn("stores not loaded again: those in force stay", listener=self._listener, reason=str(error))
        return self._context

    def _load(self) -> None:
        config = self._config.listener_config(self._listener)
        # First: a file that changes meanwhile is loaded once more.
        loaded = config.ssl_values(), store_files(config)
        self._context = client_context(config)
        self._loaded = loaded
