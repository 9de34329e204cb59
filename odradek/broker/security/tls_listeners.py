"""The SSL listeners of a server: the context that their clients meet, and who a client is by its certificate.

Stores are loaded before anything is bound, and again when a broker's dynamic configs have been altered, if a config or a file is
another one than before (KIP-226). Connections that are open stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.config.endpoints import TLS_PROTOCOLS, security_protocols
from odradek.broker.config.listener_config import ListenerConfig
from odradek.broker.context import ANONYMOUS
from odradek.broker.logging import log
from odradek.broker.security.distinguished_name import subject_of
from odradek.broker.security.key_stores import store_files
from odradek.broker.security.principal_mapping import PrincipalMapper
from odradek.broker.security.tls_context import server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.definitions import InvalidConfig
    from odradek.broker.config.endpoints import Endpoint


_RECEIVED_BYTES: Final = 256 * 1024


class TlsListener:
    """What is in force for one listener. Raises InvalidConfig.

    ``received`` is where the ciphertext of all its connections goes: the loop reads for one at a time, and OpenSSL has it then.
    Another server may have a loop in another thread, and so has a buffer of its own.
    """

    def __init__(self, config: ListenerConfig) -> None:
        self.received: Final = memoryview(bytearray(_RECEIVED_BYTES))
        # First: a file that changes meanwhile is loaded once more.
        self.files = store_files(config)
        self.values = config.ssl_values()
        self.context: ssl.SSLContext = server_context(config)
        try:
            self._mapper = PrincipalMapper(config["ssl.principal.mapping.rules"])
        except ValueError as error:
            allowed = f"DEFAULT, or a list of RULE:pattern/replacement/[LU] ({error})"
            raise config.invalid("ssl.principal.mapping.rules", allowed) from error

    def is_as_it_was(self, config: ListenerConfig) -> bool:
        """Whether configs and files are those that were loaded."""
        return self.values == config.ssl_values() and self.files == store_files(config)

    def principal_of(self, peer: ssl.SSLObject) -> str:
        """``User:CN=...``, or as rules have it; ANONYMOUS without a certificate. Raises NoMatchingRule and ValueError."""
        certificate = peer.getpeercert(binary_form=True)
        return ANONYMOUS if certificate is None else f"User:{self._mapper.name(subject_of(certificate))}"


class TlsListeners:
    """The SSL listeners among ``endpoints``, by name. Raises InvalidConfig. Loop thread only."""

    def __init__(self, config: BrokerConfig, endpoints: Iterable[Endpoint]) -> None:
        self._config = config
        protocols = security_protocols(config)
        names = [endpoint.name for endpoint in endpoints if protocols.get(endpoint.name) in TLS_PROTOCOLS]
        self._listeners = {name: TlsListener(config.listener_config(name)) for name in names}

    def __contains__(self, name: str) -> bool:
        return name in self._listeners

    def __getitem__(self, name: str) -> TlsListener:
        return self._listeners[name]

    def check(self, values: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        """Raise InvalidConfig where a listener could not be served with these configs, if they are others than those in force."""
        for name, listener in self._listeners.items():
            config = ListenerConfig(name, values, texts)
            if listener.values != config.ssl_values():
                TlsListener(config)

    def reload(self) -> None:
        """Load what is not as it was; a listener whose stores cannot be loaded goes on with those that it has."""
        for name, listener in self._listeners.items():
            config = self._config.listener_config(name)
            if listener.is_as_it_was(config):
                continue
            try:
                self._listeners[name] = TlsListener(config)
            except Exception as error:  # noqa: BLE001  whatever is in a file, the broker goes on
                _tell_kept(name, error)
            else:
                log.info("stores loaded again", listener=name)


def _tell_kept(name: str, error: Exception | InvalidConfig) -> None:
    log.warn("stores not loaded again: those in force stay", listener=name, reason=str(error))
