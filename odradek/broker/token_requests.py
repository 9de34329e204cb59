"""Who may ask for delegation tokens: a client that has authenticated, and not by a delegation token (KIP-48).

Over PLAINTEXT nobody may, nor over TLS without a certificate. At a controller the broker that forwards a request has looked
already. Kafka: ``allowTokenRequests``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.config.endpoints import PLAINTEXT, SSL, security_protocols
from odradek.broker.context import ANONYMOUS
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.context import RequestContext

_CHANGES: Final = frozenset({ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN})


def allows_token_requests(config: BrokerConfig, context: RequestContext) -> bool:
    """Whether the client may ask at all."""
    session = context.session
    if session.token_authenticated:
        return False
    if session.is_forwarded:
        return True
    protocol = security_protocols(config).get(session.listener_name, PLAINTEXT)
    return protocol != PLAINTEXT and (protocol != SSL or session.principal != ANONYMOUS)


def is_refused_here(config: BrokerConfig, context: RequestContext) -> bool:
    """Whether a broker is to refuse a request that it would forward."""
    return context.api_key in _CHANGES and not allows_token_requests(config, context)
