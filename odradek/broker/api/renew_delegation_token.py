"""RenewDelegationToken, versions 1 and 2: extends a token's expiry (KIP-48).

Its owner and its renewers may do this, until the token's maximum lifetime. Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
(``token_logins``), _AUTH_DISABLED, _NOT_FOUND, _EXPIRED, _OWNER_MISMATCH. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.expire_delegation_token import change_expiry
from odradek.broker.security.acl.rules import allow_all
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import TokenChangeServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "TokenChangeServices", context: "RequestContext", request: RenewDelegationTokenRequest
) -> "RenewDelegationTokenResponse | Reply[RenewDelegationTokenResponse]":
    """Renew the token with the request's HMAC."""
    return change_expiry(services, context, request, services.delegation_tokens.renew, RenewDelegationTokenResponse)


# No authorization: only the owner and the renewers in the token may do this.
rule = allow_all
