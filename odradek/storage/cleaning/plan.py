"""The input of a clean as plain values, for use in a thread or in another process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.storage.cleaning.batch_filter import LastRecord
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment import MAX_RELATIVE_OFFSET


class CleaningAborted(Exception):
    """The log was closed, moved, deleted or truncated, or the broker stops: segments not swapped in are dropped."""


class CleanerDied(Exception):
    """The cleaning process has ended: it was killed, perhaps by the system for its memory."""


class Source(NamedTuple):
    """A segment to be cleaned. ``size`` and the index sizes are in bytes; ``next_offset`` is the next segment's base."""

    base_offset: int
    next_offset: int
    path: str
    size: int
    index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan:
    """One clean of one log. ``sources`` are all its segments below ``first_uncleanable_offset``, a segment's base offset.

    The dirty part begins at ``first_dirty_offset``. A batch at or before it begins at ``dirty_position`` of its segment. Records
    below ``synced_offset`` are on disk. ``transaction_indexes`` has (path, size in bytes) of all segments, in order.
    ``unsynced_later`` has the paths of later segments that may not be on disk.
    """

    directory: str
    config: LogConfig
    sources: tuple[Source, ...]
    first_dirty_offset: int
    dirty_position: int
    first_uncleanable_offset: int
    synced_offset: int
    last_records: Mapping[int, LastRecord]
    transaction_indexes: tuple[tuple[str, int], ...]
    unsynced_later: tuple[str, ...]
    now_ms: int


def grouped(sources: Sequence[Source], config: LogConfig) -> list[list[Source]]:
    """Group ``sources``: adjacent segments whose current content fits into one segment.

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
