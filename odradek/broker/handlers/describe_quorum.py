"""DescribeQuorum, versions 0 to 2: who holds the metadata log (KIP-595, KIP-836, KIP-853).

The broker is its own controller: the one voter and the leader, at one epoch for ever, caught up by definition. The node is told
with the listener that the request came in on, for there is no other where this controller answers.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.metadata_log import LEADER_EPOCH
from odradek.broker.metadata.topic_names import CLUSTER_METADATA_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.DESCRIBE_QUORUM)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:
    """Describe the metadata log's quorum to whom asks for its one partition."""
    described = False
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            known = topic.topic_name == CLUSTER_METADATA_TOPIC and partition.partition_index == 0
            described = described or known
            partitions.append(_quorum(broker) if known else _unknown(partition.partition_index))
        topics.append(M.TopicData(topic_name=topic.topic_name, partitions=partitions))
    return M.DescribeQuorumResponse(
        error_message="", topics=topics, nodes=[_node(broker, context.listener_name)] if described else ()
    )


def _quorum(broker: "Broker") -> Any:
    end_offset = broker.controller.log_end_offset
    now_ms = broker.clock.now_ms()
    return M.PartitionData(
        partition_index=0,
        error_message="",
        leader_id=broker.node_id,
        leader_epoch=LEADER_EPOCH,
        high_watermark=end_offset,
        current_voters=[
            M.ReplicaState(
                replica_id=broker.node_id,
                log_end_offset=end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        ],
    )


def _unknown(partition: int) -> Any:
    return M.PartitionData(
        partition_index=partition,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="Only the metadata log has a quorum.",
    )


def _node(broker: "Broker", listener_name: str) -> Any:
    host, port = broker.advertised(listener_name)
    return M.Node(node_id=broker.node_id, listeners=[M.Listener(name=listener_name, host=host, port=port)])
