"""A topic: its partitions, its configs, and on this broker the segments and what compaction has done."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.admin_apis import DESCRIBE_CONFIGS
from odradek.client.api import ClientError
from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.common.config.dynamic import ResourceType
from odradek.page.facts.brokers import log_directories, sizes_of
from odradek.page.facts.source import Missing, Unavailable, described_topic, in_turns, leaders_of, list_offsets
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.message_types.describe_log_dirs import DescribableLogDirTopic
from odradek.storage.cleaning.candidates import look_at

if TYPE_CHECKING:
    from odradek.broker.replica.partition import Partition as Replica
    from odradek.page.facts.source import Source
    from odradek.protocol.message_types.describe_configs import DescribeConfigsResourceResult
    from odradek.protocol.message_types.metadata import MetadataResponsePartition
    from odradek.storage.log.log import Log
    from odradek.storage.log.segment import Segment

_TOPIC_SOURCE: Final = 1
_SOURCES: Final = {_TOPIC_SOURCE: "topic", 2: "broker", 3: "cluster", 4: "file", 5: "default"}
# The most batches that one look counts for ``Compaction.removed``. The next look goes on.
_MOST_BATCHES: Final = 20_000


class PartitionRow(NamedTuple):
    """A partition. The offsets are None if the leader does not give them.

    ``size_bytes`` is the leader's, None if it does not tell. ``is_here``: this broker has a replica, so ``segments`` has it.
    """

    about: MetadataResponsePartition
    start_offset: int | None
    end_offset: int | None
    last_stable_offset: int | None
    size_bytes: int | None
    is_here: bool


class ConfigRow(NamedTuple):
    """A config in force. ``source`` is "topic", "broker", "cluster", "file" or "default". ``value`` is None if it is secret.

    ``default`` is the value that holds without the topic's own.
    """

    name: str
    value: str | None
    source: str
    default: str | None
    is_read_only: bool
    documentation: str


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic. ``is_partial``: ACLs hide the configs, or the sizes."""

    name: str
    partitions: tuple[PartitionRow, ...]
    configs: tuple[ConfigRow, ...]
    this_broker: int
    is_partial: bool


class SegmentRow(NamedTuple):
    """A segment on this broker's disk. ``end_offset`` is the next segment's base offset, or the log's end.

    ``max_timestamp_ms`` is negative if no record has one. ``index_entries`` and so on count the entries of its indexes;
    ``aborted`` counts transactions. ``state`` is "active", "cleaned" or "dirty" (of a compacted topic), else "closed".
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    state: str
    max_timestamp_ms: int
    index_entries: int
    time_index_entries: int
    aborted: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """The work of compaction on this broker's replica. ``cleaned_offset`` is the end of the last clean, None before the first.

    ``removed`` is the number of offsets without a record in the part scanned up to ``removed_up_to``; markers count as records.
    ``dirty_bytes`` wait for the next clean, which is due at ``min_dirty_ratio``. ``failed``: the cleaner has given up.
    """

    cleaned_offset: int | None
    removed: int
    removed_up_to: int
    dirty_bytes: int
    dirty_ratio: float
    min_dirty_ratio: float
    is_running: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The log of one partition on this broker. ``compaction`` is None unless the topic is compacted."""

    directory: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    recovery_point: int
    segments: tuple[SegmentRow, ...]
    compaction: Compaction | None


