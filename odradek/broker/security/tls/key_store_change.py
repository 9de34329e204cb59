"""Check a listener's new key store: clients must find the same subject and hosts as before.

As in Kafka, the new certificate must have the former one's subject unless ``ssl.allow.dn.changes`` is set, and all its
alternative names unless ``ssl.allow.san.changes`` is set. Kafka compares all entries of both stores, in their order; here only
the served certificates are compared.

Brokers must also be able to connect to each other with the listener's stores, which a handshake in memory checks. As in Kafka
(SslFactory's SslEngineValidator), only the inter-broker listener is checked. At the start, both sides use its stores. After a
change, one side uses the new stores and the other the current ones, both ways. Hosts are not compared.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from odradek.broker.security.tls.certificate_names import alternative_names, canonical_subject, subject_of
from odradek.broker.security.tls.tls_context import client_context, reason_of

if TYPE_CHECKING:
    from odradek.broker.security.tls.key_stores import KeyStore
    from odradek.common.config.listener_config import ListenerConfig


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
