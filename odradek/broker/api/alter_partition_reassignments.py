"""AlterPartitionReassignments, versions 0 and 1: replicas are moved to other brokers (KIP-455), or a move is cancelled.

There is one broker: moving to it is done at once, for it changes nothing; any other target is INVALID_REPLICA_ASSIGNMENT, and
there is never a move to cancel: NO_REASSIGNMENT_IN_PROGRESS. ``allow_replication_factor_change`` (version 1, KIP-860) makes no
difference, since no factor but 1 can be had.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odradek.broker.large.pieces import TOPICS, Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.controller.metadata.placement import ensure_assignment
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TopicServices
    from odradek.common.context import RequestContext

pieces = Pieces(TOPICS, ("responses", "partitions"))


def handle(
    services: "TopicServices", _context: "RequestContext", request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Answer each partition of ``request``."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_answer(services, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _answer(services: "TopicServices", topic: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
    try:
        _ensure_in_place(services, topic, partition.partition_index, partition.replicas)
    except KafkaError as error:
        return ReassignablePartitionResponse(
            partition_index=partition.partition_index, error_code=error.code, error_message=error.reason or None
        )
    return ReassignablePartitionResponse(partition_index=partition.partition_index)


def _ensure_in_place(services: "TopicServices", topic: str, partition: int, replicas: Sequence[int] | None) -> None:
    known = services.controller.image.topics.get(topic)
    if known is None or partition not in known.partitions:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{partition}.")
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    ensure_assignment(replicas, (services.node_id,))


rule = on_cluster(AclOperation.ALTER)
