"""Checks of a StreamsGroupHeartbeat: its form, its group, its member, its epoch and its tasks.

Epochs and instance ids are those of the consumer protocol (``consumer.validation``). The topology comes with epoch 0 only.

Source: ``GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid`` and ``GroupMetadataManager`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.modern_group import ensure_valid
from odradek.coordinator.group.streams.member import (
    KEYS,
    StreamsGroupMember,
    assignment_record,
    member_record,
    target_record,
)
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from odradek.coordinator.group.streams.configured_topology import ConfiguredTopology
    from odradek.coordinator.group.streams.group import StreamsGroup
    from odradek.coordinator.group.streams.groups import StreamsGroups
    from odradek.coordinator.runtime.result import CoordinatorRecord
    from odradek.protocol.message_types.streams_group_heartbeat import (
        RequestTaskIds,
        StreamsGroupHeartbeatRequest,
        Topology,
    )


# A topology of this size takes 50 ms to configure. Kafka has no limit; its own coordinator has a thread.
_MOST_SUBTOPOLOGIES: Final = 500
_MOST_TOPICS: Final = 2_000


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Check the form of the request. Raises KafkaError: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY."""
    epoch = request.member_epoch
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if request.topology is not None:
        has_regex = any(subtopology.source_topic_regex for subtopology in request.topology.subtopologies)
        ensure_valid(not has_regex, "Regular expressions for source topics are not supported yet.")
    ensure_valid(request.member_id.strip(), "MemberId can't be empty.")
    ensure_valid(request.group_id.strip(), "GroupId can't be empty.")
    ensure_valid(request.instance_id is None or request.instance_id.strip(), "InstanceId can't be empty.")
    ensure_valid(request.rack_id is None or request.rack_id.strip(), "RackId can't be empty.")
    if epoch == 0:
        ensure_valid(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        for name, given in zip(("ActiveTasks", "StandbyTasks", "WarmupTasks"), tasks, strict=True):
            ensure_valid(given is not None and not given, f"{name} must be empty when (re-)joining.")
        ensure_valid(request.topology is not None, "Topology must be non-null when (re-)joining.")
        _check_topology(request.topology)
    elif epoch == LEAVE_STATIC_EPOCH:
        ensure_valid(request.instance_id is not None, "InstanceId can't be null.")
    else:
        ensure_valid(epoch > LEAVE_STATIC_EPOCH, f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    has_all = all(given is not None for given in tasks)
    ensure_valid(has_all or tasks == (None, None, None), "If one task-type is non-null, all must be non-null.")
    ensure_valid(epoch == 0 or request.topology is None, "Topology can only be provided when (re-)joining.")


def _check_topology(topology: Topology | None) -> None:
    subtopologies = () if topology is None else topology.subtopologies
    topics = sum(
        len(each.source_topics)
        + len(each.repartition_sink_topics)
        + len(each.repartition_source_topics)
        + len(each.state_changelog_topics)
        for each in subtopologies
    )
    if len(subtopologies) > _MOST_SUBTOPOLOGIES or topics > _MOST_TOPICS:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"A topology has at most {_MOST_SUBTOPOLOGIES} subtopologies and names {_MOST_TOPICS} topics, not "
            f"{len(subtopologies)} and {topics}.",
        )
    for subtopology in subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to {topic.partitions}.",
                )


def group_of(groups: StreamsGroups, request: StreamsGroupHeartbeatRequest, records: list[CoordinatorRecord]) -> StreamsGroup:
    """Return the group of a heartbeat. A joining member makes a new one, also in place of an empty classic group.

    KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED.
    """
    if request.member_epoch != 0:
        return groups.require(request.group_id)
    group = groups.find(request.group_id)
    if group is None:
        other = groups.registry.find(request.group_id)
        if isinstance(other, ClassicGroup) and other.is_empty:
            records += other.tombstones()
        elif other is not None:
            raise groups.not_found(request.group_id)
        group = groups.new_group(request.group_id)
    max_size = groups.config_of(request.group_id).max_size
    is_known = request.member_id in group.members or (request.instance_id or "") in group.static_members
    if len(group.members) >= max_size and not is_known:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"The streams group has reached its maximum capacity of {max_size} members."
        )
    return group


