"""FetchSnapshot, versions 0 and 1: observers fetch the bytes of a metadata snapshot (KIP-630, KIP-853).

Kafka's class is KafkaRaftClient.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.controller.cluster.quorum_leader import MOST_BYTES, QuorumLeader
from odradek.controller.metadata.snapshot_files import BOOTSTRAP, SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    RequestPartitionSnapshot,
    TopicSnapshot,
)
from odradek.protocol.message_types.fetch_snapshot import SnapshotId as FetchedSnapshotId

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import QuorumServices

_UNREADABLE: Final = ErrorCode.UNKNOWN_SERVER_ERROR


def fetch_snapshot(leader: QuorumLeader, request: FetchSnapshotRequest, listener_name: str) -> FetchSnapshotResponse:
    """Answer a FetchSnapshot of the metadata log."""
    if request.cluster_id not in (None, leader.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    [topic] = request.topics
    [asked] = topic.partitions
    if topic.name == CLUSTER_METADATA_TOPIC and asked.partition == 0:
        found = _part(leader, asked, request.max_bytes)
    else:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found = PartitionSnapshot(index=asked.partition, error_code=error, unaligned_records=b"")
    endpoint = leader.endpoints.get(listener_name)
    nodes = [] if endpoint is None else [NodeEndpoint(leader.node_id, endpoint.host, endpoint.port)]
    return FetchSnapshotResponse(topics=[TopicSnapshot(name=topic.name, partitions=[found])], node_endpoints=nodes)


def _part(leader: QuorumLeader, asked: RequestPartitionSnapshot, max_bytes: int) -> PartitionSnapshot:
    files = leader.log.snapshots
    told = PartitionSnapshot(
        current_leader=LeaderIdAndEpoch(leader.node_id, leader.epoch),
        # The field is not nullable.
        unaligned_records=b"",
    )
    error = leader.refusal(asked.current_leader_epoch)
    if error:
        return told._replace(error_code=error)
    snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    if snapshot not in files.ids or snapshot == BOOTSTRAP:
        return told._replace(error_code=ErrorCode.SNAPSHOT_NOT_FOUND)
    try:
        size = files.size(snapshot)
        if not 0 <= asked.position < size:
            return told._replace(error_code=ErrorCode.POSITION_OUT_OF_RANGE)
        data = files.read_bytes(snapshot, asked.position, max(min(max_bytes, MOST_BYTES), 0))
    except OSError:
        return told._replace(error_code=_UNREADABLE)
    return told._replace(snapshot_id=FetchedSnapshotId(*snapshot), size=size, position=asked.position, unaligned_records=data)


def handle(services: "QuorumServices", context: "RequestContext", request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Return a part of the snapshot."""
    return fetch_snapshot(services.leader, request, context.listener_name)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
