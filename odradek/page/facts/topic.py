"""A topic: its partitions, its configs, and on this broker the segments and what compaction has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.page.facts.source import Source


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition. ``leader`` is None without one. The offsets are None if the leader does not give them.

    ``size_bytes`` is the leader's, None if it does not tell. ``is_here``: this broker has a replica, so ``segments`` has it.
    """

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    last_stable_offset: int | None
    size_bytes: int | None
    is_here: bool

    @property
    def is_under_replicated(self) -> bool:
        """Return whether a replica is out of sync."""
        return len(self.in_sync) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A config in force. ``source`` is "topic", "broker", "cluster", "file" or "default". ``value`` is None if it is secret.

    ``default`` is the value that holds without the topic's own.
    """

    name: str
    value: str | None
    source: str
    default: str | None
    is_read_only: bool
    is_sensitive: bool
    documentation: str


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic. ``is_partial``: ACLs hide the configs, or the sizes."""

    name: str
    topic_id: str
    is_internal: bool
    is_compacted: bool
    partitions: tuple[PartitionRow, ...]
    configs: tuple[ConfigRow, ...]
    this_broker: int
    is_partial: bool


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment on this broker's disk. ``end_offset`` is the next segment's base offset, or the log's end.

    ``max_timestamp_ms`` is None if no record has one. ``index_entries`` and so on count the entries of its indexes; each entry
    of the offset index has 8 bytes, of the time index 12. ``aborted`` counts transactions.
    ``state`` is "active", "cleaned" or "dirty" (of a compacted topic), else "closed".
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    path: str
    max_timestamp_ms: int | None
    max_timestamp_offset: int
    index_entries: int
    time_index_entries: int
    aborted: int
    state: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """The work of compaction on this broker's replica. ``cleaned_offset`` is the end of the last clean, None before the first.

    ``removed`` is the number of offsets without a record in the part scanned up to ``removed_up_to``; markers count as records.
    ``dirty_bytes`` wait for the next clean, which is due at ``min_dirty_ratio``. ``failed``: the cleaner has given up.
    """

    cleaned_offset: int | None
    removed: int
    removed_up_to: int
    clean_bytes: int
    dirty_bytes: int
    dirty_ratio: float
    min_dirty_ratio: float
    is_running: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The log of one partition on this broker. ``compaction`` is None unless the topic is compacted."""

    topic: str
    partition: int
    directory: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    recovery_point: int
    segments: tuple[SegmentRow, ...]
    compaction: Compaction | None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry of an index: of the offset index (offset, position), or of the time index (timestamp, offset)."""

    key: int
    value: int


async def topic(source: Source, name: str) -> TopicFacts:
    """Return a topic. Raises Missing, Unavailable."""
    raise NotImplementedError


async def segments(source: Source, name: str, partition: int) -> SegmentFacts:
    """Return the log of a partition on this broker. Raises Missing if there is no replica here, or the topic is hidden."""
    raise NotImplementedError


async def index_entries(
    source: Source, name: str, partition: int, base_offset: int, kind: str, first: int = 0, limit: int = 100
) -> tuple[IndexEntry, ...]:
    """Return entries of a segment's index, from number ``first`` on. ``kind``: "offset" or "time". Raises Missing."""
    raise NotImplementedError
