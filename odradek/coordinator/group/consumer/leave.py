"""Removes members: on request, when their session ends, or when they do not give partitions up in time.

The next heartbeat of another member computes the target assignment without the removed members.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from odradek.coordinator.group.classic.decision import Decision
from odradek.coordinator.group.consumer.groups import JOIN_LIMIT, SYNC_LIMIT
from odradek.coordinator.group.consumer.member import (
    KEYS,
    LEAVE_STATIC_EPOCH,
    assignment_record,
    epoch_record,
    regex_tombstone,
    target_metadata_record,
)
from odradek.coordinator.group.consumer.validation import instance_holder
from odradek.coordinator.group.migration.conversion import can_downgrade, downgrade_on_leave
from odradek.coordinator.group.modern_group import unknown_member
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.coordinator.runtime.result import CoordinatorRecord

T = TypeVar("T")


def leave_group(
    groups: ConsumerGroups, request: ConsumerGroupHeartbeatRequest
) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
    """Decide on a heartbeat of epoch -1 or -2. KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    group = groups.find(request.group_id)
    if group is None:
        found = groups.registry.find(request.group_id)
        what = "there is no group" if found is None else "not a consumer group:"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {request.group_id}")
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    member: ConsumerMember | None
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        if member is None:
            unknown_member(group, request.member_id)
    else:
        member = instance_holder(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_STATIC_EPOCH:
            groups.reports.info("a static member left temporarily", group=group.group_id, member=member.member_id)
            return CoordinatorResult([assignment_record(group.group_id, _departed_static_member(member))], response)
    return fenced(groups, group, [member], response, "left")


def _departed_static_member(member: ConsumerMember) -> ConsumerMember:
    """Return a static member that will be back. It keeps its partitions, with assignment epochs reset to 0."""
    assigned = {topic_id: dict.fromkeys(indexes, 0) for topic_id, indexes in member.assigned.items()}
    return replace(member, member_epoch=LEAVE_STATIC_EPOCH, assigned=assigned, pending_revocation={})


def fenced(
    groups: ConsumerGroups, group: ConsumerGroup, members: Sequence[ConsumerMember], response: T, why: str
) -> CoordinatorResult[T]:
    """Remove members. If only classic members are left and the policy permits it, convert to a classic group.

    ``why`` is what each of them did, such as "left".
    """
    for member in members:
        groups.reports.info("a member was removed", group=group.group_id, member=member.member_id, why=why)
        groups.why.note_departed(group.group_id, member, group.targets.get(member.member_id))
    groups.why.note_raised(group.group_id, *(f"{member.member_id} {why}" for member in members))
    if can_downgrade(groups, group, {member.member_id for member in members}):
        decision = Decision()
        downgrade_on_leave(groups, group, members, decision)
        return decision.result(response)
    return CoordinatorResult(removal(groups, group, members), response)


def removal(groups: ConsumerGroups, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[CoordinatorRecord]:
    """Return the records that remove members and raise the group's epoch."""
    records = []
    names: Counter[str] = Counter()
    regexes: Counter[str] = Counter()
    for member in members:
        records += KEYS.member_tombstones(group.group_id, member.member_id)
        names.update(member.subscribed_topic_names)
        if member.subscribed_topic_regex:
            regexes[member.subscribed_topic_regex] += 1
    left = [regex for regex, count in group.regex_counts.items() if count > regexes[regex]]
    records += [regex_tombstone(group.group_id, regex) for regex in regexes if regex not in left]
    subscribed = {name for name, count in group.name_counts.items() if count > names[name]}
    metadata_hash = groups.metadata_hash(subscribed.union(*map(group.names_matching, left)))
    epoch = group.epoch.get() + 1
    records.append(epoch_record(group.group_id, epoch, metadata_hash))
    if len(group.members) == len(members):
        # Nothing is left to assign. With the time 0, whoever joins next is given partitions at once.
        records.append(target_metadata_record(group.group_id, epoch, 0))
    return records


def remove(groups: ConsumerGroups, group: ConsumerGroup, member: ConsumerMember, why: str) -> CoordinatorResult[None]:
    """Remove a member that did not do in time what it had to."""
    return fenced(groups, group, [member], None, why)


def await_join(groups: ConsumerGroups, group_id: str, member: ConsumerMember) -> None:
    """Start the time limit, its rebalance timeout, for a classic member that is told to join again, unless it has been told."""
    key = (JOIN_LIMIT, group_id, member.member_id)
    if not groups.timers.is_scheduled(key):
        expire = partial(_expire_classic, groups, group_id, member.member_id, "did not join again in time")
        groups.timers.schedule(key, member.rebalance_timeout_ms, expire)


def await_sync(groups: ConsumerGroups, group_id: str, member: ConsumerMember) -> None:
    """Start the time limit, its rebalance timeout, for the SyncGroup of a classic member that has joined."""
    expire = partial(_expire_classic, groups, group_id, member.member_id, "sent no SyncGroup in time")
    groups.timers.schedule((SYNC_LIMIT, group_id, member.member_id), member.rebalance_timeout_ms, expire)


def _expire_classic(groups: ConsumerGroups, group_id: str, member_id: str, why: str) -> CoordinatorResult[None]:
    group = groups.find(group_id)
    member = None if group is None else group.members.get(member_id)
    if member is None or member.classic is None:
        return NOTHING_DECIDED
    return groups.remove_member(group_id, member_id, why)
