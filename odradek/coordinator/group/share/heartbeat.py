"""ShareGroupHeartbeat: a member joins, stays or leaves, reports its subscription, and gets its assignment.

    1. the member is added or updated; a change that concerns the group raises its epoch
    2. the target assignment is computed, if it is older than the group's epoch
    3. the member takes its target at once
    4. partitions of subscribed topics whose state nobody has asked for become initializing

The answer has the assignment if the heartbeat is a full one, or changes the member's partitions. The caller asks the share
coordinator for the states of step 4. When they exist, the next heartbeat of any member raises the group's epoch.

    epoch 0                          the member joins, or joins again, with its full subscription
    the member's epoch, or the last  a heartbeat; with the last epoch, one after a lost answer
    -1                               the member leaves
    any other                        FENCED_MEMBER_EPOCH: the member joins again

Source: ``GroupMetadataManager.shareGroupHeartbeat`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.coordinator.group.assignor.simple import SIMPLE, assign_simple
from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.member import LEAVE_EPOCH, MemberState
from odradek.coordinator.group.modern_group import ensure_valid, unknown_member
from odradek.coordinator.group.share.member import (
    KEYS,
    NOTHING,
    assignment_record,
    epoch_record,
    member_record,
    target_metadata_record,
    target_record,
)
from odradek.coordinator.group.share.state_partitions import (
    SharePartitionStates,
    first_offsets,
    uninitialized,
    with_initializing,
)
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.group.config import MemberContext
    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.group.consumer.topics import SubscribedTopic
    from odradek.coordinator.group.share.group import ShareGroup
    from odradek.coordinator.group.share.groups import ShareGroups
    from odradek.coordinator.group.share.member import ShareGroupMember
    from odradek.coordinator.runtime.result import CoordinatorRecord

T = TypeVar("T")


class HeartbeatOutcome(NamedTuple):
    """The response, and the states that the share coordinator is to initialize."""

    response: ShareGroupHeartbeatResponse
    states: SharePartitionStates | None = None


def heartbeat(
    groups: ShareGroups, context: MemberContext, request: ShareGroupHeartbeatRequest
) -> CoordinatorResult[HeartbeatOutcome]:
    """Decide on a ShareGroupHeartbeat. Raises KafkaError for every refusal. HOT."""
    check_request(request)
    if request.member_epoch == LEAVE_EPOCH:
        return _leave(groups, request)
    is_joining = request.member_epoch == 0
    group = groups.find_or_new(request.group_id) if is_joining else groups.require(request.group_id)
    config = groups.config_of(request.group_id)
    if len(group.members) >= config.max_size and request.member_id not in group.members:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group is full: it has {config.max_size} members")
    old = _known_member(group, request)
    member = _updated(old, context, request)
    records: list[CoordinatorRecord] = []
    epoch, is_raised = _note(groups, group, old, member, records)
    assignment_epoch, target = _update_target(groups, group, epoch, member, records)
    member = _reconciled(groups, group, member, assignment_epoch, target, records, is_raised=is_raised)
    groups.heartbeats += 1
    groups.sessions.touch(request.group_id, member.member_id, config.session_timeout_ms)
    has_assignment = is_joining or request.subscribed_topic_names is not None or member.assigned != old.assigned
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        assignment=_assignment_of(member) if has_assignment else None,
    )
    states = _to_initialize(groups, group, epoch, old, member, records)
    return CoordinatorResult(records, HeartbeatOutcome(response, states))


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Check the form of the request. Raises KafkaError: INVALID_REQUEST."""
    ensure_valid(request.member_id.strip(), "the member id is missing")
    ensure_valid(request.group_id.strip(), "the group id is missing")
    ensure_valid(request.rack_id is None or request.rack_id.strip(), "the rack id must be null or not blank")
    if request.member_epoch == 0:
        ensure_valid(request.subscribed_topic_names, "a joining member must subscribe to topics")
    else:
        ensure_valid(request.member_epoch >= LEAVE_EPOCH, f"{request.member_epoch} is not a member epoch")


def _known_member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareGroupMember:
    """Return the member before this heartbeat. KafkaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH."""
    member = group.members.get(request.member_id)
    if member is None:
        if request.member_epoch != 0:
            unknown_member(group, request.member_id)
        return group.member_or_new(request.member_id)
    epoch = request.member_epoch
    is_lost_answer = epoch < member.member_epoch and epoch == member.previous_member_epoch
    if epoch not in (0, member.member_epoch) and not is_lost_answer:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the member is in epoch {member.member_epoch}, not {epoch}: it must give up its partitions and join again",
        )
    return member


def _updated(old: ShareGroupMember, context: MemberContext, request: ShareGroupHeartbeatRequest) -> ShareGroupMember:
    """Return the member updated from the request; the same object if nothing changed. HOT."""
    names = request.subscribed_topic_names
    if (
        old.client_id == context.client_id
        and old.client_host == context.client_host
        and request.rack_id in (None, old.rack_id)
        and (names is None or old.subscribed_topic_names == frozenset(names))
    ):
        return old
    return replace(
        old,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=old.subscribed_topic_names if names is None else frozenset(names),
    )


def _note(
    groups: ShareGroups,
    group: ShareGroup,
    old: ShareGroupMember,
    member: ShareGroupMember,
    records: list[CoordinatorRecord],
) -> tuple[int, bool]:
    """Write the member if it is new or changed. Return the group's epoch, and whether it was raised."""
    must_raise = False
    if member is not old:
        records.append(member_record(group.group_id, member))
        must_raise = member.subscribed_topic_names != old.subscribed_topic_names
    epoch = group.epoch.get()
    if group.assignment_epoch >= epoch:
        must_raise = must_raise or group.has_unassigned_partitions()
    if not must_raise and not group.is_stale:
        return epoch, False
    metadata_hash = groups.metadata_hash(group.names_after(old, member))
    must_raise = must_raise or metadata_hash != group.metadata_hash.get()
    if must_raise:
        epoch += 1
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
        groups.epochs_raised += 1
    group.fresh_epoch = epoch
    return epoch, must_raise


