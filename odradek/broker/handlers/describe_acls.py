"""DescribeAcls, versions 1 to 3: the access control entries that a filter selects, by resource (KIP-140, KIP-290).

SECURITY_DISABLED without an authorizer. As in Kafka a request with an UNKNOWN in it closes the connection. Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.context import CLOSE_CONNECTION
from odradek.broker.handlers.acl_messages import NO_AUTHORIZER, filter_in, has_unknown_codes
from odradek.protocol.message_types.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.authorizer.acls import AclResourceType, PatternType
    from odradek.broker.context import RequestContext, Signal
    from odradek.broker.handlers.services import AclServices


def handle(services: "AclServices", _context: "RequestContext", request: DescribeAclsRequest) -> "DescribeAclsResponse | Signal":
    """Describe what the filter of ``request`` selects."""
    if has_unknown_codes(request):
        return CLOSE_CONNECTION
    if services.authorization is None:
        return DescribeAclsResponse(error_code=NO_AUTHORIZER.code, error_message=NO_AUTHORIZER.reason)
    wanted = filter_in(request)
    resources: dict[tuple[AclResourceType, str, PatternType], list[AclDescription]] = {}
    for binding in services.authorization.authorizer.acls:
        if wanted.matches(binding):
            described = AclDescription(binding.principal, binding.host, int(binding.operation), int(binding.permission))
            resources.setdefault(binding[:3], []).append(described)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(int(resource_type), name, int(pattern_type), acls)
            for (resource_type, name, pattern_type), acls in resources.items()
        ]
    )
