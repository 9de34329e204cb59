"""A share group as its records in ``__consumer_offsets`` tell it: which member got or lost which partition, and why.

Several members may have a partition, and none has to give one up before another gets it. So a change is one member's: it gets a
partition from nobody, or loses it to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from odradek.coordinator.group.modern_group import INITIAL_EPOCH
from odradek.protocol.coordinator_records.share_groups import (
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.protocol.coordinator_records import ShareGroupKey, ShareGroupValue

Partition = tuple["UUID", int]


@dataclass(slots=True)
class ShareChange:
    """A partition that a member gets or loses."""

    partition: Partition
    member_id: str
    is_got: bool
    reason: str


@dataclass(slots=True)
class ShareExplanation:
    """The explanation of a target assignment. ``at_ms`` is since the epoch. ``moves`` is None if the log lacks the one before."""

    epoch: int
    at_ms: int
    changes: list[str]
    moves: list[ShareChange] | None


@dataclass(slots=True)
class _Assignment:
    """The partitions by member, and the topics that each member subscribes to."""

    targets: dict[str, set[Partition]] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)


class ShareGroupStory:
    """A share group as its records describe it. ``topic_names`` are those of the existing topics, by id."""

    def __init__(self, topic_names: Mapping[UUID, str]) -> None:
        self.explanations: list[ShareExplanation] = []
        self._topic_names = topic_names
        self._forget()

    @property
    def is_there(self) -> bool:
        """Return whether the group exists at the end of the log."""
        return self._hash is not None

    def _forget(self) -> None:
        self._now = _Assignment()
        # The last target assignment; None if the log lacks it.
        self._before: _Assignment | None = None
        self._initialized: set[Partition] = set()
        self._hash: int | None = None
        self._changes: list[str] = []

    def take(self, key: ShareGroupKey, value: ShareGroupValue | None, at_ms: int) -> None:
        """Apply the next record of the group, written at ``at_ms``."""
        if isinstance(key, ShareGroupMemberMetadataKey):
            self._take_member(key.member_id, cast("ShareGroupMemberMetadataValue | None", value))
        elif isinstance(key, ShareGroupTargetAssignmentMemberKey):
            self._take_target(key.member_id, cast("ShareGroupTargetAssignmentMemberValue | None", value))
        elif isinstance(key, ShareGroupTargetAssignmentMetadataKey):
            if value is not None:
                self._explain(cast("ShareGroupTargetAssignmentMetadataValue", value).assignment_epoch, at_ms)
        elif isinstance(key, ShareGroupStatePartitionMetadataKey):
            self._take_states(cast("ShareGroupStatePartitionMetadataValue | None", value))
        elif isinstance(key, ShareGroupMetadataKey):
            self._take_epoch(cast("ShareGroupMetadataValue | None", value))

    def _take_member(self, member_id: str, value: ShareGroupMemberMetadataValue | None) -> None:
        known = self._now.names.get(member_id)
        if value is None:
            if self._now.names.pop(member_id, None) is not None:
                self._changes.append(f"{member_id} is gone")
            return
        names = self._now.names[member_id] = frozenset(value.subscribed_topic_names)
        if known is None:
            self._changes.append(f"{member_id} joined")
        elif known != names:
            previously = ", ".join(sorted(known))
            self._changes.append(f"{member_id} subscribes to {', '.join(sorted(names))}, previously to {previously}")

    def _take_target(self, member_id: str, value: ShareGroupTargetAssignmentMemberValue | None) -> None:
        if value is None:
            self._now.targets.pop(member_id, None)
        else:
            self._now.targets[member_id] = {
                (topic_id, index) for topic_id, indexes in value.topic_partitions for index in indexes
            }

    def _take_states(self, value: ShareGroupStatePartitionMetadataValue | None) -> None:
        topics = () if value is None else value.initialized_topics
        found = {(topic.topic_id, index) for topic in topics for index in topic.partitions}
        if found - self._initialized:
            self._changes.append(f"{len(found - self._initialized)} partitions have their state now")
        self._initialized = found

    def _take_epoch(self, value: ShareGroupMetadataValue | None) -> None:
        if value is None:
            self._forget()
            return
        if not self._changes and self._hash is not None and self._hash != value.metadata_hash:
            self._changes.append("its topics or their partitions have changed")
        self._hash = value.metadata_hash

    def _explain(self, epoch: int, at_ms: int) -> None:
        changes, self._changes = self._changes, []
        before = self._before
        if before is None and epoch == INITIAL_EPOCH + 1:
            before = _Assignment()
        moves = None if before is None else self._moves(before)
        self._before = _Assignment({each: set(held) for each, held in self._now.targets.items()}, dict(self._now.names))
        self.explanations.append(ShareExplanation(epoch, at_ms, changes, moves))

    def _moves(self, before: _Assignment) -> list[ShareChange]:
        everything = {each for held in before.targets.values() for each in held}
        moves = []
        for member_id, held in sorted(self._now.targets.items()):
            known = before.targets.get(member_id, set())
            moves += [
                ShareChange(each, member_id, is_got=True, reason=_why_got(each, member_id, before, everything))
                for each in sorted(held - known)
            ]
            moves += [
                ShareChange(each, member_id, is_got=False, reason=self._why_lost(each, member_id))
                for each in sorted(known - held)
            ]
        return moves

    def _why_lost(self, partition: Partition, member_id: str) -> str:
        name = self._topic_names.get(partition[0])
        if name is None:
            return "the topic is gone"
        if name not in self._now.names.get(member_id, frozenset()):
            return f"{member_id} does not subscribe to it"
        return f"{member_id} had more than its share"


def _why_got(partition: Partition, member_id: str, before: _Assignment, everything: set[Partition]) -> str:
    if partition not in everything:
        return "no member had it"
    return f"{member_id} had fewer than its share" if member_id in before.names else f"{member_id} is new"
