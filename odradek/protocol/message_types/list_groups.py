"""ListGroups up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ListGroupsRequest(NamedTuple):
    """The ListGroups request."""

    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


class ListedGroup(NamedTuple):
    """Part of the ListGroups response."""

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
