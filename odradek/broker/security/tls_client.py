"""TLS of a broker that connects to others by an SSL listener of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.config.definitions import InvalidConfig
from odradek.broker.logging import log
from odradek.broker.security.key_store_change import check_key_store_change
from odradek.broker.security.key_stores import KeyStore, load_key_store, store_files
from odradek.broker.security.tls_context import client_context

if TYPE_CHECKING:
    import ssl

    from odradek.broker.config.broker_config import BrokerConfig


class TlsClient:
    """Raises InvalidConfig. Loop thread only."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._config = config
        self._listener = listener
        self._loaded: tuple[object, object] | None = None
        self._key_store: KeyStore | None = None
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
        key_store = load_key_store(config)
        context = client_context(config, key_store)
        # With other configs, the listener has had the change checked when they were altered.
        is_altered = self._loaded is None or self._loaded[0] != loaded[0]
        if not is_altered and self._key_store is not None and key_store is not None:
            check_key_store_change(config, self._key_store, key_store)
        self._context, self._key_store, self._loaded = context, key_store, loaded
