"""DescribeGroups and ListGroups: groups of any kind, as of the log's committed offset."""

from collections.abc import Generator, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from odradek.coordinator.group.registry import GroupRegistry
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_groups import DescribedGroup
from odradek.protocol.message_types.list_groups import ListedGroup

# The state of a group that does not exist. Since version 6 it comes with an error (KIP-1043).
_DEAD: Final = "Dead"
_NOT_FOUND_SINCE: Final = 6
# The number of groups listed without a pause: half a millisecond.
_TOGETHER: Final = 250


def describe_group(groups: GroupRegistry, group_id: str, version: int, committed_offset: int) -> DescribedGroup:
    """Return the DescribedGroup of DescribeGroups. A group of a kind it does not show is answered as not found."""
    group = groups.find_at(group_id, committed_offset)
    if group is None:
        return _not_found(group_id, version, f"Group {group_id} not found.")
    return group.describe() or _not_found(group_id, version, f"Group {group_id} is not a classic group.")


def group_filter(names: Iterable[str]) -> frozenset[str]:
    """Return a filter for ``list_groups`` from names of states or types, in any case."""
    return frozenset([name.strip().lower() for name in names])


def list_groups(
    groups: GroupRegistry, states: AbstractSet[str], types: AbstractSet[str], committed_offset: int
) -> Generator[None, None, list[ListedGroup]]:
    """List the ListedGroups in ``states`` and of ``types`` (``group_filter``). An empty filter matches everything.

    A generator that pauses now and then. A group that changes meanwhile is listed in its newer state, or not at all.
    """
    found = []
    for place, group in enumerate(groups.groups_at(committed_offset), 1):
        if (not states or group.state.lower() in states) and (not types or group.group_type.lower() in types):
            found.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=str(group.state),
                    group_type=group.group_type,
                )
            )
        if place % _TOGETHER == 0:
            yield None
    return found


def _not_found(group_id: str, version: int, message: str) -> DescribedGroup:
    is_error = version >= _NOT_FOUND_SINCE
    return DescribedGroup(
        group_id=group_id,
        group_state=_DEAD,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
        error_message=message if is_error else None,
    )
