"""ListOffsets 1-11: the earliest offset, the latest, the one with the largest timestamp, or the first at or after a time.

Special timestamps: -1 latest, -2 earliest, -3 the record with the largest timestamp (KIP-734, version 7), -4 earliest local
(KIP-405, version 8), -5 latest tiered (version 9), -6 earliest pending upload (version 11). Without tiered storage -4 is the
earliest, and -5 and -6 find nothing.

Read committed (isolation level 1) ends at the last stable offset, read uncommitted at the high watermark.

A new leader that does not know yet which records are replicated answers OFFSET_NOT_AVAILABLE (KIP-207), below version 5
LEADER_NOT_AVAILABLE. Only the leader answers; for the replica id -2 (for debugging) any replica does.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.large import TOPICS, Pieces
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.context import Reply, RequestContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.storage.log.log_lookup import LongLookup, TimestampOffset

if TYPE_CHECKING:
    from odradek.broker.api.services import LookupServices
    from odradek.broker.replica.partition import Partition
    from odradek.storage.log.log import Log

# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
# Timestamp: the first version that supports it.
_SINCE: Final = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_FIRST_WITH_OFFSET_NOT_AVAILABLE: Final = 5
_NOT_FOUND: Final = (-1, -1, -1)
# A placeholder for a partition whose records are being searched.
_LATER: Final = ListOffsetsPartitionResponse()
_DEBUGGING_REPLICA: Final = -2


class _Known(NamedTuple):
    """The result of a search through the records before ``next_offset``."""

    found: TimestampOffset | None
    next_offset: int


class _Late:
    """A partition whose answer takes long. Its answer goes to ``place`` in ``partitions``, the answers of its topic."""

    __slots__ = ("asked", "partitions", "place", "topic")

    def __init__(self, partitions: list[ListOffsetsPartitionResponse], topic: str, asked: ListOffsetsPartition) -> None:
        self.partitions = partitions
        self.place = len(partitions)
        self.topic = topic
        self.asked = asked


pieces = Pieces(TOPICS, TOPICS)


def handle(
    services: "LookupServices", context: RequestContext, request: ListOffsetsRequest
) -> "ListOffsetsResponse | Reply[ListOffsetsResponse]":
    """Find one offset per partition. INVALID_REQUEST, once, for one named twice; UNSUPPORTED_VERSION for a too new timestamp.

    FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
    """
    times_named = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    topics = []
    # A topic that is named twice gets one answer with all its partitions; a topic without partitions gets none.
    by_topic: dict[str, list[ListOffsetsPartitionResponse]] = {}
    late: list[tuple[_Late, LongLookup]] = []
    for topic in request.topics:
        if not topic.partitions:
            continue
        partitions = by_topic.get(topic.name)
        if partitions is None:
            partitions = by_topic[topic.name] = []
            topics.append(_new(ListOffsetsTopicResponse, (topic.name, partitions)))
        for asked in topic.partitions:
            times = times_named.pop((topic.name, asked.partition_index), 0)
            if not times:
                continue
            try:
                partitions.append(_answer(services, context.version, topic.name, asked, times, request, None))
            except LongLookup as lookup:
                late.append((_Late(partitions, topic.name, asked), lookup))
                partitions.append(_LATER)
    response = ListOffsetsResponse(topics=topics)
    return _look_up(services, context, request, response, late) if late else response


def _look_up(
    services: "LookupServices",
    context: "RequestContext",
    request: ListOffsetsRequest,
    response: ListOffsetsResponse,
    late: list[tuple[_Late, LongLookup]],
) -> Reply[ListOffsetsResponse]:
    """Return a Reply of ``response``, completed after the ``late`` partitions are searched beside the loop."""
    reply: Reply[ListOffsetsResponse] = Reply()
    left = len(late)

    def look_up(partition: _Late, lookup: LongLookup) -> None:
        services.inspections.run(lookup.run, lambda outcome: looked_up(partition, lookup, outcome), context.session)

    def looked_up(partition: _Late, lookup: LongLookup, outcome: TimestampOffset | KafkaError | None) -> None:
        nonlocal left
        if isinstance(outcome, KafkaError):
            answer = ListOffsetsPartitionResponse(partition_index=partition.asked.partition_index, error_code=outcome.code)
        else:
            known = _Known(outcome, lookup.next_offset)
            try:
                answer = _answer(services, context.version, partition.topic, partition.asked, 1, request, known)
            except LongLookup as next_lookup:
                look_up(partition, next_lookup)
                return
        partition.partitions[partition.place] = answer
        left -= 1
        if not left:
            reply.complete(response)

    for partition, lookup in late:
        look_up(partition, lookup)
    return reply


def _answer(
    services: "LookupServices",
    version: int,
    topic: str,
    asked: ListOffsetsPartition,
    times: int,
    request: ListOffsetsRequest,
    known: _Known | None,
) -> ListOffsetsPartitionResponse:
    """Answer one partition. Raises LongLookup; then search, and call this again with the result."""
    index = asked.partition_index
    try:
        _check_named_once(times)
        _check_version(version, asked.timestamp)
        partition = services.partitions.require(topic, index)
        partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.require_log() if request.replica_id == _DEBUGGING_REPLICA else partition.require_leader_log()
        if request.replica_id >= 0 and asked.timestamp == _LATEST:
            # A follower asks for the log's end, not the high watermark.
            timestamp, offset, leader_epoch = -1, log.log_end_offset, partition.leader_epoch
        else:
            timestamp, offset, leader_epoch = _find(partition, log, asked.timestamp, request.isolation_level, known)
    except KafkaError as error:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=_code_for(error.code, version))
    return _new(ListOffsetsPartitionResponse, (index, ErrorCode.NONE, timestamp, offset, leader_epoch))


def _code_for(code: ErrorCode, version: int) -> ErrorCode:
    """Return the error code that a client of ``version`` knows (KIP-207)."""
    is_unknown = code == ErrorCode.OFFSET_NOT_AVAILABLE and version < _FIRST_WITH_OFFSET_NOT_AVAILABLE
    return ErrorCode.LEADER_NOT_AVAILABLE if is_unknown else code


def _check_named_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the partition appears twice in the request")


def _check_version(version: int, timestamp: int) -> None:
    if timestamp < _EARLIEST_PENDING_UPLOAD or version < _SINCE.get(timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} is not supported in version {version}")


def _check_settled(partition: "Partition") -> None:
    """Raise OFFSET_NOT_AVAILABLE while a new leader's high watermark may be behind one that clients have seen (KIP-207)."""
    if partition.is_unsettled:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the new leader does not know its high watermark yet")


