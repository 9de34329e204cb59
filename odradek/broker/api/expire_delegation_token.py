"""ExpireDelegationToken, versions 1 and 2: a token expires when its owner or a renewer says, or is removed at once (KIP-48).

A period that is negative removes it. Refused: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (``token_logins``), _AUTH_DISABLED,
_NOT_FOUND, _EXPIRED, _OWNER_MISMATCH. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.broker.security.tokens import allows_token_requests
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import TokenChangeServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "TokenChangeServices", context: "RequestContext", request: ExpireDelegationTokenRequest
) -> "ExpireDelegationTokenResponse | Reply[ExpireDelegationTokenResponse]":
    """Expire the token of the request's HMAC."""
    if not allows_token_requests(services.config, context):
        return ExpireDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
    tokens, requester, now_ms = services.delegation_tokens, context.session.principal, services.clock.now_ms()
    return services.controller.change(lambda image: tokens.expire(image, request, requester, now_ms)).then(_respond)


def _respond(outcome: int | KafkaError) -> ExpireDelegationTokenResponse:
    if isinstance(outcome, KafkaError):
        return ExpireDelegationTokenResponse(outcome.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=outcome)


# The token names its owner and its renewers.
rule = anybody
