"""Delegation tokens (KIP-48): the right to request them. ``NodeCredentials`` has the credentials of tokens and users.

The tokens come from the metadata image of the node. Only an authenticated client may request a token, and only if it did not log
in with a delegation token itself. Clients over PLAINTEXT, or over TLS without a certificate, may not. A controller trusts the
check of the broker that forwarded the request. Kafka: ``allowTokenRequests``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.common.config.listener_config import PLAINTEXT, SSL, security_protocols
from odradek.common.context import ANONYMOUS
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.security.sasl.scram import ScramCredential, TokenCredential, TokenCredentials
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.cluster_metadata import CommittedMetadata
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.protocol.scram import ScramMechanism


class NodeCredentials:
    """The credentials of users and tokens in a node's metadata. Those of tokens are imported at the first such login.

    Loop thread only.
    """

    def __init__(self, metadata: CommittedMetadata, delegation_tokens: Callable[[], DelegationTokens]) -> None:
        """``delegation_tokens`` returns the decisions about tokens."""
        self._metadata = metadata
        self._delegation_tokens = delegation_tokens
        self._tokens: TokenCredentials | None = None

    def scram(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return a user's credential; None for an unknown user, or one without this mechanism."""
        return self._metadata.image.kept.scram_credential(user, mechanism)

    def token(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """Return the credential of a token; None for an unknown token, or if the node has no secret key."""
        tokens = self._delegation_tokens()
        if not tokens.is_enabled:
            return None
        if self._tokens is None:
            from odradek.broker.security.sasl.scram import TokenCredentials  # 3.7 ms

            self._tokens = TokenCredentials(lambda: self._metadata.image.kept.delegation_tokens, tokens.hmac_of)
        return self._tokens.find(token_id, mechanism)


_CHANGES: Final = frozenset({ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN})


def allows_token_requests(config: BrokerConfig, context: RequestContext) -> bool:
    """Return whether the client may send delegation token requests."""
    session = context.session
    if session.token_authenticated:
        return False
    if session.is_forwarded:
        return True
    protocol = security_protocols(config).get(session.listener_name, PLAINTEXT)
    return protocol != PLAINTEXT and (protocol != SSL or session.principal != ANONYMOUS)


def is_refused_here(config: BrokerConfig, context: RequestContext) -> bool:
    """Return whether the broker refuses this token request instead of forwarding it to the controller."""
    return context.api_key in _CHANGES and not allows_token_requests(config, context)
