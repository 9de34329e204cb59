"""Heartbeat up to version 4. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple


class HeartbeatRequest(NamedTuple):
    """The Heartbeat request."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


class HeartbeatResponse(NamedTuple):
    """The Heartbeat response."""

    throttle_time_ms: int = 0
    error_code: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "HeartbeatRequest": HeartbeatRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "HeartbeatResponse": HeartbeatResponse,
}

REQUEST_FIELDS: Final = """
HeartbeatRequest 0-4 flexible 4+
 group_id string
 generation_id int32
 member_id string
 group_instance_id string 3+ null 3+ = null
"""
RESPONSE_FIELDS: Final = """
HeartbeatResponse 0-4 flexible 4+
 throttle_time_ms int32 1+
 error_code int16
"""
