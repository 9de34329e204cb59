"""RenewDelegationToken, versions 1 and 2: a token expires later (KIP-48).

Its owner and its renewers may do this, until the token's maximum lifetime. Refused: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
(``token_logins``), _AUTH_DISABLED, _NOT_FOUND, _EXPIRED, _OWNER_MISMATCH. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.expire_delegation_token import change_expiry
from odradek.broker.security.acl.rules import anybody
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import TokenChangeServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "TokenChangeServices", context: "RequestContext", request: RenewDelegationTokenRequest
) -> "RenewDelegationTokenResponse | Reply[RenewDelegationTokenResponse]":
    """Renew the token of the request's HMAC."""
    return change_expiry(services, context, request, services.delegation_tokens.renew, RenewDelegationTokenResponse)


# The token names its owner and its renewers.
rule = anybody
