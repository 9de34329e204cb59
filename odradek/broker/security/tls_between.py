"""A handshake in memory: whether brokers could connect to each other with the stores of a listener.

As in Kafka (SslFactory's SslEngineValidator), this is for the listener between brokers: at the start with its stores, and when
they are altered with the new ones on one side and those in force on the other, both ways. Hosts are not compared.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from odradek.broker.security.tls_context import client_context, reason_of

if TYPE_CHECKING:
    from odradek.broker.config.listener_config import ListenerConfig
    from odradek.broker.security.key_stores import KeyStore

# A handshake takes two or three turns of each side.
_TURNS: Final = 8


def connecting_context(config: ListenerConfig, key_store: KeyStore) -> ssl.SSLContext:
    """What a broker connects to this listener with, whatever host has it. Raises InvalidConfig."""
    context = client_context(config, key_store)
    context.check_hostname = False
    return context


def check_connects(config: ListenerConfig, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raise InvalidConfig, of ``config``, where the two do not shake hands."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    try:
        for _ in range(_TURNS):
            # Both have their turn: an end that is done may have left the other a message.
            over = [_is_over(end) for end in ends]
            if all(over):
                return
    except ssl.SSLError as error:
        name = "ssl.truststore.location" if config["ssl.truststore.certificates"] is None else "ssl.truststore.certificates"
        allowed = f"certificates by which brokers with this listener, before and after, trust each other ({reason_of(error)})"
        raise config.invalid(name, allowed) from error


def _is_over(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
