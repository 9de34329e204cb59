"""OffsetFetch: the committed offsets of a group, for the requested partitions or for all.

A partition without a committed offset has offset -1 and no error, even if the group does not exist. A request by topic id does
not see offsets of a deleted topic of the same name.

A request for stable offsets gets UNSTABLE_OFFSET_COMMIT for a partition with an offset pending in a transaction (KIP-447). The
client then retries.

Source: ``OffsetMetadataManager.fetchOffsets`` and ``fetchAllOffsets`` of Apache Kafka.
"""

from collections.abc import Generator, ItemsView
from typing import Final
from uuid import UUID

from odradek.coordinator.group.offsets import CommittedOffsets, TopicOffsets
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_Group: Final = OffsetFetchResponseGroup
_Topic: Final = OffsetFetchResponseTopics
_Partition: Final = OffsetFetchResponsePartitions

NO_OFFSET: Final = -1
# An offset beyond every log's end: selects the current state, committed or not.
LATEST: Final = 2**63 - 1
# The number of offsets answered without a pause: half a millisecond.
_TOGETHER: Final = 500


def fetch_offsets(offsets: CommittedOffsets, request: OffsetFetchRequestGroup, at_offset: int) -> OffsetFetchResponseGroup:
    """Return the OffsetFetchResponseGroup for a request, as of ``at_offset`` of the log; ``LATEST`` for now.

    Topics are requested by name. If the request also has the id, the answer has both. Raises KafkaError if the member may not
    fetch.
    """
    _validate(offsets, request, at_offset)
    topics = offsets.by_group.get_at(request.group_id, at_offset)
    pending = _pending(offsets, request, at_offset)
    answer = _fetch(request, topics, at_offset)
    return _with_unstable(answer, pending) if pending else answer


def fetch_all_offsets(
    offsets: CommittedOffsets, request: OffsetFetchRequestGroup, at_offset: int
) -> Generator[None, None, OffsetFetchResponseGroup]:
    """Return all committed offsets (a null request), in a generator that pauses, as they may be many.

    Everything that may change is read before the first pause.
    """
    _validate(offsets, request, at_offset)
    topics = offsets.by_group.get_at(request.group_id, at_offset)
    found = () if topics is None else topics.items_at(at_offset)
    committed = [(name, *_columns(partitions.items_at(at_offset))) for name, partitions in found]
    return _tell_all(request.group_id, committed, _pending(offsets, request, at_offset))


def _tell_all(
    group_id: str, committed: list[tuple[str, list[int], list[OffsetCommitValue]]], pending: frozenset[OffsetCommitKey]
) -> Generator[None, None, OffsetFetchResponseGroup]:
    answered = []
    for name, indexes, values in committed:
        partitions: list[OffsetFetchResponsePartitions] = []
        for first in range(0, len(values), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            partitions += [
                _unstable(index) if pending and (group_id, name, index) in pending else _committed(index, value)
                for index, value in zip(indexes[part], values[part], strict=True)
            ]
            yield None
        answered.append(_Topic(name=name, partitions=partitions))
    return _Group(group_id=group_id, topics=answered)


def _columns(items: ItemsView[int, OffsetCommitValue]) -> tuple[list[int], list[OffsetCommitValue]]:
    """Split the items into two lists. Hundreds of requests may keep them, so spare a tuple for each item."""
    return [index for index, _ in items], [value for _, value in items]


def _pending(offsets: CommittedOffsets, request: OffsetFetchRequestGroup, at_offset: int) -> frozenset[OffsetCommitKey]:
    """Return the group's offsets pending in transactions. Only requests for stable offsets use ``LATEST``."""
    return frozenset(offsets.pending.of_group(request.group_id)) if at_offset == LATEST and offsets.pending else frozenset()


def _validate(offsets: CommittedOffsets, request: OffsetFetchRequestGroup, at_offset: int) -> None:
    group = offsets.groups.find_at(request.group_id, at_offset)
    if group is not None:
        error = group.validate_offset_fetch(request.member_id, request.member_epoch, at_offset)
        if error is not ErrorCode.NONE:
            raise KafkaError(error, f"{group} refused a fetch of offsets")


def _with_unstable(answer: OffsetFetchResponseGroup, pending: frozenset[OffsetCommitKey]) -> OffsetFetchResponseGroup:
    group_id = answer.group_id
    return _Group(
        group_id=group_id,
        topics=[
            _Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    _unstable(each.partition_index) if (group_id, topic.name, each.partition_index) in pending else each
                    for each in topic.partitions
                ],
            )
            for topic in answer.topics
        ],
    )


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    return _Partition(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _fetch(request: OffsetFetchRequestGroup, topics: "TopicOffsets | None", at_offset: int) -> OffsetFetchResponseGroup:
    answered = []
    for topic in request.topics or ():
        known = None if topics is None else topics.get_at(topic.name, at_offset)
        partitions = []
        for index in topic.partition_indexes:
            value = None if known is None else known.get_at(index, at_offset)
            if value is None or _is_of_another_topic(value, topic.topic_id):
                partitions.append(_Partition(partition_index=index, committed_offset=NO_OFFSET, metadata=""))
            else:
                partitions.append(_committed(index, value))
        answered.append(_Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return _Group(group_id=request.group_id, topics=answered)


def _committed(index: int, value: OffsetCommitValue) -> OffsetFetchResponsePartitions:
    return _Partition(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _is_of_another_topic(value: OffsetCommitValue, topic_id: UUID | None) -> bool:
    return topic_id is not None and value.topic_id is not None and value.topic_id != topic_id
