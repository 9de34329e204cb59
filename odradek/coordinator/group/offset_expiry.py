"""Expired offsets, which are deleted, and with the last of them their group (KIP-211).

    group                           an offset expires, ``offsets.retention.minutes`` after
    simple: nobody ever joined      it was committed
    Empty                           the group became empty; where that is not known, the offset was committed
    consumers in Stable             it was committed, unless a member is subscribed to its topic
    any other                       never

An offset with an expire timestamp, which commits before version 5 could set, expires then. An Empty group without offsets is
deleted. An offset that is pending in an open transaction does not expire, nor does its group.

Source: ``OffsetMetadataManager.cleanupExpiredOffsets``, ``ClassicGroup.offsetExpirationCondition`` of Apache Kafka.
"""

from typing import Final

from odradek.coordinator.group.interface import Group
from odradek.coordinator.group.offsets import CommittedOffsets, TopicOffsets, offset_tombstone
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records import OffsetCommitValue

_KEY: Final = "expire-offsets"


def schedule_expiry(offsets: CommittedOffsets) -> None:
    """Look for expired offsets every ``offsets.retention.check.interval.ms``, for as long as the shard is here."""

    def expire() -> CoordinatorResult[None]:
        schedule_expiry(offsets)
        return expire_offsets(offsets)

    offsets.context.schedule(_KEY, offsets.config.offsets_retention_check_interval_ms, expire)


def expire_offsets(offsets: CommittedOffsets) -> CoordinatorResult[None]:
    """Delete the expired offsets of all groups of the shard."""
    now_ms = offsets.clock.now_ms()
    records: list[CoordinatorRecord] = []
    for group_id in offsets.groups.stored_ids():
        group = offsets.groups.find(group_id)
        if group is None:
            continue
        topics = offsets.by_group.get(group_id)
        expired = [] if topics is None else _expired(group, topics, now_ms, offsets.config.offsets_retention_ms)
        pending = offsets.pending.of_group(group_id) if offsets.pending else []
        if pending:
            expired = [record for record in expired if record.key not in pending]
        offsets.counters.expirations += len(expired)
        records += expired
        kept = 0 if topics is None else sum(map(len, topics.values())) - len(expired)
        if not kept and not pending and group.is_empty:
            records += group.tombstones()
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
