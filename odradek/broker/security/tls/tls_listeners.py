"""The TLS setup of SSL listeners and their clients' principals, and of a broker's own connections to other brokers.

Stores are loaded before any listener is bound. When a broker's dynamic configs change, they are loaded again if a config or a
file differs (KIP-226). Open connections are not affected.

Clients must find the same subject and hosts as before. As in Kafka, the new certificate must have the former one's subject unless
``ssl.allow.dn.changes`` is set, and all its alternative names unless ``ssl.allow.san.changes`` is set. Kafka compares all entries
of both stores, in their order; here only the served certificates are compared. At the start there is no comparison: earlier
changes have been checked already.

Brokers must also be able to connect to each other with the listener's stores, which a handshake in memory checks. As in Kafka
(SslFactory's SslEngineValidator), only the inter-broker listener is checked. At the start, both sides use its stores. After a
change, one side uses the new stores and the other the current ones, both ways. Hosts are not compared.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.security.tls.certificate_names import PrincipalMapper, alternative_names, canonical_subject, subject_of
from odradek.broker.security.tls.key_stores import KeyStore, load_key_store, load_server_key_store, store_files
from odradek.broker.security.tls.tls_context import client_context, reason_of, server_context
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import (
    TLS_PROTOCOLS,
    ListenerConfig,
    inter_broker_listener,
    is_config_of_listeners,
    security_protocols,
)
from odradek.common.context import ANONYMOUS
from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint


def check_key_store_change(config: ListenerConfig, former: KeyStore, new: KeyStore) -> None:
    """Raise InvalidConfig if ``new`` may not replace ``former``."""
    name = "ssl.keystore.location" if config["ssl.keystore.key"] is None else "ssl.keystore.certificate.chain"
    try:
        allowed = _allowed(config, former.certificate, new.certificate)
    except ValueError as error:
        raise config.invalid(name, "a certificate whose names can be read") from error
    if allowed is not None:
        raise config.invalid(name, allowed)


def _allowed(config: ListenerConfig, before: bytes, after: bytes) -> str | None:
    """Return a description of the allowed subjects and hosts; None if ``after`` is allowed. ValueError for unreadable names."""
    if not config["ssl.allow.dn.changes"] and not _is_same_subject(before, after):
        subjects = f"{subject_of(before)}, not {subject_of(after)}"
        return f"a certificate of the same subject, {subjects}, unless ssl.allow.dn.changes is true"
    if config["ssl.allow.san.changes"]:
        return None
    lacking = ", ".join(sorted(map(str, alternative_names(before) - alternative_names(after))))
    if not lacking:
        return None
    return f"a certificate with all alternative names of the old one ({lacking}), unless ssl.allow.san.changes is true"


def _is_same_subject(before: bytes, after: bytes) -> bool:
    if canonical_subject(before) == canonical_subject(after):
        return True
    # An attribute may be text in one subject and DER in the other. Kafka compares this form, too.
    return subject_of(before).lower() == subject_of(after).lower()


# A handshake takes two or three turns of each side.
_TURNS: Final = 8


def connecting_context(config: ListenerConfig, key_store: KeyStore) -> ssl.SSLContext:
    """Return the TLS context for a broker's connection to this listener, on any host. Raises InvalidConfig."""
    context = client_context(config, key_store)
    context.check_hostname = False
    return context


