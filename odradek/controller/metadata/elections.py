"""Which partitions this broker takes the lead of when it starts.

A Kafka broker that stops gracefully gives up what it leads: its controller records no leader, an empty in-sync set, and that the
broker is eligible to lead (KIP-966). When the broker is back, it is elected. odradek's broker keeps what it leads when it stops,
so this concerns data directories that Kafka has run on.
"""

from typing import TYPE_CHECKING

from odradek.controller.metadata.image import MetadataImage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord


def elect(image: MetadataImage, node_id: int) -> "Iterator[PartitionChangeRecord]":
    """The changes that make ``node_id`` the leader, and the in-sync set, of all partitions it has a replica of."""
    for _, partition in image.partitions():
        is_elected = partition.leader == node_id and partition.isr == (node_id,)
        if is_elected or node_id not in partition.replicas:
            continue
        from odradek.protocol.metadata_records.base import NO_LEADER_CHANGE
        from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord

        yield PartitionChangeRecord(
            topic_id=partition.topic_id,
            partition_id=partition.partition_id,
            leader=NO_LEADER_CHANGE if partition.leader == node_id else node_id,
            isr=(node_id,),
            eligible_leader_replicas=() if partition.eligible_leader_replicas else None,
            last_known_elr=() if partition.last_known_elr else None,
        )
