"""JoinGroup up to version 9. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class JoinGroupRequestProtocol(NamedTuple):
    """A struct of the JoinGroup request."""

    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(NamedTuple):
    """The JoinGroup request."""

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()
    reason: str | None = None


class JoinGroupResponseMember(NamedTuple):
    """A struct of the JoinGroup response."""

    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(NamedTuple):
    """The JoinGroup response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "JoinGroupRequestProtocol": JoinGroupRequestProtocol,
    "JoinGroupRequest": JoinGroupRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "JoinGroupResponseMember": JoinGroupResponseMember,
    "JoinGroupResponse": JoinGroupResponse,
}

REQUEST_FIELDS: Final = """
JoinGroupRequest 0-9 flexible 6+
 group_id string
 session_timeout_ms int32
 rebalance_timeout_ms int32 1+ = -1
 member_id string
 group_instance_id string 5+ null 5+ = null
 protocol_type string
 protocols []JoinGroupRequestProtocol
  name string
  metadata bytes
 reason string 8+ null 8+ = null
"""
RESPONSE_FIELDS: Final = """
JoinGroupResponse 0-9 flexible 6+
 throttle_time_ms int32 2+
 error_code int16
 generation_id int32 = -1
 protocol_type string 7+ null 7+ = null
 protocol_name string null 7+
 leader string
 skip_assignment bool 9+ = false
 member_id string
 members []JoinGroupResponseMember
  member_id string
  group_instance_id string 5+ null 5+ = null
  metadata bytes
"""