def _update_target(
    groups: ShareGroups, group: ShareGroup, epoch: int, member: ShareGroupMember, records: list[CoordinatorRecord]
) -> tuple[int, Partitions]:
    """Return the epoch of the target assignment, and the member's target.

    The target is computed first if the group's epoch is newer, at most once per ``share.assignment.interval.ms``.
    """
    assignment_epoch, computed_ms = group.target_metadata.get()
    now_ms = groups.clock.now_ms()
    interval_ms = groups.config_of(group.group_id).assignment_interval_ms
    is_too_early = computed_ms != 0 and interval_ms != 0 and now_ms < computed_ms + interval_ms
    if assignment_epoch >= epoch or is_too_early:
        return assignment_epoch, group.target_of(member.member_id)
    members = {**dict(group.members.items()), member.member_id: member}
    given = assign_simple(_spec(groups, group, members), group.states.assignable())
    targets = {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in partitions.items() if indexes}
        for member_id, partitions in given.items()
    }
    records += [
        target_record(group.group_id, member_id, targets.get(member_id, NOTHING))
        for member_id in members
        if targets.get(member_id, NOTHING) != group.targets.get(member_id)
    ]
    records.append(target_metadata_record(group.group_id, epoch, now_ms))
    groups.reports.info(
        "a target assignment was computed", group=group.group_id, epoch=epoch, assignor=SIMPLE, members=len(members)
    )
    return epoch, targets.get(member.member_id, NOTHING)


def _spec(groups: ShareGroups, group: ShareGroup, members: dict[str, ShareGroupMember]) -> GroupSpec:
    """Return the input of the assignor."""
    topics: dict[UUID, SubscribedTopic] = {}
    subscriptions = {}
    for member_id, member in members.items():
        found = [topic for topic in map(groups.topics.find, member.subscribed_topic_names) if topic is not None]
        topics.update((topic.topic_id, topic) for topic in found)
        subscriptions[member_id] = MemberSubscription(
            topic_ids=frozenset(topic.topic_id for topic in found),
            assignment=group.target_of(member_id),
            rack_id=member.rack_id,
        )
    is_homogeneous = len({member.subscribed_topic_names for member in members.values()}) == 1
    return GroupSpec(members=subscriptions, topics=topics, is_homogeneous=is_homogeneous)


def _reconciled(
    groups: ShareGroups,
    group: ShareGroup,
    member: ShareGroupMember,
    assignment_epoch: int,
    target: Partitions,
    records: list[CoordinatorRecord],
    *,
    is_raised: bool,
) -> ShareGroupMember:
    """Return the member with those partitions of its target that belong to topics it subscribes to."""
    is_at_target = member.state is MemberState.STABLE and member.member_epoch == assignment_epoch
    if is_at_target and not is_raised:
        return member
    names = member.subscribed_topic_names
    assigned = {topic_id: indexes for topic_id, indexes in target.items() if groups.topics.name_of(topic_id) in names}
    after = replace(member, assigned=assigned)
    if member.member_epoch != assignment_epoch:
        after = replace(
            after,
            state=MemberState.STABLE,
            member_epoch=assignment_epoch,
            previous_member_epoch=member.member_epoch,
        )
    if after != member:
        records.append(assignment_record(group.group_id, after))
    return after


def _assignment_of(member: ShareGroupMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in member.assigned.items()
        ]
    )


def _to_initialize(
    groups: ShareGroups,
    group: ShareGroup,
    epoch: int,
    old: ShareGroupMember,
    member: ShareGroupMember,
    records: list[CoordinatorRecord],
) -> SharePartitionStates | None:
    """Return the states to initialize, if any, and note their partitions as initializing."""
    names = set(group.name_counts) if member is old else group.names_after(old, member)
    retry_ms = groups.config_of(group.group_id).initialize_retry_interval_ms
    sets = group.states
    asked = uninitialized(sets, names, groups.topics, groups.clock.now_ms(), retry_ms)
    if not asked:
        return None
    records.append(groups.states_record(group, with_initializing(sets, asked)))
    return first_offsets(sets, asked, epoch)


# --------------------------------------------------------------------------------------------------------------- removal


def _leave(groups: ShareGroups, request: ShareGroupHeartbeatRequest) -> CoordinatorResult[HeartbeatOutcome]:
    group = groups.require(request.group_id)
    member = group.members.get(request.member_id)
    if member is None:
        unknown_member(group, request.member_id)
    response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return _removed(groups, group, member, HeartbeatOutcome(response), "left")


def remove(groups: ShareGroups, group: ShareGroup, member: ShareGroupMember, why: str) -> CoordinatorResult[None]:
    """Remove a member that did not do in time what it had to."""
    return _removed(groups, group, member, None, why)


def _removed(groups: ShareGroups, group: ShareGroup, member: ShareGroupMember, response: T, why: str) -> CoordinatorResult[T]:
    groups.reports.info("a member was removed", group=group.group_id, member=member.member_id, why=why)
    metadata_hash = groups.metadata_hash(group.names_after(member, None))
    epoch = group.epoch.get() + 1
    records = [*KEYS.member_tombstones(group.group_id, member.member_id), epoch_record(group.group_id, epoch, metadata_hash)]
    if len(group.members) == 1:
        # Nothing is left to assign. With the time 0, whoever joins next is given partitions at once.
        records.append(target_metadata_record(group.group_id, epoch, 0))
    return CoordinatorResult(records, response)
