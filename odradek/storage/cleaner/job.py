"""The input of a clean: values read on the loop thread, with which another thread works on files that the loop only reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.storage.cleaner.batch_filter import LastRecord
from odradek.storage.filesystem import FileSystem
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig
from odradek.storage.segment import MAX_RELATIVE_OFFSET, Segment

_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY_BYTES = 12


class CleaningAborted(Exception):
    """The log was closed, moved, deleted or truncated, or the broker stops: segments not swapped in are dropped."""


class Source(NamedTuple):
    """A segment to be cleaned. ``size`` and the index sizes are in bytes; ``next_offset`` is the next segment's base."""

    segment: Segment
    base_offset: int
    next_offset: int
    path: str
    size: int
    index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanJob:
    """One clean of one log. ``sources`` are all its segments below ``first_uncleanable_offset``, a segment's base offset.

    The dirty part begins at ``first_dirty_offset``; a batch at or before it begins at ``dirty_position`` of its segment. Records
    below ``synced_offset`` are on disk. ``transaction_indexes`` are (path, size in bytes) of all segments, in order.
    """

    log: Log
    file_system: FileSystem
    directory: str
    config: LogConfig
    sources: tuple[Source, ...]
    first_dirty_offset: int
    dirty_position: int
    first_uncleanable_offset: int
    synced_offset: int
    last_records: Mapping[int, LastRecord]
    transaction_indexes: tuple[tuple[str, int], ...]
    now_ms: int
    truncations: int

    @property
    def is_void(self) -> bool:
        """Whether the log was closed, or its end cut off, since the job was made. Any thread."""
        return self.log.is_closed or self.log.truncations != self.truncations

    @classmethod
    def of(cls, log: Log, first_dirty_offset: int, first_uncleanable_offset: int, now_ms: int) -> "CleanJob":
        """The clean of ``log`` between these offsets. Loop thread. Raises KafkaError, OSError."""
        sources = [
            Source(
                segment,
                segment.base_offset,
                next_offset,
                segment.path,
                segment.size,
                segment.offset_index.entry_count * _OFFSET_ENTRY_BYTES,
                segment.time_index.entry_count * _TIME_ENTRY_BYTES,
            )
            for segment, next_offset in log.segments.with_ends(log.log_end_offset)
            if next_offset <= first_uncleanable_offset
        ]
        dirty_position = next(
            (
                source.segment.offset_index.position_before(first_dirty_offset)
                for source in sources
                if source.base_offset <= first_dirty_offset < source.next_offset
            ),
            0,
        )
        indexes = []
        for segment in log.segments:
            if segment.transaction_index is not None:
                segment.transaction_index.write_out()
                indexes.append((segment.transaction_index.path, segment.transaction_index.size_bytes))
        return cls(
            log=log,
            file_system=log.file_system,
            directory=log.directory,
            config=log.config,
            sources=tuple(sources),
            first_dirty_offset=first_dirty_offset,
            dirty_position=dirty_position,
            first_uncleanable_offset=first_uncleanable_offset,
            synced_offset=log.recovery_point,
            last_records={
                producer_id: LastRecord(producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
                for producer_id, producer in log.producers.by_id.items()
            },
            transaction_indexes=tuple(indexes),
            now_ms=now_ms,
            truncations=log.truncations,
        )


def grouped(sources: Sequence[Source], config: LogConfig) -> list[list[Source]]:
    """``sources`` in groups, each of which becomes one segment: neighbours whose present content fits into one.

    The limits are ``segment.bytes``, ``segment.index.bytes`` for each index, and the range of relative offsets.
    """
    groups: list[list[Source]] = []
    size = index_bytes = time_index_bytes = 0
    for source in sources:
        size += source.size
        index_bytes += source.index_bytes
        time_index_bytes += source.time_index_bytes
        if (
            groups
            and size <= config.segment_bytes
            and max(index_bytes, time_index_bytes) <= config.segment_index_bytes
            and (not source.size or source.next_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        ):
            groups[-1].append(source)
            continue
        groups.append([source])
        size, index_bytes, time_index_bytes = source.size, source.index_bytes, source.time_index_bytes
    return groups
