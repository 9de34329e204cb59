"""Deletes offsets: on request (OffsetDelete, KIP-496), and when a topic is deleted.

Source: ``OffsetMetadataManager.deleteOffsets`` and ``onTopicsDeleted`` of Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.offsets import offset_tombstone
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records import OffsetCommitKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.group.interface import Group
    from odradek.coordinator.group.offsets import CommittedOffsets
    from odradek.coordinator.runtime.record import CoordinatorRecord

_Topic: Final = OffsetDeleteResponseTopic
_Partition: Final = OffsetDeleteResponsePartition


def delete_offsets(offsets: CommittedOffsets, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
    """Decide on an OffsetDelete whose topics and partitions are known to exist.

    A topic that a member is subscribed to is answered GROUP_SUBSCRIBED_TO_TOPIC; a partition without an offset is answered as
    deleted. Raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP for a group with members that are not consumers.
    """
    group = _deletable(offsets, request.group_id)
    records = []
    topics = []
    for topic in request.topics:
        is_subscribed = group.is_subscribed_to(topic.name)
        error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        topics.append(
            _Topic(
                name=topic.name,
                partitions=[_Partition(partition_index=index, error_code=error_code) for index in indexes],
            )
        )
        if not is_subscribed:
            records += [
                offset_tombstone(group.group_id, topic.name, index)
                for index in dict.fromkeys(indexes)
                if offsets.get(group.group_id, topic.name, index) is not None
                or OffsetCommitKey(group.group_id, topic.name, index) in offsets.pending
            ]
    offsets.counters.deletions += len(records)
    return CoordinatorResult(records, OffsetDeleteResponse(topics=topics))


def delete_offsets_of_topics(offsets: CommittedOffsets, deleted: Mapping[str, UUID | None]) -> CoordinatorResult[None]:
    """Delete the offsets of all groups for ``deleted`` topics (names and ids).

    Offsets of another topic of the same name, older or newer, stay. An offset without a topic id belongs to the deleted topic.
    """
    records: list[CoordinatorRecord] = []
    for group_id, topics in offsets.by_group.items():
        names = list(deleted) if len(deleted) <= len(topics) else [topic for topic, _ in topics.items() if topic in deleted]
        for topic in names:
            partitions = topics.get(topic)
            if partitions is not None:
                records += [
                    offset_tombstone(group_id, topic, index)
                    for index, value in partitions.items()
                    if value.topic_id is None or value.topic_id == deleted[topic]
                ]
    found = {record.key for record in records}
    records += [offset_tombstone(*key) for key in offsets.pending.of_topics(deleted) if key not in found]
    offsets.counters.deletions += len(records)
    return CoordinatorResult(records, None, atomic=False)


def _deletable(offsets: CommittedOffsets, group_id: str) -> Group:
    group = offsets.groups.find(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "no such group")
    error = group.validate_offset_delete()
    if error is not ErrorCode.NONE:
        raise KafkaError(error, "the group has members")
    return group
