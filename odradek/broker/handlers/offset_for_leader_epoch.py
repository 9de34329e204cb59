"""OffsetForLeaderEpoch 2-4: where an epoch ended, so that a reader finds out whether its log was cut (KIP-320).

The answer is the largest epoch not above the one asked for, and the offset at which the next one began. Until a second
broker exists the epoch is one and the same; the check against a client's own idea of it holds all the same.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.context import RequestContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: Any) -> Any:  # noqa: ARG001  one signature for all
    """One end offset a partition; FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR."""
    m = messages(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            result = m.EpochEndOffset(partition=asked.partition)
            try:
                partition = broker.partitions.require(topic.topic, asked.partition)
                partition.check_leader_epoch(asked.current_leader_epoch)
                log = partition.require_log()
                if asked.leader_epoch == partition.leader_epoch:
                    result.leader_epoch, result.end_offset = partition.leader_epoch, log.log_end_offset
                else:
                    result.leader_epoch, result.end_offset = log.end_offset_for_epoch(asked.leader_epoch)
            except KafkaError as error:
                result.error_code = error.code
            partitions.append(result)
        topics.append(m.OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return m.OffsetForLeaderEpochResponse(topics=topics)
