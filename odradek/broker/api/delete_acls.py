"""DeleteAcls, versions 1 to 3: deletes the access control entries that filters match (KIP-140, KIP-290).

The result of each filter lists the entries that it matches. SECURITY_DISABLED without an authorizer. As in Kafka, a request with
an UNKNOWN code closes the connection. Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.api.acl_messages import NO_AUTHORIZER, acl_rule, filter_in, has_unknown_codes
from odradek.broker.large import answer_in_slices, with_pauses
from odradek.common.acls import AclOperation
from odradek.common.context import CLOSE_CONNECTION
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import AclChangeServices
    from odradek.broker.large import Answer
    from odradek.common.acls import AclBinding
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.acls import Deleted
    from odradek.timing.reply import Reply

has_unbounded_response = True


def handle(services: "AclChangeServices", context: "RequestContext", request: DeleteAclsRequest) -> "Answer[DeleteAclsResponse]":
    """Delete the entries that the filters of ``request`` match, in slices."""
    if has_unknown_codes(request):
        return CLOSE_CONNECTION
    if services.authorization is None:
        return DeleteAclsResponse(filter_results=[_refused(NO_AUTHORIZER)] * len(request.filters))
    deleted = services.controller.delete_acls([filter_in(each) for each in request.filters])
    return answer_in_slices(services, context, _tell(deleted, len(request.filters)))


def _tell(
    deleted: "Reply[Deleted | KafkaError]", count: int
) -> "Generator[Reply[Deleted | KafkaError] | None, Any, DeleteAclsResponse]":
    outcome: Deleted | KafkaError = yield deleted
    answers = [outcome] * count if isinstance(outcome, KafkaError) else outcome
    # Several filters may match the same entries, and each filter may match all entries.
    told: dict[AclBinding, DeleteAclsMatchingAcl] = {}
    results: dict[int, DeleteAclsFilterResult] = {}
    for answer in answers:
        if isinstance(answer, KafkaError):
            results[id(answer)] = _refused(answer)
        elif id(answer) not in results:
            matching = yield from with_pauses(
                answer, lambda binding: told.get(binding) or told.setdefault(binding, _match_of(binding))
            )
            results[id(answer)] = DeleteAclsFilterResult(matching_acls=matching)
    return DeleteAclsResponse(filter_results=[results[id(answer)] for answer in answers])


def _refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error.code, error.reason or None)


def _match_of(binding: "AclBinding") -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=int(binding.resource_type),
        resource_name=binding.resource_name,
        pattern_type=int(binding.pattern_type),
        principal=binding.principal,
        host=binding.host,
        operation=int(binding.operation),
        permission_type=int(binding.permission),
    )


rule = acl_rule(AclOperation.ALTER)
