"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

JoinGroup to a consumer group with members: a classic member joins, or joins again, and gets its member epoch.

    1. the member is added or updated with its subscription, as by a heartbeat of the consumer protocol
    2. it comes nearer to its target; its subscription lists its owned partitions
    3. the answer is a generation, the member's epoch, without a leader; a SyncGroup fetches the assignment

A static member may replace a member of either protocol. If that was the last one of the consumer protocol, the group becomes a
classic one (``conversion``).

Refused: INCONSISTENT_GROUP_PROTOCOL if the policy is ``disabled``, or the other classic members support none of its protocols;
GROUP_MAX_SIZE_REACHED; UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID if a static member's id does not match its instance id. An
unknown id of a dynamic member counts as a new member.

Source: ``GroupMetadataManager.classicGroupJoinToConsumerGroup`` of Apache Kafka 4.4.

SyncGroup, Heartbeat and LeaveGroup of a consumer group's members that speak the classic protocol.

For a classic member whose generation equals its epoch. Others get UNKNOWN_MEMBER_ID (also members of the consumer protocol),
FENCED_INSTANCE_ID or ILLEGAL_GENERATION:

    SyncGroup    its assignment; REBALANCE_IN_PROGRESS if there is a newer target, unless it has yet to give up partitions
    Heartbeat    REBALANCE_IN_PROGRESS if there is a newer target, if it must give up partitions, or if awaited partitions
                 are free: it joins again, and has its rebalance timeout for that
    LeaveGroup   removes the member; by instance id, or by an administrator, a member of either protocol

If only classic members are left, but the policy forbids a downgrade, no consumer heartbeat computes a target. A newer group
epoch, or topics to read again, then makes a member join again. In Kafka nothing does.

