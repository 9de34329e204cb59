"""FindCoordinator up to version 6. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class FindCoordinatorRequest(NamedTuple):
    """The FindCoordinator request."""

    key_type: int = 0
    coordinator_keys: Sequence[str] = ()


class Coordinator(NamedTuple):
    """A struct of the FindCoordinator response."""

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

REQUEST_FIELDS: Final = """
FindCoordinatorRequest 0-6 flexible 3+
 key string -3
 key_type int8 1+ = 0
 coordinator_keys []string 4+
"""
RESPONSE_FIELDS: Final = """
FindCoordinatorResponse 0-6 flexible 3+
 throttle_time_ms int32 1+
 error_code int16 -3
 error_message string 1-3 null 1-3
 node_id int32 -3
 host string -3
 port int32 -3
 coordinators []Coordinator 4+
  key string 4+
  node_id int32 4+
  host string 4+
  port int32 4+
  error_code int16 4+
  error_message string 4+ null 4+
"""
