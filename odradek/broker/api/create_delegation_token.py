"""CreateDelegationToken, versions 1 to 3: creates a token with which others can log in as its owner (KIP-48, KIP-373).

The owner is the client, or from version 3 on the principal that the client names. The response has the HMAC, the token's
password. Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (``token_logins``), INVALID_PRINCIPAL_TYPE for a renewer that is not a
user, DELEGATION_TOKEN_AUTH_DISABLED without ``delegation.token.secret.key``. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.tokens import allows_token_requests
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.context import ANONYMOUS
from odradek.controller.metadata.delegation_tokens import USER, naming, owner_of
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import TokenChangeServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "TokenChangeServices", context: "RequestContext", request: CreateDelegationTokenRequest
) -> "CreateDelegationTokenResponse | Reply[CreateDelegationTokenResponse]":
    """Create the token."""
    requester = context.session.principal
    if request.owner_principal_name and request.owner_principal_type is None:
        # Kafka answers with this error, since it cannot build a principal without a type.
        return refusal(CreateDelegationTokenRequest(), ANONYMOUS, ErrorCode.UNKNOWN_SERVER_ERROR)

    def respond(outcome: CreateDelegationTokenResponse | KafkaError) -> CreateDelegationTokenResponse:
        if isinstance(outcome, KafkaError):
            return naming(owner_of(request, requester), requester)._replace(error_code=outcome.code)
        return outcome

    if not allows_token_requests(services.config, context):
        return refusal(request, requester, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if any(renewer.principal_type != USER for renewer in request.renewers):
        return refusal(request, requester, ErrorCode.INVALID_PRINCIPAL_TYPE)
    tokens, now_ms = services.delegation_tokens, services.clock.now_ms()
    return services.controller.change(lambda image: tokens.create(image, request, requester, now_ms, services.new_uuid)).then(
        respond
    )


def refusal(request: CreateDelegationTokenRequest, requester: str, code: int) -> CreateDelegationTokenResponse:
    """Return the response to a request that is refused before it reaches the controller."""
    named = naming(owner_of(request, requester), requester)
    return named._replace(error_code=code, issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1)


def rule(guarded: "GuardedRequest") -> object:
    """Require CREATE_TOKENS on the owner's user, if the owner is not the client."""
    requester = guarded.context.session.principal
    owner = owner_of(guarded.request, requester)
    if (
        owner == requester
        or guarded.request.owner_principal_type is None
        or not allows_token_requests(guarded.services.config, guarded.context)
    ):
        return guarded.handle()
    if guarded.access.allows(AclOperation.CREATE_TOKENS, AclResourceType.USER, owner):
        return guarded.handle()
    return refusal(guarded.request, requester, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
