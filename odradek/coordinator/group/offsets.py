"""The offsets of one shard, committed and pending in transactions: group -> topic -> partition -> ``OffsetCommitValue``.

Only ``replay`` changes them. The functions in ``offset_commit``, ``offset_fetch`` and ``offset_deletion`` commit, fetch, delete
and expire them. Topics and groups without offsets are not kept.

An offset is pending while the transaction that committed it is open. If a partition has two commits, the later one in the log
wins, whatever the order in which their transactions end:

    TxnOffsetCommit 5 | OffsetCommit 7 | marker: commit          7
    A: 5 | B: 6 | B: commit | A: commit                          6

A tombstone removes pending offsets along with the committed one. A batch's producer id identifies the transaction of its
offsets, as a producer has at most one open transaction.

Source: ``OffsetMetadataManager`` (``replay``, ``replayEndTransactionMarker``) of Apache Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.runtime.result import CoordinatorRecord
from odradek.coordinator.runtime.timeline import SnapshotRegistry, TimelineDict
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.environment import ShardContext

# A pending offset's position in the log, and its value; None once a later commit exists.
_Pending: TypeAlias = "tuple[int, OffsetCommitValue | None]"


class PendingOffsets:
    """The offsets of one shard that are pending in open transactions. Loop thread only."""

    __slots__ = ("_by_producer", "_producers", "_snapshots")

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self._snapshots = snapshots
        self._by_producer: TimelineDict[int, TimelineDict[OffsetCommitKey, _Pending]] = TimelineDict(snapshots)
        self._producers: TimelineDict[OffsetCommitKey, frozenset[int]] = TimelineDict(snapshots)

    def __len__(self) -> int:
        """Return the number of partitions with pending offsets."""
        return len(self._producers)

    def __contains__(self, key: OffsetCommitKey) -> bool:
        """Return whether this offset is pending in an open transaction."""
        return key in self._producers

    def of_group(self, group_id: str) -> list[OffsetCommitKey]:
        """Return the pending offsets of a group."""
        return [key for key in self._producers if key.group == group_id]

    def group_ids(self) -> set[str]:
        """Return the groups that have pending offsets."""
        return {key.group for key in self._producers}

    def of_topics(self, topics: Mapping[str, UUID | None]) -> set[OffsetCommitKey]:
        """Return the pending offsets of these topics (names and ids), in all groups. One without a topic id is of the topic."""
        return {
            key
            for pending in self._by_producer.values()
            for key, (_, value) in pending.items()
            if value is not None and key.topic in topics and value.topic_id in (None, topics[key.topic])
        }

    def replay(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue, at_offset: int) -> None:
        """Apply an OffsetCommit record of a transaction, at ``at_offset``."""
        pending = self._by_producer.get(producer_id)
        if pending is None:
            pending = self._by_producer[producer_id] = TimelineDict(self._snapshots)
        pending[key] = at_offset, value
        producers = self._producers.get(key) or frozenset()
        if producer_id not in producers:
            self._producers[key] = producers | {producer_id}

    def supersede(self, key: OffsetCommitKey, at_offset: int) -> None:
        """Note a commit at ``at_offset``. Earlier pending offsets stay pending, but will not replace it."""
        for producer_id in self._producers.get(key) or ():
            pending = self._by_producer[producer_id]
            if pending[key][0] < at_offset:
                pending[key] = pending[key][0], None

    def forget(self, key: OffsetCommitKey) -> None:
        """Remove the pending offsets of a deleted offset."""
        for producer_id in self._producers.pop(key) or ():
            pending = self._by_producer[producer_id]
            del pending[key]
            if not pending:
                del self._by_producer[producer_id]

    def end(self, producer_id: int) -> list[tuple[OffsetCommitKey, int, OffsetCommitValue]]:
        """Remove a producer's pending offsets. Return (key, log offset, value) of each that no later commit replaces."""
        pending = self._by_producer.pop(producer_id)
        if pending is None:
            return []
        for key in pending:
            left = (self._producers.get(key) or frozenset()) - {producer_id}
            if left:
                self._producers[key] = left
            else:
                del self._producers[key]
        return [(key, at_offset, value) for key, (at_offset, value) in pending.items() if value is not None]


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
