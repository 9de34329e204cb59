"""Checks of a ConsumerGroupHeartbeat: its form, its group, its member, and its epoch.

    epoch 0              the member joins, or joins again, with its full subscription; a known member keeps its partitions
    the member's epoch   a heartbeat
    its previous epoch   a heartbeat after a lost answer, if it owns no more than its assigned partitions
    any other            FENCED_MEMBER_EPOCH: the member gives up its partitions and joins again
    -1, -2               the member leaves: for good, or as a static member for a while

An instance id belongs to one member at a time. Another member may take it over once its holder has left with -2. Before that the
answer is UNRELEASED_INSTANCE_ID. Afterwards the former holder gets FENCED_INSTANCE_ID.

Source: ``GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid``, ``GroupMetadataManager`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.consumer.group import renamed
from odradek.coordinator.group.consumer.member import (
    KEYS,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    assignment_record,
    member_record,
    target_record,
)
from odradek.coordinator.group.modern_group import ensure_valid, unknown_member
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.coordinator.runtime.result import CoordinatorRecord
    from odradek.protocol.message_types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions

# From this version on, the client makes the member's id (KIP-1082).
_FIRST_VERSION_WITH_CLIENT_IDS: Final = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Check the form of the request. Raises KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if version >= _FIRST_VERSION_WITH_CLIENT_IDS or epoch > 0 or epoch == LEAVE_EPOCH:
        ensure_valid(request.member_id.strip(), "the member id is missing")
    ensure_valid(request.group_id.strip(), "the group id is missing")
    ensure_valid(request.instance_id is None or request.instance_id.strip(), "the instance id must be null or not blank")
    ensure_valid(request.rack_id is None or request.rack_id.strip(), "the rack id must be null or not blank")
    if epoch == 0:
        ensure_valid(request.rebalance_timeout_ms != -1, "a joining member must give its rebalance timeout")
        owns_nothing = request.topic_partitions is not None and not request.topic_partitions
        ensure_valid(owns_nothing, "a joining member must give an empty list of owned partitions")
        ensure_valid(
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
            "a joining member must subscribe to topics or a regular expression",
        )
    elif epoch == LEAVE_STATIC_EPOCH:
        ensure_valid(request.instance_id is not None, "a member without an instance id cannot leave temporarily")
    else:
        ensure_valid(epoch > LEAVE_STATIC_EPOCH, f"{epoch} is not a member epoch")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {request.server_assignor}; assignors: {', '.join(assignors)}",
        )


def check_room(group: ConsumerGroup, member_id: str, instance_id: str | None, max_size: int) -> None:
    """Raise KafkaError(GROUP_MAX_SIZE_REACHED) for a new member of a full group. A known instance id is no new member."""
    is_known = member_id in group.members or (instance_id is not None and instance_id in group.static_members)
    if len(group.members) >= max_size and not is_known:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group is full: it has {max_size} members")


def check_epoch(member: ConsumerMember, epoch: int, owned: Sequence[RequestTopicPartitions] | None) -> None:
    """Raise KafkaError(FENCED_MEMBER_EPOCH) for an epoch that is not one of the member's."""
    if epoch in (0, member.member_epoch):
        return
    if epoch == member.previous_member_epoch < member.member_epoch and owned is not None and _has_all(member, owned):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member is in epoch {member.member_epoch}, not {epoch}: it must give up its partitions and join again",
    )


def _has_all(member: ConsumerMember, owned: Sequence[RequestTopicPartitions]) -> bool:
    """Return whether all the partitions the member owns are assigned to it."""
    for topic_id, indexes in owned:
        assigned = None if topic_id is None else member.assigned.get(topic_id)
        if assigned is None or not assigned.keys() >= set(indexes):
            return False
    return True


def dynamic_member(group: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member of a heartbeat without an instance id; a new one if it joins.

    KafkaError: UNKNOWN_MEMBER_ID, and the errors of ``check_epoch``.
    """
    member = group.members.get(member_id)
    if member is None:
        if request.member_epoch != 0:
            unknown_member(group, member_id)
        return group.member_or_new(member_id)
    check_epoch(member, request.member_epoch, request.topic_partitions)
    return member


def static_member(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    member_id: str,
    request: ConsumerGroupHeartbeatRequest,
    records: list[CoordinatorRecord],
) -> ConsumerMember:
    """Return the member of a heartbeat with an instance id. One that replaces a predecessor takes over its partitions."""
    instance_id = request.instance_id or ""
    holder_id = group.static_members.get(instance_id)
    holder = None if holder_id is None else group.members.get(holder_id)
    if request.member_epoch != 0:
        member = instance_holder(group, member_id, instance_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return member
    if holder is None:
        return group.member_or_new(member_id)
    if holder.classic is None and holder.member_epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"instance id {instance_id} is member {holder.member_id}'s, which has not left: {member_id} cannot use it",
        )
    return replaced(groups, group, holder, member_id, records)


def replaced(
    groups: ConsumerGroups, group: ConsumerGroup, holder: ConsumerMember, member_id: str, records: list[CoordinatorRecord]
) -> ConsumerMember:
    """Return a static member under its new id, with everything of ``holder``, which is removed."""
    member = renamed(holder, member_id)
    records += KEYS.member_tombstones(group.group_id, holder.member_id)
    records.append(member_record(group.group_id, member))
    records.append(target_record(group.group_id, member_id, group.target_of(holder.member_id, None)))
    records.append(assignment_record(group.group_id, member))
    groups.reports.info(
        "a static member is back", group=group.group_id, instance_id=holder.instance_id, member=member_id, was=holder.member_id
    )
    return member


def instance_holder(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """Return the member of an instance id. KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    holder_id = group.static_members.get(instance_id)
    holder = None if holder_id is None else group.members.get(holder_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has instance id {instance_id}")
    if holder.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance id {instance_id} is member {holder.member_id}'s now, not {member_id}'s",
        )
    return holder
