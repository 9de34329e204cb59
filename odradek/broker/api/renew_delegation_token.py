"""RenewDelegationToken, versions 1 and 2: a token expires later (KIP-48).

Its owner and its renewers may do this, until the token's maximum lifetime. Refused: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
(``token_logins``), _AUTH_DISABLED, _NOT_FOUND, _EXPIRED, _OWNER_MISMATCH. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.broker.security.tokens import allows_token_requests
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import TokenChangeServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "TokenChangeServices", context: "RequestContext", request: RenewDelegationTokenRequest
) -> "RenewDelegationTokenResponse | Reply[RenewDelegationTokenResponse]":
    """Renew the token of the request's HMAC."""
    if not allows_token_requests(services.config, context):
        return RenewDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
    tokens, requester, now_ms = services.delegation_tokens, context.session.principal, services.clock.now_ms()
    return services.controller.change(lambda image: tokens.renew(image, request, requester, now_ms)).then(_respond)


def _respond(outcome: int | KafkaError) -> RenewDelegationTokenResponse:
    if isinstance(outcome, KafkaError):
        return RenewDelegationTokenResponse(outcome.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=outcome)


# The token names its owner and its renewers.
rule = anybody