Source: ``GroupMetadataManager.classicGroup{Sync,Heartbeat,Leave}ToConsumerGroup`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.classic.decision import Decision, join_error, sync_error
from odradek.coordinator.group.config import MigrationPolicy
from odradek.coordinator.group.consumer.groups import JOIN_LIMIT, SYNC_LIMIT
from odradek.coordinator.group.consumer.leave import await_join, await_sync, fenced
from odradek.coordinator.group.consumer.member import NOTHING, MemberState
from odradek.coordinator.group.consumer.member_step import MemberStep
from odradek.coordinator.group.consumer.topics import encode_assignment_for, with_ids
from odradek.coordinator.group.consumer.validation import check_room, instance_holder, replaced
from odradek.coordinator.group.migration.conversion import can_downgrade, downgrade_on_join
from odradek.coordinator.group.modern_group import unknown_member
from odradek.coordinator.runtime.result import DEFERRED_RESPONSE, CoordinatorResult
from odradek.protocol.coordinator_records.consumer_groups import ClassicMemberMetadata, ClassicProtocol
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE, Subscription, read_subscription
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.message_types.heartbeat import HeartbeatResponse
from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.message_types.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from odradek.protocol.message_types.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.member import JoinReply, SyncReply
    from odradek.coordinator.group.config import MemberContext
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.protocol.message_types.heartbeat import HeartbeatRequest
    from odradek.protocol.message_types.leave_group import LeaveGroupRequest
    from odradek.protocol.message_types.sync_group import SyncGroupRequest

_MEMBER_ID_REQUIRED_SINCE: Final = 4


def join_consumer_group(
    groups: ConsumerGroups, group: ConsumerGroup, context: MemberContext, request: JoinGroupRequest, reply: JoinReply
) -> CoordinatorResult[JoinGroupResponse]:
    """Decide on a JoinGroup; ``reply`` is answered by this result."""
    decision = Decision()
    try:
        member_id = request.member_id or groups.new_id()
        subscription = _check(groups, group, member_id, request)
        is_nameless = not request.member_id and request.group_instance_id is None
        if is_nameless and context.version >= _MEMBER_ID_REQUIRED_SINCE:
            decision.answer(reply, join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            _join(groups, group, context, request, member_id, subscription, reply, decision)
    except KafkaError as error:
        groups.reports.info(
            "a JoinGroup was refused",
            group=request.group_id,
            member=request.member_id,
            instance_id=request.group_instance_id,
            error=error.code.name,
        )
        return CoordinatorResult((), DEFERRED_RESPONSE, responses=[(reply, join_error(error.code))])
    return decision.result(DEFERRED_RESPONSE)


def _check(groups: ConsumerGroups, group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> Subscription:
    """Check the request and return the member's subscription. All its protocols say the same, so the first one is read."""
    limits = groups.classic.config()
    if not limits.group_min_session_timeout_ms <= request.session_timeout_ms <= limits.group_max_session_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT, f"the session timeout, {request.session_timeout_ms} ms, is out of range"
        )
    config = groups.config_of(group.group_id)
    if config.migration_policy is MigrationPolicy.DISABLED:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "group.consumer.migration.policy does not allow classic members")
    check_room(group, member_id, request.group_instance_id, config.max_size)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not _is_supported(group, [each.name for each in request.protocols]):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the protocols of member {member_id} are not supported")
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage:
        # Kafka fails here, with UNKNOWN_SERVER_ERROR.
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the subscription of member {member_id} is malformed") from None


def _is_supported(group: ConsumerGroup, names: list[str]) -> bool:
    """Return whether all classic members support one of the protocols ``names``."""
    common = set(names)
    for member in group.members.values():
        if member.classic is not None:
            common &= {name for name, _ in member.classic.supported_protocols}
    return bool(common)


def _join(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    context: MemberContext,
    request: JoinGroupRequest,
    member_id: str,
    subscription: Subscription,
    reply: JoinReply,
    decision: Decision,
) -> None:
    records = decision.records
    instance_id = request.group_instance_id
    holder = _holder(group, instance_id)
    if instance_id is None or (holder is None and not request.member_id):
        if request.member_id and subscription.owned and member_id not in group.members:
            # The member was removed, and does not know that yet. Its partitions may belong to another member by now.
            unknown_member(group, member_id)
        old = group.member_or_new(member_id)
    elif holder is None or request.member_id:
        old = instance_holder(group, member_id, instance_id)
    else:
        old = replaced(groups, group, holder, member_id, records)
    converts = holder is not None and holder.classic is None and can_downgrade(groups, group, {holder.member_id}, joining=1)
    member = _updated(old, context, request, subscription)
    step = MemberStep(groups, group, old, records, context.may_see)
    epoch = step.note(old if member == old else member)
    owned = with_ids(groups.topics, subscription.owned)
    if holder is not None and converts:
        # If another member has not reached its target, its target partitions may still have an owner. No targets are handed out
        # then.
        is_stale = group.assignment_epoch < epoch or not _are_reconciled(group, holder)
        if not is_stale:
            target = group.target_of(member_id, instance_id)
            member = step.reconcile(member, group.assignment_epoch, target, owned)
        downgrade_on_join(groups, group, holder, member, decision, is_stale=is_stale)
    else:
        member = step.advance(member, epoch, owned)
        decision.on_commit(partial(_begin_sync, groups, group.group_id, member, request.session_timeout_ms))
    decision.answer(reply, _response(member, request))


def _are_reconciled(group: ConsumerGroup, besides: ConsumerMember) -> bool:
    others = (member for member in group.members.values() if member is not besides)
    return all(member.is_reconciled_to(group.assignment_epoch) for member in others)


def _holder(group: ConsumerGroup, instance_id: str | None) -> ConsumerMember | None:
    holder_id = None if instance_id is None else group.static_members.get(instance_id)
    return None if holder_id is None else group.members.get(holder_id)


def _updated(
    old: ConsumerMember, context: MemberContext, request: JoinGroupRequest, subscription: Subscription
) -> ConsumerMember:
    timeout_ms = request.rebalance_timeout_ms
    protocols = tuple(ClassicProtocol(each.name, each.metadata) for each in request.protocols)
    return replace(
        old,
        instance_id=old.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=ClassicMemberMetadata(request.session_timeout_ms, protocols),
    )


def _begin_sync(groups: ConsumerGroups, group_id: str, member: ConsumerMember, session_timeout_ms: int) -> None:
    """Begin the member's session and the time limit for its SyncGroup, now that the answer is given."""
    groups.timers.cancel((JOIN_LIMIT, group_id, member.member_id))
    groups.sessions.touch(group_id, member.member_id, session_timeout_ms)
    await_sync(groups, group_id, member)


def _response(member: ConsumerMember, request: JoinGroupRequest) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
        member_id=member.member_id,
    )


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
        return decision.result(DEFERRED_RESPONSE)
    decision.on_commit(partial(_synced, groups, group.group_id, member.member_id, classic.session_timeout_ms))
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment_for(groups.topics, classic.supported_protocols[0][1], member.assigned),
    )
    decision.answer(reply, response)
    return decision.result(DEFERRED_RESPONSE)


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
    groups.timers.cancel((SYNC_LIMIT, group_id, member_id))
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
