"""SyncGroup, Heartbeat and LeaveGroup of a consumer group's members that speak the classic protocol.

For a classic member whose generation equals its epoch. Others get UNKNOWN_MEMBER_ID (also members of the consumer protocol),
FENCED_INSTANCE_ID or ILLEGAL_GENERATION:

    SyncGroup    its assignment; REBALANCE_IN_PROGRESS if there is a newer target, unless it has yet to give up partitions
    Heartbeat    REBALANCE_IN_PROGRESS if there is a newer target, if it must give up partitions, or if awaited partitions
                 are free: it joins again, and has its rebalance timeout for that
    LeaveGroup   removes the member; by instance id, or by an administrator, a member of either protocol

If only classic members are left, but the policy forbids a downgrade, no consumer heartbeat computes a target. A newer group
epoch, or topics to read again, then makes a member join again. In Kafka nothing does.

Source: ``GroupMetadataManager.classicGroup{Sync,Heartbeat,Leave}ToConsumerGroup`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.classic.decision import Decision, sync_error
from odradek.coordinator.group.consumer.leave import await_join, fenced
from odradek.coordinator.group.consumer.member import NOTHING
from odradek.coordinator.group.consumer.states import MemberState
from odradek.coordinator.group.consumer.validation import instance_holder, unknown_member
from odradek.coordinator.group.migration.assignments import told_assignment
from odradek.coordinator.runtime.result import LATER, CoordinatorResult
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.heartbeat import HeartbeatResponse
from odradek.protocol.message_types.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from odradek.protocol.message_types.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.member import SyncReply
    from odradek.coordinator.group.config import MemberContext
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.protocol.coordinator_records.consumer_groups import ClassicMemberMetadata
    from odradek.protocol.message_types.heartbeat import HeartbeatRequest
    from odradek.protocol.message_types.leave_group import LeaveGroupRequest
    from odradek.protocol.message_types.sync_group import SyncGroupRequest

_PROTOCOL_REQUIRED_SINCE: Final = 5


def sync_consumer_group(
    groups: ConsumerGroups, group: ConsumerGroup, context: MemberContext, request: SyncGroupRequest, reply: SyncReply
) -> CoordinatorResult[SyncGroupResponse]:
    """Decide on a SyncGroup; ``reply`` is answered by this result."""
    decision = Decision()
    try:
        member, classic = _syncing(groups, group, context, request)
    except KafkaError as error:
        decision.answer(reply, sync_error(error.code))
        return decision.result(LATER)
    decision.on_commit(partial(_synced, groups, group.group_id, member.member_id, classic.session_timeout_ms))
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=told_assignment(groups.topics, classic.supported_protocols[0][1], member.assigned),
    )
    decision.answer(reply, response)
    return decision.result(LATER)


def _syncing(
    groups: ConsumerGroups, group: ConsumerGroup, context: MemberContext, request: SyncGroupRequest
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    is_without = request.protocol_type is None or request.protocol_name is None
    if context.version >= _PROTOCOL_REQUIRED_SINCE and is_without:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "the SyncGroup has no protocol")
    member, classic = _member(group, request.member_id, request.group_instance_id, request.generation_id)
    name, _ = classic.supported_protocols[0]
    if request.protocol_type not in {None, CONSUMER_PROTOCOL_TYPE} or request.protocol_name not in {None, name}:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the SyncGroup has another protocol than member {member.member_id}"
        )
    if member.state is not MemberState.UNREVOKED_PARTITIONS and member.member_epoch < group.assignment_epoch:
        await_join(groups, group.group_id, member)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"member {member.member_id} must join again")
    return member, classic


def _synced(groups: ConsumerGroups, group_id: str, member_id: str, session_timeout_ms: int) -> None:
    groups.sessions.end_sync(group_id, member_id)
    groups.sessions.touch(group_id, member_id, session_timeout_ms)


def heartbeat_to_consumer_group(
    groups: ConsumerGroups, group: ConsumerGroup, request: HeartbeatRequest
) -> CoordinatorResult[HeartbeatResponse]:
    """Decide on a Heartbeat. HOT."""
    groups.classic.counters.heartbeats += 1
    try:
        member, classic = _member(group, request.member_id, request.group_instance_id, request.generation_id)
    except KafkaError as error:
        return CoordinatorResult((), HeartbeatResponse(error_code=error.code))
    groups.sessions.touch(group.group_id, member.member_id, classic.session_timeout_ms)
    error_code = ErrorCode.NONE
    if _is_to_join(group, member):
        error_code = ErrorCode.REBALANCE_IN_PROGRESS
        await_join(groups, group.group_id, member)
    return CoordinatorResult((), HeartbeatResponse(error_code=error_code))


def _is_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return not _waits(group, member)
    may_be_late = member.member_epoch < group.epoch.get() or group.is_stale
    return may_be_late and all(each.classic is not None for each in group.members.values())


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether another member still has partitions of the member's target."""
    for topic_id, indexes in (group.targets.get(member.member_id) or NOTHING).items():
        for index in indexes.difference(member.assigned.get(topic_id, ())):
            if (topic_id, index) in group.holders:
                return True
    return False


def leave_consumer_group(
    groups: ConsumerGroups, group: ConsumerGroup, request: LeaveGroupRequest
) -> CoordinatorResult[LeaveGroupResponse]:
    """Decide on a LeaveGroup. An unknown member gets an error; the others still leave."""
    gone: dict[str, ConsumerMember] = {}
    answers = []
    for identity in request.members:
        error_code = ErrorCode.NONE
        try:
            member = _leaving(group, identity)
            gone[member.member_id] = member
        except KafkaError as error:
            error_code = error.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error_code)
        )
    response = LeaveGroupResponse(members=answers)
    if not gone:
        return CoordinatorResult((), response)
    return fenced(groups, group, list(gone.values()), response, "left")


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    member_id = identity.member_id
    if instance_id is not None:
        return instance_holder(group, member_id or group.static_members.get(instance_id) or "", instance_id)
    member = group.members.get(member_id)
    if member is None:
        unknown_member(group, member_id)
    return member


def _member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    """Return a classic member by its ids and generation."""
    member = group.members.get(member_id) if instance_id is None else instance_holder(group, member_id, instance_id)
    if member is None or member.classic is None:
        unknown_member(group, member_id)
    if generation != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"member {member_id} is in epoch {member.member_epoch}, not {generation}")
    return member, member.classic
