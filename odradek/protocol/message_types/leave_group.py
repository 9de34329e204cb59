"""LeaveGroup up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class MemberIdentity(NamedTuple):
    """Part of the LeaveGroup request."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(NamedTuple):
    """The LeaveGroup request."""

    group_id: str = ""
    members: Sequence[MemberIdentity] = ()


class MemberResponse(NamedTuple):
    """Part of the LeaveGroup response."""

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
