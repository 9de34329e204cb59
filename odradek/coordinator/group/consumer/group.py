"""A consumer group, as read from its records. Only ``replay`` methods change it, and their changes can be rolled back.

A compacted log has only the newest record of each key. So a member's assignment may be loaded before the record of the member
that gave the partition up. The holder is the member loaded last with the partition. A former holder's record takes nothing away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from odradek.coordinator.group.consumer.member import (
    NOTHING,
    ConsumerGroupState,
    ConsumerMember,
    Partitions,
    group_tombstones,
)
from odradek.coordinator.group.modern_group import ModernGroup, adjust_counts
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue
from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupRegularExpressionKey
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from odradek.coordinator.group.consumer.member import OwnedEpochs
    from odradek.coordinator.runtime.result import CoordinatorRecord
    from odradek.coordinator.runtime.timeline import SnapshotRegistry
    from odradek.protocol.coordinator_records.consumer_groups import (
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupPartitionMetadataValue,
        ConsumerGroupRegularExpressionValue,
        ConsumerGroupTargetAssignmentMemberValue,
    )

GROUP_TYPE: Final = "consumer"


class ConsumerGroup(ModernGroup[ConsumerMember, Partitions]):
    """The state of one consumer group. Loop thread only.

    Mappings: ``members`` by id, ``static_members`` from instance id to member id, ``targets`` from member id to target
    assignment, ``holders`` from partition to member id. ``name_counts``, ``regex_counts`` and ``assignor_counts`` count the
    members that subscribe to a topic name or a regular expression, or prefer an assignor. ``regexes`` holds the resolved
    expressions.
    """

    __slots__ = (
        "assignor_counts",
        "has_partition_metadata",
        "holders",
        "name_counts",
        "regex_counts",
        "regexes",
        "static_members",
    )

    def __init__(self, snapshots: SnapshotRegistry, group_id: str) -> None:
        super().__init__(GROUP_TYPE, snapshots, group_id)
        self.static_members: TimelineDict[str, str] = TimelineDict(snapshots)
        self.holders: TimelineDict[tuple[UUID, int], str] = TimelineDict(snapshots)
        self.name_counts: TimelineDict[str, int] = TimelineDict(snapshots)
        self.regex_counts: TimelineDict[str, int] = TimelineDict(snapshots)
        self.assignor_counts: TimelineDict[str, int] = TimelineDict(snapshots)
        self.regexes: TimelineDict[str, ConsumerGroupRegularExpressionValue] = TimelineDict(snapshots)
        self.has_partition_metadata = TimelineValue(snapshots, False)

    # ---------------------------------------------------------------------------------------------------------- state

    @property
    def is_at_rest(self) -> bool:
        """Return whether a heartbeat without news would change nothing in the group. HOT."""
        return not self.is_stale and not self.regex_counts and self.assignment_epoch >= self.epoch.get()

    def subscribed_names(self) -> set[str]:
        """Return the topics that members subscribe to, by name or by a resolved regular expression."""
        names = set(self.name_counts)
        for regex in self.regex_counts:
            names.update(self.names_matching(regex))
        return names

    def names_matching(self, regex: str) -> frozenset[str]:
        """Return the topics of a regular expression; empty until it is resolved."""
        resolved = self.regexes.get(regex)
        return frozenset() if resolved is None else frozenset(resolved.topics)

    def names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that a member subscribes to."""
        regex = member.subscribed_topic_regex
        return member.subscribed_topic_names | self.names_matching(regex) if regex else member.subscribed_topic_names

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """Return a member's target, or the target of the static member it replaces."""
        previous = None if instance_id is None else self.static_members.get(instance_id)
        return self.targets.get(member_id if previous is None else previous) or NOTHING

    def state_at(self, at_offset: int) -> ConsumerGroupState:
        """Return the state at an offset of the log."""
        members = self.members.items_at(at_offset)
        assignment_epoch, _ = self.target_metadata.get_at(at_offset)
        return _state(self.epoch.get_at(at_offset), assignment_epoch, [member for _, member in members])

    # --------------------------------------------------------------------------------------------- part of interface.Group

    @property
    def state(self) -> str:
        """Return the name of the group's state."""
        return _state(self.epoch.get(), self.assignment_epoch, self.members.values()).value

    def wrong_epoch_error(self, member: ConsumerMember) -> ErrorCode:
        """Return ILLEGAL_GENERATION for a member of the classic protocol, which knows no other error."""
        return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION

    def permits_late_commit(self, member_id: str, generation: int, partitions: Iterable[tuple[UUID | None, int]]) -> bool:
        """Return whether the member has had all partitions since ``generation`` (KIP-1251)."""
        member = self.members.get(member_id)
        if member is None or generation > member.member_epoch:
            return False
        for topic_id, index in partitions:
            epoch = member.assignment_epoch(topic_id, index)
            if epoch is None or generation < epoch:
                return False
        return True

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return topic in self.name_counts or any(topic in self.names_matching(regex) for regex in self.regex_counts)

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group."""
        return group_tombstones(self.group_id, list(self.members), list(self.regexes))

    # --------------------------------------------------------------------------------------------------------- replay

    def replay_member(self, member: ConsumerMember) -> None:
        """Add or update a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)
        if old is None or old.assigned != member.assigned or old.pending_revocation != member.pending_revocation:
            if old is not None:
                self._release(member.member_id, old.assigned, old.pending_revocation)
            for owned in (member.assigned, member.pending_revocation):
                for topic_id, indexes in owned.items():
                    for index in indexes:
                        self.holders[topic_id, index] = member.member_id
        if member.instance_id is not None and self.static_members.get(member.instance_id) != member.member_id:
            self.static_members[member.instance_id] = member.member_id

    def replay_removed(self, member_id: str) -> None:
        """Remove a member."""
        old = self.members.pop(member_id)
        if old is None:
            return
        self._count(old, None)
        self._release(member_id, old.assigned, old.pending_revocation)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def target_of_record(self, value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
        """Return the target assignment of a record."""
        return {topic_id: frozenset(indexes) for topic_id, indexes in value.topic_partitions}

    def replay_other(
        self,
        key: ConsumerGroupRegularExpressionKey | ConsumerGroupPartitionMetadataKey,
        value: ConsumerGroupRegularExpressionValue | ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        """Set or remove a resolved regular expression, or note a record of topics' metadata that a former Kafka wrote."""
        if isinstance(key, ConsumerGroupRegularExpressionKey):
            if value is None:
                self.regexes.pop(key.regular_expression)
            else:
                self.regexes[key.regular_expression] = cast("ConsumerGroupRegularExpressionValue", value)
        elif self.has_partition_metadata.get() != (value is not None):
            self.has_partition_metadata.set(value is not None)

    def _release(self, member_id: str, *owned: OwnedEpochs) -> None:
        for each in owned:
            for topic_id, indexes in each.items():
                for index in indexes:
                    if self.holders.get((topic_id, index)) == member_id:
                        del self.holders[topic_id, index]

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        names = (frozenset() if each is None else each.subscribed_topic_names for each in (old, new))
        adjust_counts(self.name_counts, *names)
        regexes = (frozenset({each.subscribed_topic_regex} - {None, ""} if each else ()) for each in (old, new))
        adjust_counts(self.regex_counts, *regexes)
        assignors = (frozenset({each.server_assignor} - {None} if each else ()) for each in (old, new))
        adjust_counts(self.assignor_counts, *assignors)

    def preferred_assignor(self, old: ConsumerMember | None, new: ConsumerMember | None) -> str | None:
        """Return the assignor most members prefer once ``old`` has become ``new``; on a tie, the first by name."""
        counts = dict(self.assignor_counts.items())
        for member, change in ((old, -1), (new, 1)):
            if member is not None and member.server_assignor is not None:
                counts[member.server_assignor] = counts.get(member.server_assignor, 0) + change
        found = [name for name, count in counts.items() if count > 0]
        return min(found, key=lambda name: (-counts[name], name), default=None)

    def member_or_new(self, member_id: str) -> ConsumerMember:
        """Return the member, or a blank one before its first heartbeat."""
        return self.members.get(member_id) or ConsumerMember(member_id=member_id)


def renamed(member: ConsumerMember, member_id: str) -> ConsumerMember:
    """Return a returning static member under its new id."""
    return replace(member, member_id=member_id, member_epoch=0, previous_member_epoch=0)


def _state(epoch: int, assignment_epoch: int, members: Iterable[ConsumerMember]) -> ConsumerGroupState:
    members = list(members)
    if not members:
        return ConsumerGroupState.EMPTY
    if epoch > assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(member.is_reconciled_to(assignment_epoch) for member in members):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING
