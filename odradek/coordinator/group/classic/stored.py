"""Conversion of a classic group to its stored form, a ``GroupMetadataValue``, and back."""

from collections.abc import Mapping
from typing import Final

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.member import Member
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

# The stored form of a simple group: it has committed offsets, but no record of its own.
SIMPLE_GROUP: Final = GroupMetadataValue("", 0, None, None)


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of the current generation, with ``assignments`` by member id. A missing member has no partitions."""
    members = tuple(
        MemberMetadata(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol),
            assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )
    value = GroupMetadataValue(
        group.protocol_type or "", group.generation, group.protocol, group.leader, group.state_since_ms, members
    )
    return CoordinatorRecord(GroupMetadataKey(group.group_id), value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the record of a new group. Its joining members are not stored until it has a generation."""
    return CoordinatorRecord(
        GroupMetadataKey(group.group_id), SIMPLE_GROUP._replace(current_state_timestamp_ms=group.state_since_ms)
    )


def restored_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the live group of ``value``: Stable if it has members, otherwise Empty.

    Only the members' protocol in use is stored, so a member that joins again with other protocols counts as changed.
    """
    state = GroupState.STABLE if value.members else GroupState.EMPTY
    group = ClassicGroup(group_id, state, value.generation, value.current_state_timestamp_ms)
    for stored in value.members:
        group.add(_restored_member(stored, value.protocol or ""), value.protocol_type)
    group.protocol_type = value.protocol_type or None
    group.protocol = (value.protocol or "") if value.members else value.protocol
    if value.leader in group.members or not value.members:
        group.leader = value.leader
    group.settled_members = frozenset(group.members)
    group.refresh_subscribed_topics()
    return group


def _restored_member(stored: MemberMetadata, protocol: str) -> Member:
    return Member(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        # Before version 1 of the value, the session timeout was also the rebalance timeout.
        rebalance_timeout_ms=stored.session_timeout_ms if stored.rebalance_timeout_ms == -1 else stored.rebalance_timeout_ms,
        session_timeout_ms=stored.session_timeout_ms,
        protocols=((protocol, stored.subscription),),
        assignment=stored.assignment,
    )
