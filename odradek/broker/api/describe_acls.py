"""DescribeAcls, versions 1 to 3: the access control entries that a filter matches, by resource (KIP-140, KIP-290).

SECURITY_DISABLED without an authorizer. As in Kafka, a request with an UNKNOWN code closes the connection. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.acl_messages import NO_AUTHORIZER, acl_rule, filter_in, has_unknown_codes
from odradek.broker.large import answer_in_slices, with_pauses
from odradek.common.acls import AclOperation
from odradek.common.context import CLOSE_CONNECTION
from odradek.protocol.message_types.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import AclServices
    from odradek.broker.large import Answer
    from odradek.common.acls import AclBinding, AclFilter, AclResourceType, PatternType
    from odradek.common.context import RequestContext

has_unbounded_response = True


def handle(services: "AclServices", context: "RequestContext", request: DescribeAclsRequest) -> "Answer[DescribeAclsResponse]":
    """Describe the entries that the filter of ``request`` matches, in slices."""
    if has_unknown_codes(request):
        return CLOSE_CONNECTION
    authorization = services.authorization
    if authorization is None:
        return DescribeAclsResponse(error_code=NO_AUTHORIZER.code, error_message=NO_AUTHORIZER.reason)
    return answer_in_slices(services, context, _describe(list(authorization.authorizer.acls), filter_in(request)))


def _describe(acls: "list[AclBinding]", wanted: "AclFilter") -> "Generator[None, None, DescribeAclsResponse]":
    resources: dict[tuple[AclResourceType, str, PatternType], list[AclDescription]] = {}

    def add(binding: "AclBinding") -> None:
        if wanted.matches(binding):
            described = AclDescription(binding.principal, binding.host, int(binding.operation), int(binding.permission))
            resources.setdefault(binding[:3], []).append(described)

    yield from with_pauses(acls, add)
    described = yield from with_pauses(resources.items(), _resource)
    return DescribeAclsResponse(resources=described)


def _resource(described: "tuple[tuple[AclResourceType, str, PatternType], list[AclDescription]]") -> DescribeAclsResource:
    (resource_type, name, pattern_type), acls = described
    return DescribeAclsResource(int(resource_type), name, int(pattern_type), acls)


rule = acl_rule(AclOperation.DESCRIBE)
