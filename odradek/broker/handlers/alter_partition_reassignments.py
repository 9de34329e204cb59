"""AlterPartitionReassignments, versions 0 and 1: replicas are moved to other brokers (KIP-455), or a move is cancelled.

There is one broker: moving to it is done at once, for it changes nothing; any other target is INVALID_REPLICA_ASSIGNMENT, and
there is never a move to cancel: NO_REASSIGNMENT_IN_PROGRESS. ``allow_replication_factor_change`` (version 1, KIP-860) makes no
difference, since no factor but 1 can be had.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.decisions import ensure_assignment
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.ALTER_PARTITION_REASSIGNMENTS)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """Answer each partition of ``request``."""
    return M.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            M.ReassignableTopicResponse(
                name=topic.name, partitions=[_answer(broker, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _answer(broker: "Broker", topic: str, partition: Any) -> Any:
    try:
        _ensure_in_place(broker, topic, partition.partition_index, partition.replicas)
    except KafkaError as error:
        return M.ReassignablePartitionResponse(
            partition_index=partition.partition_index, error_code=error.code, error_message=error.reason or None
        )
    return M.ReassignablePartitionResponse(partition_index=partition.partition_index)


def _ensure_in_place(broker: "Broker", topic: str, partition: int, replicas: Any) -> None:
    known = broker.controller.image.topics.get(topic)
    if known is None or partition not in known.partitions:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{partition}.")
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    ensure_assignment(replicas, broker.node_id)
