"""A share group as its records in ``__consumer_offsets`` tell it: which member got or lost which partition, and why.

Several members may have a partition, and none has to give one up before another gets it. So a change is one member's: it gets a
partition from nobody, or loses it to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.cli.group_story import ExplainedMove, GroupStory, Partition
from odradek.coordinator.group.share.member import KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.protocol.coordinator_records.share_groups import (
        ShareGroupMemberMetadataValue,
        ShareGroupStatePartitionMetadataKey,
        ShareGroupStatePartitionMetadataValue,
        ShareGroupTargetAssignmentMemberValue,
    )


@dataclass(slots=True)
class _Assignment:
    """The partitions by member, and the members."""

    targets: dict[str, set[Partition]] = field(default_factory=dict)
    member_ids: set[str] = field(default_factory=set)


class ShareGroupStory(GroupStory):
    """A share group as its records describe it. ``topic_names`` are those of the existing topics, by id."""

    def __init__(self, topic_names: Mapping[UUID, str]) -> None:
        super().__init__(KEYS)
        self._topic_names = topic_names

    def _forget(self) -> None:
        super()._forget()
        self._targets: dict[str, set[Partition]] = {}
        self._before = _Assignment()
        self._initialized: set[Partition] = set()

    def _take_member(self, member_id: str, value: ShareGroupMemberMetadataValue | None, at_ms: int) -> None:  # noqa: ARG002
        known = self._members.get(member_id)
        if value is None:
            if self._members.pop(member_id, None) is not None:
                self._changes.append(f"{member_id} is gone")
            return
        names = self._members[member_id] = frozenset(value.subscribed_topic_names)
        if known is None:
            self._changes.append(f"{member_id} joined")
        elif known != names:
            previously = ", ".join(sorted(known))
            self._changes.append(f"{member_id} subscribes to {', '.join(sorted(names))}, previously to {previously}")

    def _take_target(self, member_id: str, value: ShareGroupTargetAssignmentMemberValue | None) -> None:
        if value is None:
            self._targets.pop(member_id, None)
        else:
            self._targets[member_id] = {(topic_id, index) for topic_id, indexes in value.topic_partitions for index in indexes}

    def _take_other(
        self,
        key: ShareGroupStatePartitionMetadataKey,  # noqa: ARG002  there is one such record
        value: ShareGroupStatePartitionMetadataValue | None,
    ) -> None:
        topics = () if value is None else value.initialized_topics
        found = {(topic.topic_id, index) for topic in topics for index in topic.partitions}
        if found - self._initialized:
            self._changes.append(f"{len(found - self._initialized)} partitions have their state now")
        self._initialized = found

    def _keep_targets(self) -> None:
        self._before = _Assignment({each: set(held) for each, held in self._targets.items()}, set(self._members))

    def _moves(self) -> list[ExplainedMove]:
        before = self._before
        everything = {each for held in before.targets.values() for each in held}
        moves = []
        for member_id, held in sorted(self._targets.items()):
            known = before.targets.get(member_id, set())
            moves += [
                ExplainedMove(each, None, member_id, _why_got(each, member_id, before, everything))
                for each in sorted(held - known)
            ]
            moves += [ExplainedMove(each, member_id, None, self._why_lost(each, member_id)) for each in sorted(known - held)]
        return moves

    def _why_lost(self, partition: Partition, member_id: str) -> str:
        name = self._topic_names.get(partition[0])
        if name is None:
            return "the topic is gone"
        if name not in self._members.get(member_id, frozenset()):
            return f"{member_id} does not subscribe to it"
        return f"{member_id} had more than its share"


def _why_got(partition: Partition, member_id: str, before: _Assignment, everything: set[Partition]) -> str:
    if partition not in everything:
        return "no member had it"
    return f"{member_id} had fewer than its share" if member_id in before.member_ids else f"{member_id} is new"
