"""Replicas of a partition that move (KIP-455): those it has, those to be removed at the end, those that are added."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.protocol.metadata_records import PartitionRecord


class MovingReplicas(NamedTuple):
    """The replicas of a partition; those to be ``removing`` and those ``adding`` are among them while it is reassigned."""

    replicas: Sequence[int]
    removing: Sequence[int]
    adding: Sequence[int]

    @classmethod
    def of(cls, partition: PartitionRecord) -> "MovingReplicas":
        """As a partition has them."""
        return cls(partition.replicas, partition.removing_replicas, partition.adding_replicas)

    @classmethod
    def between(cls, current: Sequence[int], target: Sequence[int]) -> "MovingReplicas":
        """On the way from ``current`` to ``target``: the replicas that are not wanted stay until the others are in sync."""
        removing = sorted(set(current) - set(target))
        return cls((*target, *removing), removing, sorted(set(target) - set(current)))

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.removing or self.adding)

    @property
    def original(self) -> list[int]:
        """The replicas without those that are added."""
        return [replica for replica in self.replicas if replica not in self.adding]

    @property
    def target(self) -> list[int]:
        """The replicas without those that are to be removed."""
        return [replica for replica in self.replicas if replica not in self.removing]

    def completed(self, isr: Sequence[int]) -> tuple[list[int], list[int]] | None:
        """(replicas, in-sync replicas) at the end of the move; None while it is not reached.

        All replicas that are added must be in sync. Where there will be fewer replicas than before, all that stay must be.
        """
        staying = self.target
        in_sync = [replica for replica in isr if replica not in self.removing]
        # What an earlier move has added, and a later one removes, is awaited by nobody.
        adding = [replica for replica in self.adding if replica not in self.removing]
        awaited = staying if len(adding) < len(self.removing) else adding
        if not self.is_moving or not staying or not in_sync or not set(awaited) <= set(in_sync):
            return None
        return staying, in_sync
