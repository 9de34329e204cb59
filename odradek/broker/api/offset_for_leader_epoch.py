"""OffsetForLeaderEpoch 2-4: the end offset of an epoch, so that a reader detects truncation of its log (KIP-320).

The answer is the largest epoch up to the requested one, and the offset at which the next one began. Only the leader answers. If
the client sends a current leader epoch, it must be the leader's.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import TOPICS, Pieces
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import PartitionServices
    from odradek.common.context import RequestContext

pieces = Pieces(TOPICS, TOPICS)


def handle(
    services: "PartitionServices",
    _context: "RequestContext",
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse:
    """Return one end offset per partition.

    FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
    """
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(services, topic.topic, each) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(services: "PartitionServices", topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = services.partitions.require(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.require_leader_log()
        if asked.leader_epoch == partition.leader_epoch:
            leader_epoch, end_offset = partition.leader_epoch, log.log_end_offset
        else:
            leader_epoch, end_offset = log.end_offset_for_epoch(asked.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset)


def rule(guarded: "GuardedRequest") -> object:
    """Require CLUSTER_ACTION on the cluster (brokers), or DESCRIBE on each topic."""
    if guarded.access.allows_cluster(AclOperation.CLUSTER_ACTION, tells=False):
        return guarded.handle()
    return authorize_each(guarded, AclOperation.DESCRIBE, AclResourceType.TOPIC, lambda topic: topic.topic)
