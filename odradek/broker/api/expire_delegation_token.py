"""ExpireDelegationToken, versions 1 and 2: the owner or a renewer sets a token's expiry, or removes it at once (KIP-48).

A negative period removes the token. Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (``token_logins``), _AUTH_DISABLED,
_NOT_FOUND, _EXPIRED, _OWNER_MISMATCH. Deliberate gap: none.
"""

from typing import TYPE_CHECKING, TypeVar

from odradek.broker.security.acl.rules import allow_all
from odradek.broker.security.tokens import allows_token_requests
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.api.services import TokenChangeServices
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.image import MetadataImage
    from odradek.protocol.metadata_records import MetadataRecord
    from odradek.timing.reply import Reply

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


def handle(
    services: "TokenChangeServices", context: "RequestContext", request: ExpireDelegationTokenRequest
) -> "ExpireDelegationTokenResponse | Reply[ExpireDelegationTokenResponse]":
    """Set the expiry of the token with the request's HMAC."""
    return change_expiry(services, context, request, services.delegation_tokens.expire, ExpireDelegationTokenResponse)


def change_expiry(
    services: "TokenChangeServices",
    context: "RequestContext",
    request: RequestT,
    decide: "Callable[[MetadataImage, RequestT, str, int], tuple[int, list[MetadataRecord]]]",
    response: "Callable[..., ResponseT]",
) -> "ResponseT | Reply[ResponseT]":
    """Commit the expiry that ``decide`` of ``services.delegation_tokens`` returns for ``request``."""
    if not allows_token_requests(services.config, context):
        return response(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
    requester, now_ms = context.session.principal, services.clock.now_ms()

    def respond(outcome: int | KafkaError) -> ResponseT:
        return response(outcome.code) if isinstance(outcome, KafkaError) else response(expiry_timestamp_ms=outcome)

    return services.controller.change(lambda image: decide(image, request, requester, now_ms)).then(respond)


# No authorization: only the owner and the renewers in the token may do this.
rule = allow_all
