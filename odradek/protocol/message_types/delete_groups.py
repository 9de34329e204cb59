"""DeleteGroups up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DeleteGroupsRequest(NamedTuple):
    """The DeleteGroups request."""

    groups_names: Sequence[str] = ()


class DeletableGroupResult(NamedTuple):
    """A struct of the DeleteGroups response."""

    group_id: str = ""
    error_code: int = 0
    error_message: str | None = None


class DeleteGroupsResponse(NamedTuple):
    """The DeleteGroups response."""

    throttle_time_ms: int = 0
    results: Sequence[DeletableGroupResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DeleteGroupsRequest": DeleteGroupsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DeletableGroupResult": DeletableGroupResult,
    "DeleteGroupsResponse": DeleteGroupsResponse,
}

REQUEST_FIELDS: Final = """
DeleteGroupsRequest 0-3 flexible 2+
 groups_names []string
"""
RESPONSE_FIELDS: Final = """
DeleteGroupsResponse 0-3 flexible 2+
 throttle_time_ms int32
 results []DeletableGroupResult
  group_id string
  error_code int16
  error_message string 3+ null 3+ = null
"""
