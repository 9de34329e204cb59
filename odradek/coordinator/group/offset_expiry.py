"""Deletes expired offsets, and a group with the last of its offsets (KIP-211).

    group                           an offset expires, ``offsets.retention.minutes`` after
    simple: never had a member      it was committed
    Empty                           the group became empty; if that is unknown, the offset was committed
    consumers in Stable             it was committed, unless a member is subscribed to its topic
    any other                       never

An offset with an expire timestamp expires at that time; commits before version 5 could set one. An Empty group without offsets is
deleted. An offset pending in an open transaction does not expire, and neither does its group.

Source: ``OffsetMetadataManager.cleanupExpiredOffsets``, ``ClassicGroup.offsetExpirationCondition`` of Apache Kafka.
"""

from collections.abc import Iterator
from typing import Final, cast

from odradek.coordinator.group.interface import Group
from odradek.coordinator.group.offsets import CommittedOffsets, TopicOffsets, offset_tombstone
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue

_KEY: Final = "expire-offsets"
# The number of groups and offsets checked in one turn of the loop: a millisecond or two. A group's offsets share a turn.
_TOGETHER: Final = 2_000
_PAUSE_MS: Final = 1


def schedule_expiry(offsets: CommittedOffsets) -> None:
    """Check for expired offsets every ``offsets.retention.check.interval.ms``, as long as the shard is hosted."""
    interval_ms = offsets.config.offsets_retention_check_interval_ms
    offsets.context.schedule(_KEY, interval_ms, lambda: _expire(offsets, iter(list(offsets.groups.stored_ids()))))


def _expire(offsets: CommittedOffsets, group_ids: Iterator[str]) -> CoordinatorResult[None]:
    """Delete the expired offsets of the first groups. The next turns handle the other groups."""
    now_ms = offsets.clock.now_ms()
    records: list[CoordinatorRecord] = []
    with_pending = offsets.pending.group_ids()
    looked_at = 0
    for group_id in group_ids:
        group = offsets.groups.find(group_id)
        if group is None:
            continue
        topics = offsets.by_group.get(group_id)
        expired = [] if topics is None else _expired(group, topics, now_ms, offsets.config.offsets_retention_ms)
        if group_id in with_pending:
            expired = [record for record in expired if cast("OffsetCommitKey", record.key) not in offsets.pending]
        offsets.counters.expirations += len(expired)
        records += expired
        count = 0 if topics is None else sum(map(len, topics.values()))
        if count == len(expired) and group_id not in with_pending and group.is_empty:
            records += group.tombstones()
        looked_at += 1 + count
        if looked_at >= _TOGETHER:
            offsets.context.schedule(_KEY, _PAUSE_MS, lambda: _expire(offsets, group_ids))
            break
    else:
        schedule_expiry(offsets)
    return CoordinatorResult(records, None, atomic=False)


def _expired(group: Group, topics: TopicOffsets, now_ms: int, retention_ms: int) -> list[CoordinatorRecord]:
    unused_since_ms = group.offsets_expire_since_ms()
    if unused_since_ms is None:
        return []
    return [
        offset_tombstone(group.group_id, topic, index)
        for topic, partitions in topics.items()
        if not group.is_subscribed_to(topic)
        for index, value in partitions.items()
        if _is_expired(value, unused_since_ms, now_ms, retention_ms)
    ]


def _is_expired(value: OffsetCommitValue, unused_since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp_ms >= 0:
        return now_ms >= value.expire_timestamp_ms
    since_ms = value.commit_timestamp_ms if unused_since_ms < 0 else unused_since_ms
    return now_ms - since_ms >= retention_ms
