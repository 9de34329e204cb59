"""The offsets of one shard that are pending in open transactions.

If a partition has two commits, the later one in the log wins, whatever the order in which their transactions end:

    TxnOffsetCommit 5 | OffsetCommit 7 | marker: commit          7
    A: 5 | B: 6 | B: commit | A: commit                          6

A tombstone removes pending offsets along with the committed one. A batch's producer id identifies the transaction of its offsets,
as a producer has at most one open transaction.

Source: ``OffsetMetadataManager`` (``replay``, ``replayEndTransactionMarker``) of Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.runtime.timeline import SnapshotRegistry, TimelineDict

if TYPE_CHECKING:
    from collections.abc import Container

    from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue

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

    def of_topics(self, topics: Container[str]) -> list[OffsetCommitKey]:
        """Return the pending offsets of these topics, in all groups."""
        return [key for key in self._producers if key.topic in topics]

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
