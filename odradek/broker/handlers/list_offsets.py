"""ListOffsets 1-11: the earliest, the latest, the newest by timestamp, the first at or after a time.

Special timestamps: -1 latest, -2 earliest, -3 the record with the largest timestamp (KIP-734, version 7), -4 earliest local
(KIP-405, version 8), -5 latest tiered (version 9), -6 earliest pending upload (version 11). Without tiered storage -4 is the
earliest, and -5 and -6 find nothing.

Read committed (isolation level 1) ends at the last stable offset, read uncommitted at the high watermark.

The leader answers, and for the replica id -2 (for debugging) any replica.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from odradek.broker.context import RequestContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from odradek.broker.handlers.services import PartitionServices
    from odradek.broker.replica.partition import Partition
    from odradek.storage.log import Log

# Named tuples are made without their constructors, in a third of the time: all fields are given, in their order.
_new: Final = tuple.__new__
_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
# Timestamp: the first version in which a client may ask for it.
_SINCE: Final = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_NOT_FOUND: Final = (-1, -1, -1)
_DEBUGGING_REPLICA: Final = -2


def handle(services: "PartitionServices", context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One offset a partition. INVALID_REQUEST, once, for one named twice; UNSUPPORTED_VERSION for a too new timestamp.

    FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
    """
    times_named = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            times = times_named.pop((topic.name, asked.partition_index), 0)
            if times:
                partitions.append(_answer(services, context.version, topic.name, asked, times, request))
        topics.append(_new(ListOffsetsTopicResponse, (topic.name, partitions)))
    return ListOffsetsResponse(topics=topics)


def _answer(
    services: "PartitionServices", version: int, topic: str, asked: ListOffsetsPartition, times: int, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    try:
        _check_named_once(times)
        _check_version(version, asked.timestamp)
        partition = services.partitions.require(topic, index)
        partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.require_log() if request.replica_id == _DEBUGGING_REPLICA else partition.require_leader_log()
        timestamp, offset, leader_epoch = _find(partition, log, asked.timestamp, request.isolation_level)
    except KafkaError as error:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
    return _new(ListOffsetsPartitionResponse, (index, ErrorCode.NONE, timestamp, offset, leader_epoch))


def _check_named_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a partition named twice")


def _check_version(version: int, timestamp: int) -> None:
    if timestamp < _EARLIEST_PENDING_UPLOAD or version < _SINCE.get(timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} has no meaning in version {version}")


def _find(partition: "Partition", log: "Log", timestamp: int, isolation_level: int) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch), all -1 where there is none."""
    end = partition.last_stable_offset if isolation_level == 1 else partition.high_watermark
    if timestamp == _LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        epoch = log.leader_epochs.epoch_for(log.log_start_offset)
        return -1, log.log_start_offset, partition.leader_epoch if epoch < 0 else epoch
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOT_FOUND
    try:
        found = log.max_timestamp_offset() if timestamp == _MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    except OSError as error:
        raise log.storage_error(error) from error
    if found is None or found.offset >= end:
        return _NOT_FOUND
    return found.timestamp, found.offset, found.leader_epoch
