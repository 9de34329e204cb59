"""DescribeQuorum, versions 0 to 2: the quorum of the metadata log (KIP-595, KIP-836, KIP-853).

The broker is its own controller: the only voter and the leader, always at the same epoch and always caught up. The node is given
with the request's listener, since this controller has no other.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import TOPICS, Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.controller.metadata.metadata_log import LEADER_EPOCH
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import NodeServices
    from odradek.common.context import RequestContext

pieces = Pieces(TOPICS, TOPICS)
has_unbounded_response = True


def handle(services: "NodeServices", context: "RequestContext", request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the metadata log's quorum. Any partition but the log's only one gets an error."""
    # Computed once: a request may name the partition thousands of times.
    quorum = _quorum(services)
    described = False
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            known = topic.topic_name == CLUSTER_METADATA_TOPIC and partition.partition_index == 0
            described = described or known
            partitions.append(quorum if known else _unknown(partition.partition_index))
        topics.append(TopicData(topic_name=topic.topic_name, partitions=partitions))
    return DescribeQuorumResponse(
        error_message="", topics=topics, nodes=[_node(services, context.listener_name)] if described else ()
    )


def _quorum(services: "NodeServices") -> PartitionData:
    end_offset = services.controller.log_end_offset
    now_ms = services.clock.now_ms()
    return PartitionData(
        partition_index=0,
        error_message="",
        leader_id=services.node_id,
        leader_epoch=LEADER_EPOCH,
        high_watermark=end_offset,
        current_voters=[
            ReplicaState(
                replica_id=services.node_id,
                log_end_offset=end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        ],
    )


def _unknown(partition: int) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="Only the metadata log has a quorum.",
    )


def _node(services: "NodeServices", listener_name: str) -> Node:
    host, port = services.advertised(listener_name)
    return Node(node_id=services.node_id, listeners=[Listener(name=listener_name, host=host, port=port)])


rule = on_cluster(AclOperation.DESCRIBE)