def known_member(
    groups: StreamsGroups, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, records: list[CoordinatorRecord]
) -> StreamsGroupMember:
    """Return the member before this heartbeat. A static member that is back takes over its predecessor's tasks.

    KafkaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID.
    """
    is_joining = request.member_epoch == 0
    if is_joining and request.instance_id is not None:
        holder = _holder(group, request.instance_id)
        if holder is not None:
            return _replaced(groups, group, holder, request.member_id, records)
    if is_joining:
        return group.members.get(request.member_id) or StreamsGroupMember(member_id=request.member_id, process_id="")
    member = leaving_member(group, request)
    _check_epoch(member, request)
    return member


def leaving_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
    """Return the member of a request that is not joining. KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        if member is None:
            reason = f"Member {request.member_id} is not a member of group {group.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, reason)
        return member
    holder = _holder(group, request.instance_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    if holder.member_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member {holder.member_id}.",
        )
    return holder


def _holder(group: StreamsGroup, instance_id: str) -> StreamsGroupMember | None:
    holder_id = group.static_members.get(instance_id)
    return None if holder_id is None else group.members.get(holder_id)


def _check_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> None:
    epoch = request.member_epoch
    if epoch == member.member_epoch:
        return
    # A lost answer: the member has not heard of its new epoch.
    if epoch == member.previous_member_epoch < member.member_epoch and _has_all(member, request):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member is in epoch {member.member_epoch}, not {epoch}: it must give up its tasks and join again",
    )


def _has_all(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> bool:
    """Return whether all the tasks that the member says it owns are assigned to it."""
    assigned = member.assigned
    return (
        _contains({subtopology: own.keys() for subtopology, own in assigned.active.items()}, request.active_tasks)
        and _contains(assigned.standby, request.standby_tasks)
        and _contains(assigned.warmup, request.warmup_tasks)
    )


def _contains(assigned: Mapping[str, AbstractSet[int]], owned: Sequence[RequestTaskIds] | None) -> bool:
    if owned is None:
        return False
    return all(each.subtopology_id in assigned and set(each.partitions) <= assigned[each.subtopology_id] for each in owned)


def _replaced(
    groups: StreamsGroups,
    group: StreamsGroup,
    holder: StreamsGroupMember,
    member_id: str,
    records: list[CoordinatorRecord],
) -> StreamsGroupMember:
    """Return a static member under its new id, with everything of ``holder``, which is removed."""
    if holder.member_epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {holder.instance_id} cannot join the group because the instance id is "
            f"owned by {holder.member_id} member.",
        )
    member = replace(holder, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    records += KEYS.member_tombstones(group.group_id, holder.member_id)
    records.append(member_record(group.group_id, member))
    records.append(target_record(group.group_id, member_id, group.target_of(holder.member_id, None)))
    records.append(assignment_record(group.group_id, member))
    groups.reports.info(
        "a static member is back", group=group.group_id, instance_id=holder.instance_id, member=member_id, was=holder.member_id
    )
    return member


def check_tasks(configured: ConfiguredTopology, request: StreamsGroupHeartbeatRequest) -> None:
    """Check that the tasks that the member says it owns exist. KafkaError: INVALID_REQUEST."""
    for given in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for task in given or ():
            subtopology = (configured.configured or {}).get(task.subtopology_id)
            if subtopology is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Subtopology {task.subtopology_id} does not exist in the topology.")
            for partition in task.partitions:
                ensure_valid(
                    0 <= partition < subtopology.task_count,
                    f"Task {partition} for subtopology {task.subtopology_id} is invalid. Number of tasks for this subtopology: "
                    f"{subtopology.task_count}",
                )
