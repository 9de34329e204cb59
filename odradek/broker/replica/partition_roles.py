"""What a partition becomes by what the metadata say of it. ``cluster.replicated_roles`` has that of a broker among others."""

from typing import Protocol
from uuid import UUID

from odradek.broker.replica.partition import Partition
from odradek.protocol.metadata_records import PartitionRecord


class PartitionRoles(Protocol):
    """Gives partitions their roles. Loop thread only."""

    # This broker's.
    node_id: int

    def begin(self, partition: Partition, record: PartitionRecord, directory_id: UUID | None) -> None:
        """``partition`` has been opened, in a data directory of that id; None where it is offline."""

    def take(self, partition: Partition, record: PartitionRecord) -> None:
        """``record`` is how ``partition`` is now."""

    def leave(self, partition: Partition) -> None:
        """``partition`` is about to be deleted."""


class AloneRoles:
    """PartitionRoles of a broker that has no others to replicate to, or from."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id

    def begin(self, partition: Partition, record: PartitionRecord, directory_id: UUID | None) -> None:
        """Part of PartitionRoles: all that is in the log is replicated."""

    def take(self, partition: Partition, record: PartitionRecord) -> None:
        """Part of PartitionRoles."""
        if record.leader == self.node_id:
            partition.become_leader(record.leader_epoch)
        else:
            partition.become_follower(record.leader, record.leader_epoch)

    def leave(self, partition: Partition) -> None:
        """Part of PartitionRoles."""
