"""Which replica a consumer is to read from: one in its own rack, where there is one that is in sync (KIP-392).

A leader that finds one names it in its answer, without records, and the consumer goes there. Followers that are not in sync, or
lack the offset that the consumer is at, are left out: it would wait there, or be sent back.

Kafka's classes are RackAwareReplicaSelector and ReplicaManager.
"""

from collections.abc import Iterable

from odradek.broker.metadata.cluster import NO_NODE, ClusterNode
from odradek.broker.replica.partition import Partition


class ReplicaSelector:
    """For a consumer in ``rack``; ``nodes`` are the brokers that it can reach, this one among them."""

    __slots__ = ("_in_rack", "_node_id")

    def __init__(self, rack: str, nodes: Iterable[ClusterNode], node_id: int) -> None:
        self._in_rack = frozenset(node.node_id for node in nodes if node.rack == rack)
        self._node_id = node_id

    def select(self, partition: Partition, fetch_offset: int) -> int:
        """The broker to read from instead of this one; NO_NODE if this one is as near, or does not lead."""
        leader = partition.leader
        if leader is None or leader.followers is None or self._node_id in self._in_rack:
            return NO_NODE
        # The most advanced, then the one that has caught up last.
        found = (
            (follower.log_end_offset, follower.last_caught_up_ms, node_id)
            for node_id, follower in leader.followers.readable_at(fetch_offset)
            if node_id in self._in_rack
        )
        return max(found, default=(0, 0.0, NO_NODE))[2]