def _find(partition: "Partition", log: "Log", timestamp: int, isolation_level: int, known: _Known | None) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch), all -1 if nothing is found. Raises LongLookup."""
    end = partition.last_stable_offset if isolation_level == 1 else partition.high_watermark
    if timestamp == _LATEST:
        _check_settled(partition)
        return -1, end, partition.leader_epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        start = log.log_start_offset
        epoch = log.leader_epochs.epoch_for(start)
        # Records in message formats v0 and v1 have no epoch.
        return -1, start, partition.leader_epoch if epoch < 0 and start == log.log_end_offset else epoch
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOT_FOUND
    try:
        if known is not None and (known.found is not None or timestamp == _MAX_TIMESTAMP):
            found = known.found
        elif timestamp == _MAX_TIMESTAMP:
            found = log.max_timestamp_offset()
        else:
            found = log.offset_for_timestamp(timestamp, 0 if known is None else known.next_offset)
    except OSError as error:
        raise log.storage_error(error) from error
    if found is None or found.offset >= end:
        _check_settled(partition)
        return _NOT_FOUND
    return found.timestamp, found.offset, found.leader_epoch


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each topic."""
    return authorize_each(guarded, AclOperation.DESCRIBE, AclResourceType.TOPIC, lambda topic: topic.name)
