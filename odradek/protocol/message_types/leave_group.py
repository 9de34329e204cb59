"""LeaveGroup up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class MemberIdentity(NamedTuple):
    """A struct of the LeaveGroup request."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(NamedTuple):
    """The LeaveGroup request."""

    group_id: str = ""
    members: Sequence[MemberIdentity] = ()


class MemberResponse(NamedTuple):
    """A struct of the LeaveGroup response."""

    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


class LeaveGroupResponse(NamedTuple):
    """The LeaveGroup response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    members: Sequence[MemberResponse] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "MemberIdentity": MemberIdentity,
    "LeaveGroupRequest": LeaveGroupRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "MemberResponse": MemberResponse,
    "LeaveGroupResponse": LeaveGroupResponse,
}

REQUEST_FIELDS: Final = """
LeaveGroupRequest 0-5 flexible 4+
 group_id string
 member_id string -2
 members []MemberIdentity 3+
  member_id string 3+
  group_instance_id string 3+ null 3+ = null
  reason string 5+ null 5+ = null
"""
RESPONSE_FIELDS: Final = """
LeaveGroupResponse 0-5 flexible 4+
 throttle_time_ms int32 1+
 error_code int16
 members []MemberResponse 3+
  member_id string 3+
  group_instance_id string 3+ null 3+
  error_code int16 3+
"""
