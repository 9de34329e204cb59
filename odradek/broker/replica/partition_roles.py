"""The role of a partition, by the metadata. ``replicated_roles`` is for a broker among others.

In a cluster of one the broker leads every partition whose log it can serve.
"""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partitions import Partitions
from odradek.controller.metadata.cluster import ClusterNode, PartitionState
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode
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


class OneBroker:
    """A Cluster of this broker alone."""

    def __init__(
        self, partitions: Partitions, node_id: int, rack: str | None, advertised: Callable[[str], tuple[str, int]]
    ) -> None:
        """``advertised`` tells the (host, port) that the clients of a listener are to connect to."""
        self.controller_id = node_id
        self._partitions = partitions
        self._rack = rack
        self._advertised = advertised
        self._replicas = [node_id]

    def nodes(self, listener_name: str) -> list[ClusterNode]:
        """Part of Cluster."""
        return [self._node(listener_name)]

    def fenced_nodes(self, listener_name: str) -> list[ClusterNode]:  # noqa: ARG002  a broker that answers is not fenced
        """Part of Cluster."""
        return []

    def coordinator(self, topic: str, coordinated_id: str, listener_name: str) -> ClusterNode | None:  # noqa: ARG002
        """Part of Cluster."""
        return self._node(listener_name)

    def partition_state(
        self,
        topic: Topic,
        index: int,
        listener_name: str,  # noqa: ARG002  every listener is this broker's
        metadata_version: int,  # noqa: ARG002  LEADER_NOT_AVAILABLE is in all of them
    ) -> PartitionState:
        """Part of Cluster."""
        partition = self._partitions.get(topic.name, index)
        replicas = self._replicas
        if partition is None or partition.log is None:
            epoch = -1 if partition is None else partition.leader_epoch
            return PartitionState(ErrorCode.LEADER_NOT_AVAILABLE, index, -1, epoch, replicas, replicas, replicas)
        return PartitionState(ErrorCode.NONE, index, self.controller_id, partition.leader_epoch, replicas, replicas, ())

    def _node(self, listener_name: str) -> ClusterNode:
        host, port = self._advertised(listener_name)
        return ClusterNode(self.controller_id, host, port, self._rack)
