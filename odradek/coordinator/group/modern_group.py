"""The part that consumer and share groups have in common: epochs, the target assignment, and the topics subscribed to.

Kafka's class is ModernGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue

if TYPE_CHECKING:
    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.runtime.timeline import SnapshotRegistry
    from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupTargetAssignmentMetadataValue
    from odradek.protocol.coordinator_records.share_groups import ShareGroupTargetAssignmentMetadataValue

# Both epochs of a new group, as in Kafka. The first member raises the group's epoch.
INITIAL_EPOCH: Final = 1
NO_EPOCH: Final = -1


class ModernGroup:
    """A group whose target assignment is computed by the coordinator. Loop thread only.

    ``targets`` maps member ids to target assignments. ``name_counts`` counts the members that subscribe to a topic.
    """

    __slots__ = ("epoch", "fresh_epoch", "group_id", "metadata_hash", "name_counts", "target_metadata", "targets")

    def __init__(self, snapshots: SnapshotRegistry, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = TimelineValue(snapshots, INITIAL_EPOCH)
        self.metadata_hash = TimelineValue(snapshots, 0)
        # (epoch of the target assignment, time it was computed in ms since the epoch).
        self.target_metadata = TimelineValue(snapshots, (INITIAL_EPOCH, 0))
        self.targets: TimelineDict[str, Partitions] = TimelineDict(snapshots)
        self.name_counts: TimelineDict[str, int] = TimelineDict(snapshots)
        # The group's epoch when its topics' metadata was last read; None if it must be read again. Not persistent.
        self.fresh_epoch: int | None = None

    @property
    def assignment_epoch(self) -> int:
        """Return the epoch of the target assignment."""
        return self.target_metadata.get()[0]

    @property
    def is_stale(self) -> bool:
        """Return whether the topics' metadata must be read again: they changed, or a decision on them was rolled back."""
        return self.fresh_epoch is None or self.epoch.get() < self.fresh_epoch

    def describe(self) -> None:
        """Return None: such groups have a describing API of their own."""

    def replay_target(self, member_id: str, target: Partitions | None) -> None:
        """Set or remove a member's target assignment."""
        if target is None:
            self.targets.pop(member_id)
        else:
            self.targets[member_id] = target

    def replay_target_metadata(
        self, value: ConsumerGroupTargetAssignmentMetadataValue | ShareGroupTargetAssignmentMetadataValue | None
    ) -> None:
        """Set or remove the epoch of the target assignment."""
        found = (NO_EPOCH, 0) if value is None else (value.assignment_epoch, value.assignment_timestamp_ms)
        self.target_metadata.set(found)


def adjust_counts(counts: TimelineDict[str, int], old: frozenset[str | None], new: frozenset[str | None]) -> None:
    """Decrement the counts of names no longer present, increment those of new names."""
    if old is new or old == new:
        return
    for name in old - new:
        if name is not None:
            count = (counts.get(name) or 0) - 1
            if count > 0:
                counts[name] = count
            else:
                counts.pop(name)
    for name in new - old:
        if name is not None:
            counts[name] = (counts.get(name) or 0) + 1
