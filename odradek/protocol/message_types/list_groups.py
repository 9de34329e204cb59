"""ListGroups up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ListGroupsRequest(NamedTuple):
    """The ListGroups request."""

    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


class ListedGroup(NamedTuple):
    """A struct of the ListGroups response."""

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(NamedTuple):
    """The ListGroups response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    groups: Sequence[ListedGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ListGroupsRequest": ListGroupsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ListedGroup": ListedGroup,
    "ListGroupsResponse": ListGroupsResponse,
}

REQUEST_FIELDS: Final = """
ListGroupsRequest 0-5 flexible 3+
 states_filter []string 4+
 types_filter []string 5+
"""
RESPONSE_FIELDS: Final = """
ListGroupsResponse 0-5 flexible 3+
 throttle_time_ms int32 1+
 error_code int16
 groups []ListedGroup
  group_id string
  protocol_type string
  group_state string 4+
  group_type string 5+
"""