async def topic(source: Source, name: str) -> TopicFacts:
    """Return a topic. Raises Missing, Denied, Unavailable."""
    found = await described_topic(source, name)
    leaders = leaders_of([found])
    asked = [DescribableLogDirTopic(topic=name, partitions=[index for _, index in leaders])]
    starts, ends, stable, (directories, _), configs = await asyncio.gather(
        list_offsets(source, dict.fromkeys(leaders, EARLIEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(leaders, LATEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(leaders, LATEST_TIMESTAMP), leaders, is_committed=True),
        log_directories(source, {leader for leader in leaders.values() if leader >= 0}, asked),
        _configs(source, name),
    )
    sizes = sizes_of(directories)
    rows = []
    for about in sorted(found.partitions, key=lambda one: one.partition_index):
        key = name, about.partition_index
        offsets = starts.get(key), ends.get(key), stable.get(key)
        size = sizes.get(key, {}).get(about.leader_id)
        rows.append(PartitionRow(about, *offsets, size, source.core.partitions.get(*key) is not None))
    is_partial = configs is None or not directories
    return TopicFacts(name, tuple(rows), tuple(configs or ()), source.core.node_id, is_partial)


async def _configs(source: Source, name: str) -> list[ConfigRow] | None:
    """Return a topic's configs; None if the user may not see them, or nobody answers."""
    resource = DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    try:
        [answer] = (await source.cluster.ask(DESCRIBE_CONFIGS, request)).results
    except ClientError:
        return None
    return None if answer.error_code else sorted(map(_config, answer.configs), key=lambda row: row.name)


def _config(found: DescribeConfigsResourceResult) -> ConfigRow:
    default = next((each.value for each in found.synonyms if each.source != _TOPIC_SOURCE), None)
    source = _SOURCES.get(found.config_source, "unknown")
    return ConfigRow(found.name, found.value, source, default, found.read_only, found.documentation or "")


async def segments(source: Source, name: str, partition: int) -> SegmentFacts:
    """Return the log of a partition on this broker. Raises Missing if there is no replica here, or the topic is hidden."""
    replica, log = await _log(source, name, partition)
    pairs = list(log.segments.with_ends(log.log_end_offset))
    try:
        rows = await in_turns(lambda pair: _segment(log, *pair), pairs)
        compaction = await _compaction(source, replica, log) if log.config.is_compacted else None
    except (KafkaError, OSError) as error:
        raise Unavailable(f"{name}-{partition}: its log cannot be read: {error}") from error
    return SegmentFacts(
        directory=log.directory,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=replica.high_watermark,
        recovery_point=log.recovery_point,
        segments=rows,
        compaction=compaction,
    )


async def index_entries(
    source: Source, name: str, partition: int, base_offset: int, kind: str, first: int = 0, limit: int = 100
) -> tuple[tuple[int, int], ...]:
    """Return entries of a segment's index, from number ``first`` on. Raises Missing.

    ``kind`` is "offset", for entries of offset and position, or "time", for timestamp and offset.
    """
    _, log = await _log(source, name, partition)
    for segment in log.segments:
        if segment.base_offset == base_offset:
            index = segment.time_index if kind == "time" else segment.offset_index
            return tuple(index.entries(max(first, 0), limit))
    raise Missing(f"{name}-{partition} has no segment at offset {base_offset}")


async def _log(source: Source, name: str, partition: int) -> tuple[Replica, Log]:
    """Return a replica of this broker, and its log, if the user may see the topic."""
    await described_topic(source, name)
    replica = source.core.partitions.get(name, partition)
    if replica is None:
        raise Missing(f"{name}-{partition}: broker {source.core.node_id} has no replica of it")
    if replica.log is None:
        raise Unavailable(f"{name}-{partition} is offline: {replica.offline_reason}")
    return replica, replica.log


def _segment(log: Log, segment: Segment, end_offset: int) -> SegmentRow:
    state = "closed"
    if segment is log.segments.active:
        state = "active"
    elif log.config.is_compacted:
        state = "cleaned" if log.cleaned_offset is not None and end_offset <= log.cleaned_offset else "dirty"
    aborted = segment.transaction_index
    return SegmentRow(
        segment.base_offset,
        end_offset,
        segment.size,
        state,
        segment.learn_max_timestamp(),
        segment.offset_index.entry_count,
        segment.time_index.entry_count,
        0 if aborted is None else aborted.entry_count,
    )


async def _compaction(source: Source, replica: Replica, log: Log) -> Compaction:
    cleaner = source.core.log_cleaner
    start, cleaned = log.log_start_offset, log.cleaned_offset
    dirty_from = start if cleaned is None else min(max(cleaned, start), log.log_end_offset)
    found = look_at(log, dirty_from, source.broker.clock.now_ms())
    count = await source.watch.counts.count(
        log, start, dirty_from, replica.last_stable_offset, most_batches=_MOST_BATCHES, markers=True
    )
    return Compaction(
        cleaned_offset=cleaned,
        removed=count.up_to - start - count.records,
        removed_up_to=count.up_to,
        dirty_bytes=0 if found is None else found.cleanable_bytes,
        dirty_ratio=0.0 if found is None else found.dirty_ratio,
        min_dirty_ratio=log.config.min_cleanable_dirty_ratio,
        is_running=log.is_being_cleaned,
        failed=(log.topic, log.partition) in cleaner.uncleanable,
    )
