"""How members leave: by their own wish, when their session ends, and when they do not give partitions up in time.

The next heartbeat of another member computes the target assignment without them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.consumer.records import assignment_record, epoch_record, member_tombstones, regex_tombstone
from odradek.coordinator.group.consumer.sessions import NOTHING_DECIDED
from odradek.coordinator.group.consumer.states import MemberState
from odradek.coordinator.group.consumer.validation import instance_holder, unknown_member
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.coordinator.runtime.record import CoordinatorRecord


def leave_group(
    groups: ConsumerGroups, request: ConsumerGroupHeartbeatRequest
) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
    """Decide on a heartbeat of epoch -1 or -2. KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    group = groups.find(request.group_id)
    if group is None:
        found = groups.registry.find(request.group_id)
        what = "not found" if found is None else "is not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    member: ConsumerMember | None
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        if member is None:
            unknown_member(group, request.member_id)
    else:
        member = instance_holder(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_STATIC_EPOCH:
            groups.reports.info("a static member leaves for a while", group=group.group_id, member=member.member_id)
            return CoordinatorResult([assignment_record(group.group_id, _gone_for_a_while(member))], response)
    groups.reports.info("a member left", group=group.group_id, member=member.member_id)
    return CoordinatorResult(removal(groups, group, member), response)


def _gone_for_a_while(member: ConsumerMember) -> ConsumerMember:
    """A static member that will be back: it keeps what it has, and no epoch in which it was assigned that is too old for it."""
    assigned = {topic_id: dict.fromkeys(indexes, 0) for topic_id, indexes in member.assigned.items()}
    return replace(member, member_epoch=LEAVE_STATIC_EPOCH, assigned=assigned, pending_revocation={})


def removal(groups: ConsumerGroups, group: ConsumerGroup, member: ConsumerMember) -> list[CoordinatorRecord]:
    """The records that remove a member and raise the group's epoch."""
    records = member_tombstones(group.group_id, member.member_id)
    regex = member.subscribed_topic_regex
    regexes = set(group.regex_counts)
    if regex and group.regex_counts.get(regex) == 1:
        records.append(regex_tombstone(group.group_id, regex))
        regexes.discard(regex)
    names = {name for name, count in group.name_counts.items() if count > 1 or name not in member.subscribed_topic_names}
    metadata_hash = groups.metadata_hash(names.union(*map(group.names_matching, regexes)))
    records.append(epoch_record(group.group_id, group.epoch.get() + 1, metadata_hash))
    return records


def expire_session(groups: ConsumerGroups, group_id: str, member_id: str) -> CoordinatorResult[None]:
    """A member has been silent for its session timeout."""
    return _remove(groups, group_id, member_id, "its session expired")


def begin_revocation(groups: ConsumerGroups, group_id: str, member: ConsumerMember) -> None:
    """The member has its rebalance timeout to give partitions up."""
    expire = partial(_expire_revocation, groups, group_id, member.member_id, member.member_epoch)
    groups.sessions.begin_revocation(group_id, member.member_id, member.rebalance_timeout_ms, expire)


def _expire_revocation(groups: ConsumerGroups, group_id: str, member_id: str, epoch: int) -> CoordinatorResult[None]:
    group = groups.find(group_id)
    member = None if group is None else group.members.get(member_id)
    if member is None or member.member_epoch != epoch:
        return NOTHING_DECIDED
    return _remove(groups, group_id, member_id, "it did not give up partitions in time")


def _remove(groups: ConsumerGroups, group_id: str, member_id: str, why: str) -> CoordinatorResult[None]:
    group = groups.find(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return NOTHING_DECIDED
    groups.reports.info("a member is removed", group=group_id, member=member_id, why=why)
    return CoordinatorResult(removal(groups, group, member), None)


def begin_sessions(groups: ConsumerGroups) -> None:
    """The shard is loaded: every member's session begins, and the time of those that have partitions to give up."""
    for group in groups.each():
        timeout_ms = groups.config_of(group.group_id).session_timeout_ms
        for member in group.members.values():
            groups.sessions.touch(group.group_id, member.member_id, timeout_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                begin_revocation(groups, group.group_id, member)