def check_connects(config: ListenerConfig, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raise InvalidConfig if a handshake between the two contexts fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    try:
        for _ in range(_TURNS):
            # Give both ends a turn: an end that is done may have left a message for the other.
            over = [_is_over(end) for end in ends]
            if all(over):
                return
    except ssl.SSLError as error:
        name = "ssl.truststore.location" if config["ssl.truststore.certificates"] is None else "ssl.truststore.certificates"
        allowed = f"certificates that let brokers with the old and the new stores trust each other ({reason_of(error)})"
        raise config.invalid(name, allowed) from error


def _is_over(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


_RECEIVED_BYTES: Final = 256 * 1024


class TlsListener:
    """The TLS setup of one listener. Raises InvalidConfig.

    ``former`` is the setup that this one replaces. ``is_between``: this is the inter-broker listener. ``received`` is the buffer
    for the ciphertext of all connections: the loop reads for one at a time and passes the bytes on to OpenSSL at once. The buffer
    is not shared with other servers, whose loops may be in other threads.
    """

    def __init__(self, config: ListenerConfig, *, is_between: bool, former: TlsListener | None = None) -> None:
        self.received: Final = memoryview(bytearray(_RECEIVED_BYTES))
        # Before loading: a file that changes meanwhile is then loaded once more.
        self.files = store_files(config)
        self.values = config.ssl_values()
        self._key_store = load_server_key_store(config)
        self.context: ssl.SSLContext = server_context(config, self._key_store)
        self._connecting = connecting_context(config, self._key_store) if is_between else None
        self._check_beside(self if former is None else former, config)
        try:
            self._mapper = PrincipalMapper(config["ssl.principal.mapping.rules"])
        except ValueError as error:
            allowed = f"DEFAULT, or a list of RULE:pattern/replacement/[LU] ({error})"
            raise config.invalid("ssl.principal.mapping.rules", allowed) from error

    def _check_beside(self, former: TlsListener, config: ListenerConfig) -> None:
        """Raise InvalidConfig if the stores do not fit those of ``former``."""
        if former is not self:
            check_key_store_change(config, former._key_store, self._key_store)
        for server, connecting in ((former.context, self._connecting), (self.context, former._connecting)):
            if connecting is not None:
                check_connects(config, server, connecting)

    def is_unchanged(self, config: ListenerConfig) -> bool:
        """Return whether configs and files are unchanged since they were loaded."""
        return self.values == config.ssl_values() and self.files == store_files(config)

    def principal_of(self, peer: ssl.SSLObject) -> str:
        """Return ``User:CN=...``, or the name by the rules; ANONYMOUS without a certificate. NoMatchingRule or ValueError."""
        certificate = peer.getpeercert(binary_form=True)
        return ANONYMOUS if certificate is None else f"User:{self._mapper.name(subject_of(certificate))}"


class TlsListeners:
    """The SSL listeners among ``endpoints``, by name. Raises InvalidConfig. Loop thread only."""

    def __init__(self, config: BrokerConfig, endpoints: Iterable[Endpoint]) -> None:
        self._config = config
        protocols = security_protocols(config)
        names = [endpoint.name for endpoint in endpoints if protocols.get(endpoint.name) in TLS_PROTOCOLS]
        self._between = inter_broker_listener(config)
        # Until the start, the stores are those of the static configuration, and no client has seen them.
        self._is_started = False
        self._listeners = {name: self._loaded(config.listener_config(name)) for name in names}

    def __contains__(self, name: str) -> bool:
        return name in self._listeners

    def __getitem__(self, name: str) -> TlsListener:
        return self._listeners[name]

    def check(self, values: Mapping[str, Any], texts: Mapping[str, str], altered: Collection[str]) -> None:
        """Raise InvalidConfig if a listener could not be served with these configs.

        A listener whose configs are neither different nor ``altered`` is not checked. Unlike Kafka, a config that is set to the
        value it has is checked, as the file may have changed: else only the log would say that a renewed certificate is not used.
        """
        for name, listener in self._listeners.items():
            config = ListenerConfig(name, values, texts)
            is_set_again = any(is_config_of_listeners(key, (name,)) for key in altered)
            if listener.values != config.ssl_values() or (is_set_again and not listener.is_unchanged(config)):
                self._loaded(config, listener)

    def reload(self) -> None:
        """Load changed stores again. A listener whose new stores cannot be loaded keeps the current ones.

        The first call is at the start, when the stored dynamic configs are applied over the static configuration.
        """
        for name, listener in self._listeners.items():
            config = self._config.listener_config(name)
            if listener.is_unchanged(config):
                continue
            try:
                self._listeners[name] = self._loaded(config, listener if self._is_started else None)
            except Exception as error:  # noqa: BLE001  no file content may stop the broker
                log.warn("cannot reload stores: the old ones stay in use", listener=name, reason=str(error))
            else:
                log.info("stores reloaded", listener=name)
        self._is_started = True

    def _loaded(self, config: ListenerConfig, former: TlsListener | None = None) -> TlsListener:
        return TlsListener(config, is_between=config.listener == self._between, former=former)


class TlsClient:
    """The TLS setup of a broker's connections to other brokers. Raises InvalidConfig. Loop thread only."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._config = config
        self._listener = listener
        self._loaded: tuple[object, object] | None = None
        self._key_store: KeyStore | None = None
        self._load()

    def context(self) -> ssl.SSLContext:
        """Return the context for one connection. Changed configs and files are loaded again; on failure the current ones stay."""
        config = self._config.listener_config(self._listener)
        if (config.ssl_values(), store_files(config)) != self._loaded:
            try:
                self._load()
            except InvalidConfig as error:
                log.warn("cannot reload stores: the old ones stay in use", listener=self._listener, reason=str(error))
        return self._context

    def _load(self) -> None:
        config = self._config.listener_config(self._listener)
        # Before loading: a file that changes meanwhile is then loaded once more.
        loaded = config.ssl_values(), store_files(config)
        key_store = load_key_store(config)
        context = client_context(config, key_store)
        # The listener checked a change of configs when they were altered.
        is_altered = self._loaded is None or self._loaded[0] != loaded[0]
        if not is_altered and self._key_store is not None and key_store is not None:
            check_key_store_change(config, self._key_store, key_store)
        self._context, self._key_store, self._loaded = context, key_store, loaded
