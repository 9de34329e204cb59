"""Removes members: on request, when their session ends, or when they do not give tasks up in time.

The next heartbeat of another member computes the target assignment without the removed member.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  the type of a compiled named tuple's field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.group.streams.configured_topology import (
    ConfiguredInternalTopic,  # noqa: TC001  the type of a compiled named tuple's field
)
from odradek.coordinator.group.streams.member import (
    MemberState,
    assignment_record,
    epoch_record,
    member_tombstones,
    target_metadata_record,
)
from odradek.coordinator.group.streams.validation import leaving_member
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.message_types.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from odradek.coordinator.group.streams.group import StreamsGroup
    from odradek.coordinator.group.streams.groups import StreamsGroups
    from odradek.coordinator.group.streams.member import StreamsGroupMember

T = TypeVar("T")


class HeartbeatOutcome(NamedTuple):
    """The response to a heartbeat, and the internal topics to create."""

    response: StreamsGroupHeartbeatResponse
    missing: Sequence[ConfiguredInternalTopic] = ()


def leave_group(groups: StreamsGroups, request: StreamsGroupHeartbeatRequest) -> CoordinatorResult[HeartbeatOutcome]:
    """Decide on a heartbeat of epoch -1 or -2. KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    group = groups.require(request.group_id)
    if request.shutdown_application:
        note_shutdown(groups, group, request.member_id)
    response = StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    outcome = HeartbeatOutcome(response)
    member = leaving_member(group, request)
    if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        groups.reports.info("a static member left temporarily", group=group.group_id, member=member.member_id)
        return CoordinatorResult([assignment_record(group.group_id, member.departed_for_a_while())], outcome)
    return _removed(groups, group, member, outcome, "left")


def note_shutdown(groups: StreamsGroups, group: StreamsGroup, member_id: str) -> None:
    """Note that a member asks all members to shut down. They do so with their next heartbeats."""
    if group.shutdown_member_id is None:
        groups.reports.info("an application is to shut down", group=group.group_id, member=member_id)
        group.shutdown_member_id = member_id


def _removed(
    groups: StreamsGroups, group: StreamsGroup, member: StreamsGroupMember, response: T, why: str
) -> CoordinatorResult[T]:
    groups.reports.info("a member was removed", group=group.group_id, member=member.member_id, why=why)
    epoch = group.epoch.get() + 1
    records = [
        *member_tombstones(group.group_id, member.member_id),
        epoch_record(group.group_id, epoch, group.metadata_hash.get(), group.basis.get()),
    ]
    if len(group.members) == 1:
        # Nothing is left to assign. With the time 0, the next member to join is not too early.
        records.append(target_metadata_record(group.group_id, epoch, 0))
    return CoordinatorResult(records, response)


def expire_session(groups: StreamsGroups, group_id: str, member_id: str) -> CoordinatorResult[None]:
    """Remove a member that was silent for its session timeout."""
    group = groups.find(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return NOTHING_DECIDED
    groups.sessions_expired += 1
    return _removed(groups, group, member, None, "was silent for its session timeout")


def begin_revocation(groups: StreamsGroups, group_id: str, member: StreamsGroupMember) -> None:
    """Start the time limit, its rebalance timeout, for a member to give up tasks."""
    key = ("streams-revocation", group_id, member.member_id)
    expire = partial(_expire_revocation, groups, group_id, member.member_id, member.member_epoch)
    groups.timers.schedule(key, member.rebalance_timeout_ms, expire)


def _expire_revocation(groups: StreamsGroups, group_id: str, member_id: str, epoch: int) -> CoordinatorResult[None]:
    group = groups.find(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None or member.state is not MemberState.UNREVOKED_TASKS:
        return NOTHING_DECIDED
    if member.member_epoch != epoch:
        # The decision that began this time limit was rolled back, and had ended the time limit of the present epoch.
        begin_revocation(groups, group_id, member)
        return NOTHING_DECIDED
    return _removed(groups, group, member, None, "did not give up tasks in time")


def begin_sessions(groups: StreamsGroups) -> None:
    """Begin every member's session after a load, and the time limit of members with tasks to give up."""
    for group in groups.each():
        timeout_ms = groups.config_of(group.group_id).session_timeout_ms
        for member in group.members.values():
            groups.sessions.touch(group.group_id, member.member_id, timeout_ms)
            if member.state is MemberState.UNREVOKED_TASKS:
                begin_revocation(groups, group.group_id, member)
