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
