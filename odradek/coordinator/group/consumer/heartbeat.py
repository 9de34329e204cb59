"""ConsumerGroupHeartbeat: a member joins, reports its subscription and partitions, and gets its assignment.

    1. the member is added or updated; a change that concerns the group raises its epoch
    2. the target assignment is computed, if it is older than the group's epoch
    3. the member comes nearer to its target

The answer has the assignment if the heartbeat is a full one, or changes the member's partitions.

Source: ``GroupMetadataManager.consumerGroupHeartbeat`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.consumer.leave import leave_group
from odradek.coordinator.group.consumer.member_step import MemberStep
from odradek.coordinator.group.consumer.validation import check_request, check_room, dynamic_member, static_member
from odradek.coordinator.group.migration.conversion import lags_behind_topics, move_sessions, upgraded
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from odradek.coordinator.group.config import MemberContext
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.coordinator.runtime.result import CoordinatorRecord


def heartbeat(
    groups: ConsumerGroups, context: MemberContext, request: ConsumerGroupHeartbeatRequest
) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
    """Decide on a ConsumerGroupHeartbeat. Raises KafkaError for every refusal. HOT."""
    check_request(request, context.version, groups.assignor_names)
    if request.member_epoch < 0:
        return leave_group(groups, request)
    records: list[CoordinatorRecord] = []
    group = groups.find(request.group_id)
    classic = None
    if group is None:
        group, classic = _new_group(groups, request, records)
    config = groups.config_of(request.group_id)
    check_room(group, request.member_id, request.instance_id, config.max_size)
    member_id = request.member_id or groups.new_id()
    if request.instance_id is None:
        old = dynamic_member(group, member_id, request)
    else:
        old = static_member(groups, group, member_id, request, records)
    member = _updated(old, context, request)
    is_full = request.member_epoch == 0 or (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    # Most heartbeats change nothing: there is no step to take.
    is_at_rest = member is old and classic is None and group.is_at_rest
    if not (is_at_rest and member.is_reconciled_to(group.assignment_epoch)):
        step = MemberStep(groups, group, old, records, context.may_see)
        # A static member that comes back with the other protocol changes nothing, but the group may still have to rebalance.
        must_rebalance = classic is not None and (classic.state is not GroupState.STABLE or lags_behind_topics(groups, group))
        member = step.advance(member, step.note(member, must_raise=must_rebalance), _owned(request))
    groups.heartbeats += 1
    groups.sessions.touch(request.group_id, member_id, config.session_timeout_ms)
    has_assignment = is_full or (member is not old and member.assigned != old.assigned)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        assignment=_assignment_of(member) if has_assignment else None,
    )
    if classic is None:
        return CoordinatorResult(records, response)
    return CoordinatorResult(records, response, responses=move_sessions(groups, classic))


def _new_group(
    groups: ConsumerGroups, request: ConsumerGroupHeartbeatRequest, records: list[CoordinatorRecord]
) -> tuple[ConsumerGroup, ClassicGroup | None]:
    """Return a group for a joining member, and the classic group it is upgraded from, if that has members.

    An empty classic group is replaced.
    """
    other = groups.registry.find(request.group_id)
    is_joining = request.member_epoch == 0
    if other is None and is_joining:
        return groups.new_group(request.group_id), None
    if isinstance(other, ClassicGroup) and is_joining:
        if not other.is_empty:
            return upgraded(groups, other, records), other
        records += other.tombstones()
        return groups.new_group(request.group_id), None
    what = "there is no group" if other is None else "not a consumer group:"
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {request.group_id}")


def _owned(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    """Return the partitions that the member reports owning; None if it does not say."""
    reported = request.topic_partitions
    if reported is None:
        return None
    return {each.topic_id: frozenset(each.partitions) for each in reported if each.topic_id is not None}


def _assignment_of(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in member.assigned.items()
        ]
    )


def _updated(old: ConsumerMember, context: MemberContext, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member updated from the request; the same object if nothing changed. HOT."""
    names = request.subscribed_topic_names
    timeout_ms = request.rebalance_timeout_ms
    if (
        old.client_id == context.client_id
        and old.client_host == context.client_host
        and old.classic is None
        and request.instance_id in (None, old.instance_id)
        and request.rack_id in (None, old.rack_id)
        and timeout_ms in (-1, old.rebalance_timeout_ms)
        and request.server_assignor in (None, old.server_assignor)
        and request.subscribed_topic_regex in (None, old.subscribed_topic_regex)
        and (names is None or old.subscribed_topic_names == frozenset(names))
    ):
        return old
    regex = request.subscribed_topic_regex
    return replace(
        old,
        instance_id=old.instance_id if request.instance_id is None else request.instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=old.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=old.subscribed_topic_regex if regex is None else regex,
        server_assignor=old.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )
