"""JoinGroup up to version 9. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class JoinGroupRequestProtocol(NamedTuple):
    """Part of the JoinGroup request."""

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
    """Part of the JoinGroup response."""

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
