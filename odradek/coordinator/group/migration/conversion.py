"""Conversion of groups: classic to consumer groups (upgrade), and back (downgrade).

Upgrade: a classic group becomes a consumer group when a member of the consumer protocol joins it.

    group epoch, assignment epoch, member epochs    the generation
    target assignments                              the leader's last assignment
    current assignments                             the target, and partitions owned at the join, unless another member has them
    subscriptions                                   taken from the members' protocol in use

In a stable group, members have their targets. While a cooperative group rebalances, a member may own more than its assignment:
it has not heard of the new one, or the previous generation had none. Kafka reassigns such partitions at once, and two members
read them until the former owner has joined again.

The joining member raises the group's epoch, which begins a rebalance. So the classic group's held requests are answered
REBALANCE_IN_PROGRESS, and their members join again.

Source: ``GroupMetadataManager.convertToConsumerGroup``, ``ConsumerGroup.fromClassicGroup`` of Apache Kafka 4.4.

Downgrade: a consumer group becomes a classic group when its last member of the consumer protocol leaves.

    generation     the group's epoch
    protocol       the one most members prefer among the protocols that all support
    assignments    the members' partitions, with those to give up; their targets, if the group does not rebalance

If members left, the group rebalances at once, and its leader reassigns their partitions. If a static member came back with the
classic protocol, replacing the last one of the consumer protocol, it takes over that one's partitions. The group then continues
unchanged, unless its target is outdated (the subscription is new) or members had not reached it yet. In that case it
rebalances.

Until the rebalance ends, the group may become a consumer group again, and must know which partitions members still have. Kafka
stores the targets, and so reassigns partitions that their owners have yet to give up.

The classic group goes live when the conversion is decided. If its records cannot be appended, it is dropped again.

Source: ``GroupMetadataManager.convertToClassicGroup``, ``ClassicGroup.fromConsumerGroup`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from odradek.coordinator.group.classic.decision import join_error, sync_error
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import group_record
from odradek.coordinator.group.classic.member import Member
from odradek.coordinator.group.classic.rebalance import give_up, prepare, stop_waiting
from odradek.coordinator.group.classic.states import GroupState, RebalanceCause, named
from odradek.coordinator.group.consumer.groups import JOIN_LIMIT, SYNC_LIMIT
from odradek.coordinator.group.consumer.member import (
    NOTHING,
    ConsumerMember,
    MemberState,
    assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_metadata_record,
    target_record,
)
from odradek.coordinator.group.consumer.topics import encode_assignment_for, with_ids
from odradek.protocol.coordinator_records.consumer_groups import ClassicMemberMetadata, ClassicProtocol
from odradek.protocol.coordinator_records.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    assigned_partitions,
    assigned_user_data,
    read_subscription,
)
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.classic.decision import Decision
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.runtime.result import CoordinatorRecord
    from odradek.timing.reply import Reply

# No assignment was computed for the consumer group yet, so the next one is never too early.
_NEVER_MS: Final = 0


def upgraded(groups: ConsumerGroups, classic: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """Return a temporary consumer group made from ``classic``, to decide on before the records are replayed.

    Adds to ``records`` only. Raises KafkaError(GROUP_ID_NOT_FOUND) if the group cannot be converted.
    """
    _check(groups, classic)
    group_id = classic.group_id
    try:
        assigned = {member_id: _with_ids(groups, member.assignment) for member_id, member in classic.members.items()}
        held = {(topic_id, index) for each in assigned.values() for topic_id, indexes in each.items() for index in indexes}
        members = [
            _converted(groups, classic, member, assigned[member_id], held) for member_id, member in classic.members.items()
        ]
    except MalformedMessage:
        raise _refusal(group_id, "the subscription or assignment of a member is malformed") from None
    names = frozenset[str]().union(*(member.subscribed_topic_names for member in members))
    generation = classic.generation
    made = [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, generation, groups.metadata_hash(names)),
        *(target_record(group_id, member_id, partitions) for member_id, partitions in assigned.items()),
        target_metadata_record(group_id, generation, _NEVER_MS),
        *(assignment_record(group_id, member) for member in members),
    ]
    records += classic.tombstones()
    records += made
    return groups.preview(group_id, made)


def lags_behind_topics(groups: ConsumerGroups, group: ConsumerGroup) -> bool:
    """Return whether the members' partitions differ from those of their topics, which changed after the assignment.

    The leader would have noticed, but it no longer leads. In Kafka, such partitions stay unread until the topics change again.
    """
    found = (groups.topics.find(name) for name in group.name_counts)
    wanted = {(topic.topic_id, index) for topic in found if topic is not None for index in range(topic.partition_count)}
    return wanted != set(group.holders)


def move_sessions(groups: ConsumerGroups, classic: ClassicGroup) -> list[tuple[Reply[Any], object]]:
    """Move the members' sessions to the consumer group, and return the answers to held requests.

    If the records cannot be appended, the answers fail too, and the group is again as stored.
    """
    responses: list[tuple[Reply[Any], object]] = []
    for member in classic.members.values():
        # From before the group was a classic one. The deadline of a revocation finds the member in another epoch or protocol.
        for limit in (JOIN_LIMIT, SYNC_LIMIT):
            groups.timers.cancel((limit, classic.group_id, member.member_id))
        groups.sessions.touch(classic.group_id, member.member_id, member.session_timeout_ms)
        groups.classic.sessions.end(classic, member.member_id)
        join = classic.release_join(member)
        if join is not None:
            responses.append((join, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)))
        if member.waiting_sync is not None:
            responses.append((member.waiting_sync, sync_error(ErrorCode.REBALANCE_IN_PROGRESS)))
            member.waiting_sync = None
    stop_waiting(groups.classic, classic)
    groups.reports.info(
        "a classic group becomes a consumer group",
        group=classic.group_id,
        generation=classic.generation,
        members=len(classic.members),
    )
    return responses


def _check(groups: ConsumerGroups, classic: ClassicGroup) -> None:
    config = groups.config_of(classic.group_id)
    if not config.migration_policy.permits_upgrade:
        raise _refusal(classic.group_id, "group.consumer.migration.policy does not allow the upgrade")
    if not classic.uses_consumer_protocol:
        raise _refusal(classic.group_id, "its members are not consumers")
    if len(classic.members) > config.max_size:
        raise _refusal(classic.group_id, "it has more members than group.consumer.max.size")


def _refusal(group_id: str, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} stays a classic group: {reason}")


def _converted(
    groups: ConsumerGroups,
    classic: ClassicGroup,
    member: Member,
    assigned: Mapping[UUID, frozenset[int]],
    held: set[tuple[UUID, int]],
) -> ConsumerMember:
    """Convert a member. Raises MalformedMessage; KafkaError if a custom assignor gave it more than partitions."""
    subscription = read_subscription(_metadata(classic, member))
    # librdkafka's sticky assignor returns each member the user data of its own subscription. Nothing is lost with it.
    if assigned_user_data(member.assignment) not in {b"", subscription.user_data}:
        raise _refusal(
            classic.group_id, "its leader's assignor sends user data with the assignments, and a consumer group cannot keep it"
        )
    owned = {topic_id: dict.fromkeys(indexes, classic.generation) for topic_id, indexes in assigned.items()}
    for topic_id, indexes in with_ids(groups.topics, subscription.owned).items():
        for index in indexes:
            if (topic_id, index) not in held:
                held.add((topic_id, index))
                owned.setdefault(topic_id, {})[index] = classic.generation
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=classic.generation,
        previous_member_epoch=classic.generation,
        state=MemberState.STABLE,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned=owned,
        classic=ClassicMemberMetadata(member.session_timeout_ms, tuple(ClassicProtocol(*each) for each in member.protocols)),
    )


def _metadata(classic: ClassicGroup, member: Member) -> bytes:
    """Return the member's metadata for the group's protocol. A first rebalance has no protocol yet; Kafka fails on that."""
    protocols = dict(reversed(member.protocols))
    _, first = member.protocols[0]
    return protocols.get(classic.protocol or "", first)


def _with_ids(groups: ConsumerGroups, assignment: bytes) -> dict[UUID, frozenset[int]]:
    return with_ids(groups.topics, assigned_partitions(assignment))


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


def downgrade_on_leave(
    groups: ConsumerGroups, group: ConsumerGroup, leaving: Sequence[ConsumerMember], decision: Decision
) -> None:
    """Remove members; those that stay form a classic group, which rebalances."""
    gone = {member.member_id for member in leaving}
    decision.records += group.tombstones()
    members = [each for each in group.members.values() if each.member_id not in gone]
    classic = _convert(groups, group, members, {each.member_id: each.held() for each in members}, decision)
    why = f"{', '.join(named(gone))} left, the last with the consumer protocol"
    prepare(groups.classic, classic, RebalanceCause.DOWNGRADED, why, decision)


def downgrade_on_join(
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
        member.assignment = encode_assignment_for(groups.topics, member.metadata(classic.protocol), assigned[member_id])
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
