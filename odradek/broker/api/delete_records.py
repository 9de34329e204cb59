"""DeleteRecords, versions 0 to 2: moves the log start offset of partitions forward (KIP-107).

Offset -1 is the high watermark. The answer is the low watermark: the lowest log start offset of the live replicas. It is sent
when the low watermark has reached the requested offset, or with REQUEST_TIMED_OUT. An offset that is already deleted changes
nothing. OFFSET_OUT_OF_RANGE past the high watermark; POLICY_VIOLATION if the topic is only compacted (an empty ``cleanup.policy``
permits it, KIP-1161); INVALID_TOPIC_EXCEPTION for internal topics; NOT_LEADER_OR_FOLLOWER if another broker leads.
"""

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.large import now_or_later
from odradek.broker.replica.delayed_produce import DelayedDeleteRecords
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.logging import log
from odradek.controller.metadata.topic import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from odradek.timing.reply import Reply
from odradek.timing.slices import HEAVIEST

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import DeletionServices
    from odradek.broker.replica.partition import Partition
    from odradek.common.context import RequestContext


_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1
# Partitions that are handled without a pause: this takes a millisecond or two.
_TOGETHER: Final = 4


def handle(
    services: "DeletionServices", _context: "RequestContext", request: DeleteRecordsRequest
) -> "DeleteRecordsResponse | Reply[DeleteRecordsResponse]":
    """Move the log start offsets as ``request`` says. Many are moved in slices, since each is written to its log's directory."""
    return now_or_later(services.slices.run(_delete(services, request), HEAVIEST))


def _delete(
    services: "DeletionServices", request: DeleteRecordsRequest
) -> "Generator[Reply[Any] | None, Any, DeleteRecordsResponse]":
    request = _once(request)
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
    # Kafka leaves this to a task that runs once a minute. Written here, an acknowledged deletion survives a kill.
    try:
        services.log_manager.checkpoints.write_start_offsets()
    except OSError as error:
        log.warn("cannot write log start offsets: deleted records may come back after a kill", reason=str(error))
        topics = [_refused(topic) for topic in topics]
        return DeleteRecordsResponse(topics=topics)
    if services.log_manager.directories.lack_room:
        services.housekeeping.delete_old_segments()
    waiting = _behind(services, request, topics)
    if waiting:
        topics = _with_outcomes(topics, (yield _followers(services, waiting, request.timeout_ms)))
    return DeleteRecordsResponse(topics=topics)


def _once(request: DeleteRecordsRequest) -> DeleteRecordsRequest:
    """Return the request with each partition once, and without empty topics. The last offset of a partition counts."""
    offsets: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        offsets.setdefault(topic.name, {}).update((each.partition_index, each) for each in topic.partitions)
    topics = [
        DeleteRecordsTopic(name=name, partitions=list(partitions.values())) for name, partitions in offsets.items() if partitions
    ]
    return request._replace(topics=topics)


def _behind(
    services: "DeletionServices", request: DeleteRecordsRequest, topics: list[DeleteRecordsTopicResult]
) -> dict[tuple[int, int], "tuple[Partition, int]"]:
    """Return the partitions whose followers lag, with the requested offset, by their places in the response."""
    waiting = {}
    for place, (asked, answered) in enumerate(zip(request.topics, topics, strict=True)):
        for index, (partition, answer) in enumerate(zip(asked.partitions, answered.partitions, strict=True)):
            found = None if answer.error_code else services.partitions.get(asked.name, partition.partition_index)
            if found is None or found.leader is None or found.leader.followers is None:
                continue
            offset = found.require_log().log_start_offset if partition.offset == _HIGH_WATERMARK else partition.offset
            if answer.low_watermark < offset:
                waiting[place, index] = found, offset
    return waiting


def _followers(
    services: "DeletionServices", waiting: dict[tuple[int, int], "tuple[Partition, int]"], timeout_ms: int
) -> "Reply[dict[tuple[int, int], tuple[int, ErrorCode]]]":
    """Wait for followers. Return a Reply of (low watermark, error code) by place."""
    reply: Reply[dict[tuple[int, int], tuple[int, ErrorCode]]] = Reply()
    operation = DelayedDeleteRecords(
        services.clock.monotonic_ms() + timeout_ms,
        list(waiting.values()),
        lambda outcomes: reply.complete(dict(zip(waiting, outcomes, strict=True))),
    )
    services.produce_purgatory.try_complete_else_watch(operation, [partition for partition, _ in waiting.values()])
    return reply


def _with_outcomes(
    topics: list[DeleteRecordsTopicResult], outcomes: dict[tuple[int, int], tuple[int, ErrorCode]]
) -> list[DeleteRecordsTopicResult]:
    """Return ``topics`` with the outcomes of the partitions that waited."""
    told = [list(topic.partitions) for topic in topics]
    for (place, index), (low_watermark, error_code) in outcomes.items():
        told[place][index] = told[place][index]._replace(low_watermark=low_watermark, error_code=error_code)
    return [topic._replace(partitions=partitions) for topic, partitions in zip(topics, told, strict=True)]


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


def _answer(services: "DeletionServices", topic: str, partition: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = _delete_before(services, topic, partition, offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=_NO_LOW_WATERMARK, error_code=error.code)
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=low_watermark)


def _delete_before(services: "DeletionServices", topic: str, partition: int, offset: int) -> int:
    known = services.partitions.require(topic, partition)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic: its records cannot be deleted")
    found = known.require_leader_log()
    if found.config.is_compacted and not found.config.has_retention:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{topic} has cleanup.policy=compact without delete: its records cannot be deleted"
        )
    if offset == _HIGH_WATERMARK:
        offset = known.high_watermark
    if not 0 <= offset <= known.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between 0 and the high watermark, {known.high_watermark}"
        )
    # In a failed directory no offset can be written, and its partitions are about to go offline.
    failure = services.log_manager.home_of(found).failure
    if failure:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
    log_start_offset = found.delete_records_before(offset)
    return log_start_offset if known.low_watermark is None else known.low_watermark


def rule(guarded: "GuardedRequest") -> object:
    """Require DELETE on each topic."""
    return authorize_each(guarded, AclOperation.DELETE, AclResourceType.TOPIC, lambda topic: topic.name)
