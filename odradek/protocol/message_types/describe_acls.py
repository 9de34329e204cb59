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
    """A struct of the DescribeAcls response."""

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DescribeAclsResource(NamedTuple):
    """A struct of the DescribeAcls response."""

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

REQUEST_FIELDS: Final = """
DescribeAclsRequest 1-3 flexible 2+
 resource_type_filter int8
 resource_name_filter string null
 pattern_type_filter int8 = 3
 principal_filter string null
 host_filter string null
 operation int8
 permission_type int8
"""
RESPONSE_FIELDS: Final = """
DescribeAclsResponse 1-3 flexible 2+
 throttle_time_ms int32
 error_code int16
 error_message string null
 resources []DescribeAclsResource
  resource_type int8
  resource_name string
  pattern_type int8 = 3
  acls []AclDescription
   principal string
   host string
   operation int8
   permission_type int8
"""
