"""The target assignment of a group: computed for all members, written for those whose target changes.

Source: ``TargetAssignmentBuilder`` and ``GroupMetadataManager.maybeUpdateTargetAssignment`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.member import NOTHING
from odradek.coordinator.group.consumer.records import target_metadata_record, target_record
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from odradek.coordinator.group.assignor.spec import Assign
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions
    from odradek.coordinator.group.consumer.topics import SubscribedTopic
    from odradek.coordinator.runtime.record import CoordinatorRecord


def update_target(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember,
    new: ConsumerMember,
    records: list[CoordinatorRecord],
) -> tuple[int, Partitions]:
    """Return the epoch of the target assignment, and the target of ``new``, which replaces ``old``.

    The target is computed first if the group's epoch is newer, at most once per ``group.consumer.assignment.interval.ms``. The
    next heartbeat of any member checks again. Raises KafkaError: UNKNOWN_SERVER_ERROR if the assignor fails.
    """
    assignment_epoch, computed_ms = group.target_metadata.get()
    now_ms = groups.clock.now_ms()
    interval_ms = groups.config_of(group.group_id).assignment_interval_ms
    is_too_early = computed_ms != 0 and interval_ms != 0 and now_ms < computed_ms + interval_ms
    if assignment_epoch >= epoch or is_too_early:
        return assignment_epoch, group.target_of(new.member_id, new.instance_id)
    members = dict(group.members.items())
    replaced = None if new.instance_id is None else group.static_members.get(new.instance_id)
    if replaced is not None and replaced != new.member_id:
        members.pop(replaced, None)
        groups.why.note_successor(group.group_id, replaced, new.member_id)
    members[new.member_id] = new
    name, assign = groups.assignor(group.preferred_assignor(old, new))
    spec = _spec(groups, group, members, new)
    targets = _assign(groups, group.group_id, epoch, name, assign, spec)
    changed = [
        target_record(group.group_id, member_id, target)
        for member_id in members
        if (target := targets.get(member_id, NOTHING)) != group.targets.get(member_id)
    ]
    groups.why.note_target(group.group_id, epoch, name, dict(group.targets.items()), spec, targets)
    records += changed
    records.append(target_metadata_record(group.group_id, epoch, now_ms))
    return epoch, targets.get(new.member_id, NOTHING)


def _spec(groups: ConsumerGroups, group: ConsumerGroup, members: dict[str, ConsumerMember], new: ConsumerMember) -> GroupSpec:
    """Return the input of the assignor."""
    topics: dict[UUID, SubscribedTopic] = {}
    # Most members of a group subscribe to the same topics.
    known: dict[frozenset[str], frozenset[UUID]] = {}
    subscriptions = {}
    for member_id, member in members.items():
        names = group.names_of(member)
        ids = known.get(names)
        if ids is None:
            found = [topic for topic in map(groups.topics.find, names) if topic is not None]
            topics.update((topic.topic_id, topic) for topic in found)
            ids = known[names] = frozenset(topic.topic_id for topic in found)
        subscriptions[member_id] = MemberSubscription(
            topic_ids=ids,
            assignment=group.target_of(member_id, new.instance_id if member is new else None),
            instance_id=member.instance_id,
            rack_id=member.rack_id,
        )
    return GroupSpec(members=subscriptions, topics=topics, is_homogeneous=_is_homogeneous(members.values()))


def _is_homogeneous(members: Collection[ConsumerMember]) -> bool:
    """Return whether all subscribe to the same names, or to one regular expression and no names, as in Kafka."""
    names = {member.subscribed_topic_names for member in members}
    regexes = {member.subscribed_topic_regex or "" for member in members}
    return len(names) == 1 and (regexes == {""} or (len(regexes) == 1 and names == {frozenset()}))


def _assign(
    groups: ConsumerGroups, group_id: str, epoch: int, name: str, assign: Assign, spec: GroupSpec
) -> dict[str, Partitions]:
    """Return the targets by member id. Topics without partitions are left out."""
    try:
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in partitions.items() if indexes}
            for member_id, partitions in assign(spec).items()
        }
    except Exception as failure:
        # A third party's assignor may raise anything. The coordinator must go on.
        reason = f"{type(failure).__name__}: {failure}"
        groups.reports.warn("a target assignment failed", group=group_id, epoch=epoch, assignor=name, error=reason)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the assignor failed for epoch {epoch}: {failure}") from failure
