"""Deletes offsets: on request (OffsetDelete, KIP-496), when a topic is deleted, and when they expire (KIP-211).

A group is deleted with the last of its expired offsets.

    group                           an offset expires, ``offsets.retention.minutes`` after
    simple: never had a member      it was committed
    Empty                           the group became empty; if that is unknown, the offset was committed
    consumers in Stable             it was committed, unless a member is subscribed to its topic
    any other                       never

An offset with an expire timestamp expires at that time; commits before version 5 could set one. An Empty group without offsets
is deleted, but not a share group: it has none, and its progress is with the share coordinator. An offset pending in an open
transaction does not expire, and neither does its group.

Sources: ``OffsetMetadataManager.deleteOffsets``, ``onTopicsDeleted``, ``cleanupExpiredOffsets``,
``ClassicGroup.offsetExpirationCondition`` of Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from odradek.coordinator.group.offsets import CommittedOffsets, offset_tombstone
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from odradek.coordinator.group.interface import Group

_Topic: Final = OffsetDeleteResponseTopic
_Partition: Final = OffsetDeleteResponsePartition

_EXPIRY: Final = "expire-offsets"
# The number of groups and offsets checked in one turn of the loop: a millisecond or two.
_TOGETHER: Final = 2_000
_PAUSE_MS: Final = 1


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
    """Delete the offsets of all groups for ``deleted`` topics (names and ids), pending ones, too.

    Offsets of another topic of the same name, older or newer, stay. An offset without a topic id belongs to the deleted topic.
    """
    records: list[CoordinatorRecord] = []
    for group_id, topics in offsets.by_group.items():
        names = list(deleted) if len(deleted) <= len(topics) else [topic for topic in topics if topic in deleted]
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


def schedule_expiry(offsets: CommittedOffsets) -> None:
    """Check for expired offsets every ``offsets.retention.check.interval.ms``, as long as the shard is hosted."""
    interval_ms = offsets.config.offsets_retention_check_interval_ms
    offsets.context.schedule(_EXPIRY, interval_ms, lambda: _expire_next(offsets, _places(offsets)))


def _places(offsets: CommittedOffsets) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield all groups and the partitions of their offsets: a group with many several times, with the next of them."""
    for group_id in list(offsets.groups.stored_ids()):
        topics = offsets.by_group.get(group_id)
        places = [] if topics is None else [(topic, index) for topic, partitions in topics.items() for index in partitions]
        for first in range(0, len(places) or 1, _TOGETHER):
            yield group_id, places[first : first + _TOGETHER]


def _expire_next(offsets: CommittedOffsets, unchecked: Iterator[tuple[str, list[tuple[str, int]]]]) -> CoordinatorResult[None]:
    """Delete what has expired at the next places, as many as one turn checks. The next turns handle the others."""
    records: list[CoordinatorRecord] = []
    with_pending = offsets.pending.group_ids()
    looked_at = 0
    for group_id, places in unchecked:
        group = offsets.groups.find(group_id)
        unused_since_ms = None if group is None else group.offsets_expire_since_ms()
        if group is not None and unused_since_ms is not None:
            expired = _expired(offsets, group, places, unused_since_ms)
            if group_id in with_pending:
                expired = [record for record in expired if cast("OffsetCommitKey", record.key) not in offsets.pending]
            offsets.counters.expirations += len(expired)
            records += expired
            left = sum(map(len, (offsets.by_group.get(group_id) or {}).values())) - len(expired)
            if not left and group_id not in with_pending and group.is_empty:
                records += group.tombstones()
        looked_at += 1 + len(places)
        if looked_at >= _TOGETHER:
            offsets.context.schedule(_EXPIRY, _PAUSE_MS, lambda: _expire_next(offsets, unchecked))
            break
    else:
        schedule_expiry(offsets)
    return CoordinatorResult(records, None, atomic=False)


def _expired(
    offsets: CommittedOffsets, group: Group, places: list[tuple[str, int]], unused_since_ms: int
) -> list[CoordinatorRecord]:
    now_ms = offsets.clock.now_ms()
    retention_ms = offsets.config.offsets_retention_ms
    is_read = {topic: group.is_subscribed_to(topic) for topic, _ in places}
    values = ((topic, index, offsets.get(group.group_id, topic, index)) for topic, index in places if not is_read[topic])
    return [
        offset_tombstone(group.group_id, topic, index)
        for topic, index, value in values
        if value is not None and _is_expired(value, unused_since_ms, now_ms, retention_ms)
    ]


def _is_expired(value: OffsetCommitValue, unused_since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp_ms >= 0:
        return now_ms >= value.expire_timestamp_ms
    since_ms = value.commit_timestamp_ms if unused_since_ms < 0 else unused_since_ms
    return now_ms - since_ms >= retention_ms
