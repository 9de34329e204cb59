"""Downgrade: a consumer group becomes a classic group when its last member of the consumer protocol leaves.

    generation     the group's epoch
    protocol       the one most members prefer among the protocols that all support
    assignments    the members' partitions, with those to give up; their targets, if the group does not rebalance

If members left, the group rebalances at once, and its leader reassigns their partitions. If a static member came back with the
classic protocol, replacing the last one of the consumer protocol, it takes over that one's partitions. The group then continues
unchanged, unless its target is outdated (the subscription is new) or members had not reached it yet. In that case it rebalances.

Until the rebalance ends, the group may become a consumer group again, and must know which partitions members still have. Kafka
stores the targets, and so reassigns partitions that their owners have yet to give up.

The classic group goes live when the conversion is decided. If its records cannot be appended, it is dropped again.

Source: ``GroupMetadataManager.convertToClassicGroup``, ``ClassicGroup.fromConsumerGroup`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.member import Member
from odradek.coordinator.group.classic.rebalance import give_up, prepare
from odradek.coordinator.group.classic.rebalance_notes import RebalanceCause, named
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.classic.stored import group_record
from odradek.coordinator.group.consumer.member import NOTHING
from odradek.coordinator.group.consumer.records import group_tombstones
from odradek.coordinator.group.migration.assignments import told_assignment
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from odradek.coordinator.group.classic.decision import Decision
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.protocol.coordinator_records.consumer_groups import ClassicMemberMetadata


def can_downgrade(groups: ConsumerGroups, group: ConsumerGroup, leaving: AbstractSet[str], *, joining: int = 0) -> bool:
    """Return whether the group becomes a classic one once ``leaving`` have left and ``joining`` classic members have joined."""
    staying = [member for member in group.members.values() if member.member_id not in leaving]
    count = len(staying) + joining
    if not count or any(member.classic is None for member in staying):
        return False
    config = groups.config_of(group.group_id)
    reason = ""
    if not config.migration_policy.permits_downgrade:
        reason = "online downgrade is disabled"
    elif count > groups.classic.config().group_max_size:
        reason = "the group has more members than group.max.size"
    if reason:
        groups.reports.info("cannot convert a consumer group to a classic group", group=group.group_id, why=reason)
    return not reason


def downgrade_without(
    groups: ConsumerGroups, group: ConsumerGroup, leaving: Sequence[ConsumerMember], decision: Decision
) -> None:
    """Remove members; those that stay form a classic group, which rebalances."""
    gone = {member.member_id for member in leaving}
    decision.records += group.tombstones()
    members = [each for each in group.members.values() if each.member_id not in gone]
    classic = _convert(groups, group, members, {each.member_id: each.held() for each in members}, decision)
    why = f"{', '.join(named(gone))} left, the last with the consumer protocol"
    prepare(groups.classic, classic, RebalanceCause.DOWNGRADED, why, decision)


def downgrade_with(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    replaced: ConsumerMember,
    joining: ConsumerMember,
    decision: Decision,
    *,
    is_stale: bool,
) -> None:
    """Let a classic static member replace ``replaced`` and take over its partitions; the group becomes a classic one.

    The decision already holds the records that replace ``replaced``.
    """
    ids = [joining.member_id if each == replaced.member_id else each for each in group.members]
    decision.records += group_tombstones(group.group_id, ids, list(group.regexes))
    members = [*(each for each in group.members.values() if each.member_id != replaced.member_id), joining]
    predecessors = {joining.member_id: replaced.member_id}
    assigned: dict[str, Partitions] = {}
    for each in members:
        target = group.targets.get(predecessors.get(each.member_id, each.member_id)) or NOTHING
        assigned[each.member_id] = each.held() if is_stale else target
    classic = _convert(groups, group, members, assigned, decision)
    if is_stale:
        why = f"static member {joining.instance_id} came back with the classic protocol and another subscription"
        prepare(groups.classic, classic, RebalanceCause.DOWNGRADED, why, decision)


def _convert(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
    assigned: Mapping[str, Partitions],
    decision: Decision,
) -> ClassicGroup:
    """Make the classic group live, its members with their ``assigned`` partitions, and add its record."""
    classic = ClassicGroup(group.group_id, GroupState.STABLE, group.epoch.get(), groups.clock.now_ms())
    for each in members:
        if each.classic is not None:
            classic.add(_classic_member(each, each.classic), CONSUMER_PROTOCOL_TYPE)
    classic.protocol = classic.select_protocol()
    classic.refresh_subscribed_topics()
    classic.settled_members = frozenset(classic.members)
    for member_id, member in classic.members.items():
        member.assignment = told_assignment(groups.topics, member.metadata(classic.protocol), assigned[member_id])
    decision.records.append(group_record(classic, {each: member.assignment for each, member in classic.members.items()}))
    decision.on_failure(partial(give_up, groups.classic, classic, decision))
    groups.classic.adopt(classic)
    groups.reports.info(
        "a consumer group becomes a classic group", group=group.group_id, generation=classic.generation, members=len(members)
    )
    return classic


def _classic_member(member: ConsumerMember, metadata: ClassicMemberMetadata) -> Member:
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=metadata.session_timeout_ms,
        protocols=metadata.supported_protocols,
    )
