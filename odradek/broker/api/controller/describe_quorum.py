"""DescribeQuorum, versions 0 to 2, of a controller: the voter and the observers' progress (KIP-595, KIP-836, KIP-853)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    RequestTopicData,
    TopicData,
)

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import QuorumServices
    from odradek.controller.cluster.quorum_leader import QuorumLeader


def handle(services: "QuorumServices", _context: "RequestContext", request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the quorum of the metadata log's one partition. A request for any other partition gets an error for each."""
    if not _is_about_metadata(request):
        return DescribeQuorumResponse(topics=[_unknown(topic) for topic in request.topics])
    leader = services.leader
    quorum = _quorum(leader, services.clock.now_ms())
    listeners = [Listener(name, endpoint.host, endpoint.port) for name, endpoint in leader.endpoints.items()]
    return DescribeQuorumResponse(
        error_message="",
        topics=[TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[quorum])],
        nodes=[Node(node_id=leader.node_id, listeners=listeners)],
    )


def _is_about_metadata(request: DescribeQuorumRequest) -> bool:
    asked = [(topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions]
    return asked == [(CLUSTER_METADATA_TOPIC, 0)]


def _quorum(leader: "QuorumLeader", now_ms: int) -> PartitionData:
    observers = [
        ReplicaState(node_id, directory_id, each.log_end_offset, each.last_fetch_ms, each.last_caught_up_ms)
        for (node_id, directory_id), each in leader.observers.known(now_ms)
    ]
    return PartitionData(
        error_message="",
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        high_watermark=leader.log.high_watermark,
        current_voters=[ReplicaState(leader.node_id, leader.directory_id, leader.log.end_offset, now_ms, now_ms)],
        observers=observers,
    )


def _unknown(topic: RequestTopicData) -> TopicData:
    return TopicData(
        topic_name=topic.topic_name,
        partitions=[
            PartitionData(
                partition_index=partition.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message="Only the metadata log has a quorum.",
            )
            for partition in topic.partitions
        ],
    )


rule = on_cluster(AclOperation.DESCRIBE)
