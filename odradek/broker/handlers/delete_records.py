"""DeleteRecords, versions 0 to 2: the log start offset of partitions is moved up (KIP-107).

Offset -1 is the high watermark. Answered with the low watermark, which for one replica is the log start offset; asking for an
offset that is gone already changes nothing. OFFSET_OUT_OF_RANGE past the high watermark; POLICY_VIOLATION where the topic is only
compacted; INVALID_TOPIC_EXCEPTION for the broker's own topics; NOT_LEADER_OR_FOLLOWER where another broker leads.

Deliberate gap: none; with one replica there is nothing to wait for, so ``timeout_ms`` is never reached.
"""

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.handlers.in_slices import answer_in_slices
from odradek.broker.logging import log
from odradek.broker.metadata.topic_names import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.timing.slices import HEAVIEST

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import DirectoryServices
    from odradek.timing.reply import Reply


_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1
# Partitions whose offsets are moved without an interruption: a millisecond or two.
_TOGETHER: Final = 4


def handle(
    services: "DirectoryServices", _context: "RequestContext", request: DeleteRecordsRequest
) -> "DeleteRecordsResponse | Reply[DeleteRecordsResponse]":
    """Move the log start offsets that ``request`` names: many of them in slices, since each is written to its log's directory."""
    return answer_in_slices(services.slices, _delete(services, request), HEAVIEST)


def _delete(
    services: "DirectoryServices", request: DeleteRecordsRequest
) -> "Generator[Reply[Any] | None, Any, DeleteRecordsResponse]":
    topics = []
    answered = 0
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            partitions.append(_answer(services, topic.name, partition.partition_index, partition.offset))
            answered += 1
            if answered % _TOGETHER == 0:
                yield None
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    # Kafka leaves this to a task that runs once a minute; but what is acknowledged here, a kill does not undo.
    try:
        services.log_manager.checkpoints.write_start_offsets()
    except OSError as error:
        log.warn("deleted records may come back after a kill", reason=str(error))
        topics = [_refused(topic) for topic in topics]
    if services.log_manager.directories.lack_room:
        services.housekeeping.delete_old_segments()
    return DeleteRecordsResponse(topics=topics)


def _refused(topic: DeleteRecordsTopicResult) -> DeleteRecordsTopicResult:
    partitions = [
        DeleteRecordsPartitionResult(
            partition_index=each.partition_index,
            low_watermark=_NO_LOW_WATERMARK,
            error_code=each.error_code or ErrorCode.KAFKA_STORAGE_ERROR,
        )
        for each in topic.partitions
    ]
    return DeleteRecordsTopicResult(name=topic.name, partitions=partitions)


def _answer(services: "DirectoryServices", topic: str, partition: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = _delete_before(services, topic, partition, offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=_NO_LOW_WATERMARK, error_code=error.code)
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=low_watermark)


def _delete_before(services: "DirectoryServices", topic: str, partition: int, offset: int) -> int:
    known = services.partitions.require(topic, partition)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} are the broker's own")
    found = known.require_leader_log()
    if "delete" not in found.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic} is only compacted")
    if offset == _HIGH_WATERMARK:
        offset = known.high_watermark
    if not 0 <= offset <= known.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} of {known.high_watermark}")
    # Its partitions are about to go offline, and no offset is written there any more.
    failure = services.log_manager.home_of(found).failure
    if failure:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
    return found.delete_records_before(offset)
