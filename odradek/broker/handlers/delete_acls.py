"""DeleteAcls, versions 1 to 3: the access control entries go that filters select (KIP-140, KIP-290).

Each filter is answered with the entries that it selects. SECURITY_DISABLED without an authorizer. As in Kafka a request with an
UNKNOWN in it closes the connection. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.context import CLOSE_CONNECTION
from odradek.broker.handlers.acl_messages import NO_AUTHORIZER, filter_in, has_unknown_codes
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.authorizer.acls import AclBinding
    from odradek.broker.context import RequestContext, Signal
    from odradek.broker.handlers.services import AclChangeServices
    from odradek.broker.metadata.acls import Deleted
    from odradek.timing.reply import Reply


def handle(
    services: "AclChangeServices", _context: "RequestContext", request: DeleteAclsRequest
) -> "DeleteAclsResponse | Signal | Reply[DeleteAclsResponse]":
    """Delete what the filters of ``request`` select."""
    if has_unknown_codes(request):
        return CLOSE_CONNECTION

    def respond(outcome: "Deleted | KafkaError") -> DeleteAclsResponse:
        answers = [outcome] * len(request.filters) if isinstance(outcome, KafkaError) else outcome
        return DeleteAclsResponse(filter_results=[_result(answer) for answer in answers])

    if services.authorization is None:
        return respond(NO_AUTHORIZER)
    return services.controller.delete_acls([filter_in(each) for each in request.filters]).then(respond)


def _result(answer: "list[AclBinding] | KafkaError") -> DeleteAclsFilterResult:
    if isinstance(answer, KafkaError):
        return DeleteAclsFilterResult(answer.code, answer.reason or None)
    return DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(
                resource_type=int(binding.resource_type),
                resource_name=binding.resource_name,
                pattern_type=int(binding.pattern_type),
                principal=binding.principal,
                host=binding.host,
                operation=int(binding.operation),
                permission_type=int(binding.permission),
            )
            for binding in answer
        ]
    )
