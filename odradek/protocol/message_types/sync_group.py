"""SyncGroup up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class SyncGroupRequestAssignment(NamedTuple):
    """A struct of the SyncGroup request."""

    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(NamedTuple):
    """The SyncGroup request."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[SyncGroupRequestAssignment] = ()


class SyncGroupResponse(NamedTuple):
    """The SyncGroup response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


REQUEST: Final[dict[str, type[Any]]] = {
    "SyncGroupRequestAssignment": SyncGroupRequestAssignment,
    "SyncGroupRequest": SyncGroupRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "SyncGroupResponse": SyncGroupResponse,
}

REQUEST_FIELDS: Final = """
SyncGroupRequest 0-5 flexible 4+
 group_id string
 generation_id int32
 member_id string
 group_instance_id string 3+ null 3+ = null
 protocol_type string 5+ null 5+ = null
 protocol_name string 5+ null 5+ = null
 assignments []SyncGroupRequestAssignment
  member_id string
  assignment bytes
"""
RESPONSE_FIELDS: Final = """
SyncGroupResponse 0-5 flexible 4+
 throttle_time_ms int32 1+
 error_code int16
 protocol_type string 5+ null 5+ = null
 protocol_name string 5+ null 5+ = null
 assignment bytes
"""
