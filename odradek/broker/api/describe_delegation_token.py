"""DescribeDelegationToken, versions 1 to 3: the tokens of some owners or of all, with their HMACs (KIP-48, KIP-373).

With an authorizer the client sees its own tokens, tokens that it may renew, and tokens that it may describe (``rule``).
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (``token_logins``), DELEGATION_TOKEN_AUTH_DISABLED.
Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import answer_in_slices, with_pauses
from odradek.broker.security.acl.rules import GuardedRequest, keep_visible
from odradek.broker.security.tokens import allows_token_requests
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import TokenServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext

has_unbounded_response = True


def handle(
    services: "TokenServices", context: "RequestContext", request: DescribeDelegationTokenRequest
) -> "Answer[DescribeDelegationTokenResponse]":
    """Describe the tokens, in slices."""
    if not allows_token_requests(services.config, context):
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not services.delegation_tokens.is_enabled:
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return answer_in_slices(services, context, _describe(services, request))


def _describe(
    services: "TokenServices", request: DescribeDelegationTokenRequest
) -> "Generator[None, None, DescribeDelegationTokenResponse]":
    owners = None if request.owners is None else [f"{each.principal_type}:{each.principal_name}" for each in request.owners]
    tokens = services.delegation_tokens
    described = yield from with_pauses(tokens.concerning(services.controller.image, owners), tokens.describe)
    return DescribeDelegationTokenResponse(tokens=described)


def rule(guarded: "GuardedRequest") -> object:
    """Show a client's own tokens and tokens it may renew; others need DESCRIBE, or DESCRIBE_TOKENS on their owner."""
    access = guarded.access

    def may_see(token: DescribedDelegationToken) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
        renewers = (f"{each.principal_type}:{each.principal_name}" for each in token.renewers)
        return (
            access.principal in (owner, requester, *renewers)
            or access.allows(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id, tells=False)
            or access.allows(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, owner, tells=False)
        )

    return keep_visible(guarded, guarded.handle(), "tokens", may_see)
