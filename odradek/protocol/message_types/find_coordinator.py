"""FindCoordinator up to version 6. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class FindCoordinatorRequest(NamedTuple):
    """The FindCoordinator request."""

    key_type: int = 0
    coordinator_keys: Sequence[str] = ()


class Coordinator(NamedTuple):
    """Part of the FindCoordinator response."""

    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = None


class FindCoordinatorResponse(NamedTuple):
    """The FindCoordinator response."""

    throttle_time_ms: int = 0
    coordinators: Sequence[Coordinator] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "FindCoordinatorRequest": FindCoordinatorRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "Coordinator": Coordinator,
    "FindCoordinatorResponse": FindCoordinatorResponse,
}
