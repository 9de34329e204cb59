"""CreateAcls, versions 1 to 3: creates access control entries, each independently (KIP-140, KIP-290).

Creating an existing entry succeeds and changes nothing. INVALID_REQUEST for an invalid entry, SECURITY_DISABLED without an
authorizer. As in Kafka, a request with an UNKNOWN code closes the connection. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.acl_messages import NO_AUTHORIZER, acl_rule, binding_in, has_unknown_codes
from odradek.common.acls import AclOperation
from odradek.common.context import CLOSE_CONNECTION
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import AclChangeServices
    from odradek.common.context import RequestContext, Signal
    from odradek.controller.metadata.acls import Created
    from odradek.timing.reply import Reply


def handle(
    services: "AclChangeServices", _context: "RequestContext", request: CreateAclsRequest
) -> "CreateAclsResponse | Signal | Reply[CreateAclsResponse]":
    """Create the entries of ``request``."""
    if has_unknown_codes(request):
        return CLOSE_CONNECTION

    def respond(outcome: "Created | KafkaError") -> CreateAclsResponse:
        answers = [outcome] * len(request.creations) if isinstance(outcome, KafkaError) else outcome
        return CreateAclsResponse(results=[_result(answer) for answer in answers])

    if services.authorization is None:
        return respond(NO_AUTHORIZER)
    return services.controller.create_acls(map(binding_in, request.creations)).then(respond)


def _result(error: KafkaError | None) -> AclCreationResult:
    return AclCreationResult() if error is None else AclCreationResult(error.code, error.reason or None)


rule = acl_rule(AclOperation.ALTER)
