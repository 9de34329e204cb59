"""DescribeGroups up to version 6. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribeGroupsRequest(NamedTuple):
    """The DescribeGroups request."""

    groups: Sequence[str] = ()
    include_authorized_operations: bool = False


class DescribedGroupMember(NamedTuple):
    """A struct of the DescribeGroups response."""

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(NamedTuple):
    """A struct of the DescribeGroups response."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: int = -2147483648


class DescribeGroupsResponse(NamedTuple):
    """The DescribeGroups response."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeGroupsRequest": DescribeGroupsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribedGroupMember": DescribedGroupMember,
    "DescribedGroup": DescribedGroup,
    "DescribeGroupsResponse": DescribeGroupsResponse,
}

REQUEST_FIELDS: Final = """
DescribeGroupsRequest 0-6 flexible 5+
 groups []string
 include_authorized_operations bool 3+
"""
RESPONSE_FIELDS: Final = """
DescribeGroupsResponse 0-6 flexible 5+
 throttle_time_ms int32 1+
 groups []DescribedGroup
  error_code int16
  error_message string 6+ null 6+ = null
  group_id string
  group_state string
  protocol_type string
  protocol_data string
  members []DescribedGroupMember
   member_id string
   group_instance_id string 4+ null 4+ = null
   client_id string
   client_host string
   member_metadata bytes
   member_assignment bytes
  authorized_operations int32 3+ = -2147483648
"""
