"""DescribeGroups and ListGroups: classic groups as they are shown to others."""

from collections.abc import Iterable
from typing import Final

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import ClassicGroups
from odradek.coordinator.group.classic.member import Member
from odradek.coordinator.group.classic.states import GroupState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_groups import DescribedGroup, DescribedGroupMember
from odradek.protocol.message_types.list_groups import ListedGroup

GROUP_TYPE: Final = "classic"
# Since then a group that is not there is an error (KIP-1043); before, it was Dead.
_NOT_FOUND_SINCE: Final = 6


def describe_group(groups: ClassicGroups, group_id: str, version: int, committed_offset: int) -> DescribedGroup:
    """A DescribedGroup; what members said of themselves is shown only when it is settled which protocol is in use."""
    group = groups.described(group_id, committed_offset)
    if group is None:
        is_error = version >= _NOT_FOUND_SINCE
        return DescribedGroup(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
            error_message=f"Group {group_id} not found." if is_error else None,
        )
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[_describe(member, group.protocol if is_stable else None) for member in group.members.values()],
    )


def list_groups(groups: ClassicGroups, states: Iterable[str], types: Iterable[str], committed_offset: int) -> list[ListedGroup]:
    """The ListedGroups in one of ``states`` and of one of ``types``, however they are written; none given means all."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {group_type.strip().lower() for group_type in types}
    if wanted_types and GROUP_TYPE not in wanted_types:
        return []
    return [
        _list(group)
        for group in groups.listed(committed_offset)
        if not wanted_states or group.state.value.lower() in wanted_states
    ]


def _describe(member: Member, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )


def _list(group: ClassicGroup) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=GROUP_TYPE,
    )
