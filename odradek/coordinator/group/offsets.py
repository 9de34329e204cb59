"""The committed offsets of one shard: group -> topic -> partition -> ``OffsetCommitValue``.

Only ``replay`` changes them. The functions in ``offset_commit``, ``offset_fetch``, ``offset_delete`` and ``offset_expiry``
commit, fetch, delete and expire them. Topics and groups without offsets are not kept.

Offsets pending in transactions are kept separately (``pending_offsets``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.group.pending_offsets import PendingOffsets
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.timeline import TimelineDict
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.shard_context import ShardContext

PartitionOffsets: TypeAlias = "TimelineDict[int, OffsetCommitValue]"
TopicOffsets: TypeAlias = "TimelineDict[str, PartitionOffsets]"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetConfig:
    """The configs of offsets, under Kafka's names and with its defaults; none of them changes while a broker runs.

    ``offset_metadata_max_bytes`` counts characters, as it does in Kafka.
    """

    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1_000
    offsets_retention_check_interval_ms: int = 600_000


@dataclass(slots=True)
class OffsetCounters:
    """Counters of a shard's offsets since it was loaded. An offset counts when an operation decides on it."""

    commits: int = 0
    deletions: int = 0
    expirations: int = 0


class CommittedOffsets:
    """Owner of one shard's offsets; ``groups`` are the groups of the same shard. Loop thread only."""

    __slots__ = ("by_group", "clock", "config", "context", "counters", "groups", "pending")

    def __init__(self, groups: GroupRegistry, context: ShardContext, config: OffsetConfig) -> None:
        self.by_group: TimelineDict[str, TopicOffsets] = TimelineDict(context.snapshots)
        self.pending = PendingOffsets(context.snapshots)
        self.groups = groups
        self.context = context
        self.clock = context.clock
        self.config = config
        self.counters = OffsetCounters()

    def __len__(self) -> int:
        """Return the number of committed offsets."""
        return sum(len(partitions) for topics in self.by_group.values() for partitions in topics.values())

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, at_offset: int) -> None:
        """Apply an OffsetCommit record, at ``at_offset``; None is a tombstone. HOT: every committed or loaded offset."""
        if self.pending:
            if value is None:
                self.pending.forget(key)
            else:
                self.pending.supersede(key, at_offset)
        group_id, topic, partition = key
        topics = self.by_group.get(group_id)
        if value is None:
            if topics is not None:
                self._remove(group_id, topics, topic, partition)
            return
        if topics is None:
            topics = self.by_group[group_id] = TimelineDict(self.context.snapshots)
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = TimelineDict(self.context.snapshots)
        partitions[partition] = value

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """Commit or drop the pending offsets of a producer whose transaction has ended."""
        for key, at_offset, value in self.pending.end(producer_id):
            if is_commit:
                self.replay(key, value, at_offset)

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        """Return the current offset, or None."""
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the records that delete all offsets of a group, including pending ones."""
        keys = dict.fromkeys(self.pending.of_group(group_id))
        for topic, partitions in (self.by_group.get(group_id) or {}).items():
            keys.update((OffsetCommitKey(group_id, topic, index), None) for index in partitions)
        records = [offset_tombstone(*key) for key in keys]
        self.counters.deletions += len(records)
        return records

    def _remove(self, group_id: str, topics: TopicOffsets, topic: str, partition: int) -> None:
        partitions = topics.get(topic)
        if partitions is None:
            return
        partitions.pop(partition)
        if not partitions:
            del topics[topic]
            if not topics:
                del self.by_group[group_id]


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Return the record that deletes an offset."""
    return CoordinatorRecord(OffsetCommitKey(group_id, topic, partition), None)
