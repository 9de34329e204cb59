"""What DeleteGroups asks of a group, and what is written of one that goes."""

from odradek.coordinator.group.classic.groups import ClassicGroups
from odradek.coordinator.group.classic.states import GroupState
from odradek.protocol.errors import ErrorCode


def validate_delete(groups: ClassicGroups, group_id: str) -> ErrorCode:
    """GROUP_ID_NOT_FOUND for a group that does not exist, NON_EMPTY_GROUP for one with members."""
    if group_id not in groups.stored:
        return ErrorCode.GROUP_ID_NOT_FOUND
    group = groups.find(group_id)
    if group is None or group.state is not GroupState.EMPTY:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE
