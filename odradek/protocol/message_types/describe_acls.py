"""DescribeAcls up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribeAclsRequest(NamedTuple):
    """The DescribeAcls request."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int = 0
    permission_type: int = 0


class AclDescription(NamedTuple):
    """Part of the DescribeAcls response."""

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DescribeAclsResource(NamedTuple):
    """Part of the DescribeAcls response."""

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: Sequence[AclDescription] = ()


class DescribeAclsResponse(NamedTuple):
    """The DescribeAcls response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    resources: Sequence[DescribeAclsResource] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeAclsRequest": DescribeAclsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AclDescription": AclDescription,
    "DescribeAclsResource": DescribeAclsResource,
    "DescribeAclsResponse": DescribeAclsResponse,
}
