"""Removes members: on request, when their session ends, or when they do not give tasks up in time.

The next heartbeat of another member computes the target assignment without the removed member.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  the type of a compiled named tuple's field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.streams.configured_topology import (
    ConfiguredInternalTopic,  # noqa: TC001  the type of a compiled named tuple's field
)
from odradek.coordinator.group.streams.member import (
    KEYS,
    assignment_record,
    epoch_record,
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
        *KEYS.member_tombstones(group.group_id, member.member_id),
        epoch_record(group.group_id, epoch, group.metadata_hash.get(), group.basis.get()),
    ]
    if len(group.members) == 1:
        # Nothing is left to assign. With the time 0, the next member to join is not too early.
        records.append(target_metadata_record(group.group_id, epoch, 0))
    return CoordinatorResult(records, response)


def remove(groups: StreamsGroups, group: StreamsGroup, member: StreamsGroupMember, why: str) -> CoordinatorResult[None]:
    """Remove a member that did not do in time what it had to."""
    return _removed(groups, group, member, None, why)
