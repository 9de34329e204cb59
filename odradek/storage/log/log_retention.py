"""Removes a log's oldest segments, and replaces segments by compacted ones.

Their files are handled by ``segment_removal``. The rules of retention (``cleanup.policy=delete``) are those of Kafka's
UnifiedLog. A segment is removed

- if the next one begins at or below the log start offset (DeleteRecords has moved it), whatever the policy;
- if the log still has ``retention.bytes`` without it;
- if its largest timestamp is more than ``retention.ms`` ago. A timestamp in the future keeps its segment until then.

Segments are removed from the oldest on, up to the first that must stay. A segment with records above the high watermark stays.
The active segment is removed only if it has records; a new one replaces it. If the policy is neither delete nor compact, only
DeleteRecords removes segments.

A segment whose records have no timestamps is as old as the last write to its file. An in-memory file system does not know that
time. There the records count as written when the next segment was created or opened, and the active segment is not removed by
age.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.local_log import LocalLog, LogSettings
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_producers import LogProducers
from odradek.storage.log.log_segments import LogSegments
from odradek.storage.log.log_writer import LogWriter
from odradek.storage.log.segment import Segment
from odradek.storage.log.segment_removal import SegmentRemoval


def count_deletable(
    segments: LogSegments, config: LogConfig, *, log_start_offset: int, readable_offset: int, log_end_offset: int, now_ms: int
) -> int:
    """Return how many ``segments`` to remove, from the first on. ``readable_offset`` is the high watermark. Raises OSError."""
    last = len(segments) - 1
    count = 0
    while count < last and segments[count + 1].base_offset <= min(log_start_offset, readable_offset):
        count += 1
    if not config.has_retention or not (count < last or segments.active.size):
        return count
    eligible = count
    while eligible < last and segments[eligible + 1].base_offset <= readable_offset:
        eligible += 1
    if eligible == last and segments.active.size and log_end_offset <= readable_offset:
        eligible += 1
    if config.retention_bytes >= 0:
        surplus = sum(segments[number].size for number in range(count, last + 1)) - config.retention_bytes
        while count < eligible and surplus >= segments[count].size:
            surplus -= segments[count].size
            count += 1
    if config.retention_ms >= 0:
        while count < eligible and _is_older(segments, count, now_ms - config.retention_ms):
            count += 1
    return count


def _is_older(segments: LogSegments, number: int, than_ms: int) -> bool:
    """Return whether the newest record of a segment is from before ``than_ms``."""
    timestamp = segments[number].largest_timestamp()
    if timestamp >= 0:
        return timestamp < than_ms
    return number + 1 < len(segments) and segments[number + 1].created_ms < than_ms


class LogRetention:
    """The log start offset and the retained segments of one log. Loop thread only.

    While ``is_being_cleaned`` no segment is removed: another thread reads them to compact or to move the log.
    """

    __slots__ = (
        "_flush_state",
        "_local",
        "_producers",
        "_replaced",
        "_settings",
        "_writer",
        "is_being_cleaned",
        "on_start_moved",
        "removal",
    )

    def __init__(
        self,
        local: LocalLog,
        settings: LogSettings,
        flush_state: FlushState,
        producers: LogProducers,
        writer: LogWriter,
        removal: SegmentRemoval,
    ) -> None:
        self._local = local
        self._settings = settings
        self._flush_state = flush_state
        self._producers = producers
        self._writer = writer
        self.removal = removal
        # Replaced segments whose files could not be set aside, as the disk failed.
        self._replaced: list[Segment] = []
        self.is_being_cleaned = False
        # Called when the log start offset has moved up.
        self.on_start_moved: Callable[[], object] | None = None

    def release_old_segments(self, now_ms: int, replicated_offset: int | None = None) -> list[Segment]:
        """Remove the segments that retention does not keep from the log, and return them.

        Other replicas have the log below ``replicated_offset``; None if there are none. The log then starts after the removed
        segments. If no segment would be left, a new one begins. The files stay: the caller passes the segments to ``removal``
        once the new log start offset is on disk. KafkaError: KAFKA_STORAGE_ERROR. Raises OSError, LogCorrupt. After an error
        nothing is removed.
        """
        if self._flush_state.sync_error or self.is_being_cleaned:
            return []
        local = self._local
        readable_offset = self._flush_state.readable_offset
        if replicated_offset is not None:
            readable_offset = min(readable_offset, replicated_offset)
        count = count_deletable(
            local.segments,
            self._settings.config,
            log_start_offset=local.log_start_offset,
            readable_offset=readable_offset,
            log_end_offset=local.log_end_offset,
            now_ms=now_ms,
        )
        if not count:
            return []
        if count == len(local.segments):
            try:
                self._writer.roll(now_ms)
            except OSError:
                # A full disk has no room for a new segment. It will once the other segments are removed.
                count -= 1
                if not count:
                    raise
        first = local.segments[count]
        if first.base_offset > local.log_start_offset:
            self.start_at(first.base_offset)
        removed = local.segments.remove_first(count)
        # Removed records need no sync. A power loss may bring them back, so the recovery point waits for a flush.
        self._flush_state.flushed_offset = max(self._flush_state.flushed_offset, first.base_offset)
        # A snapshot that cannot be removed now is removed by the next start.
        with suppress(OSError):
            self._producers.snapshots.forget_below(first.base_offset)
        return removed

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace ``old``, adjacent inactive segments, by ``new``, which has their retained records.

        The files of ``new`` are synced and named ``.swap``; those of ``old`` go to ``removal``. Raises OSError.
        """
        local = self._local
        local.segments.replace(old, new)
        present = {segment.base_offset for segment in local.segments}
        self._replaced = [*(segment for segment in self._replaced if segment.base_offset not in present), *old]
        self.removal.set_aside(
            local.directory,
            self._replaced,
            delay_ms=self._settings.config.file_delete_delay_ms,
            swapped_in=new.base_offset,
        )
        self._replaced = []
        # A snapshot that cannot be removed now is removed by the next start.
        with suppress(OSError):
            self._producers.snapshots.forget(segment.base_offset for segment in old if segment.base_offset != new.base_offset)

    def start_at(self, offset: int) -> None:
        """Move the log start offset up to ``offset``. KafkaError: KAFKA_STORAGE_ERROR, and the offset has not moved."""
        # Load the producers now, as the snapshots for a later load may be removed.
        self._producers.load()
        self._local.log_start_offset = offset
        # A leader epoch that cannot be removed from the file now is removed by the next start.
        with suppress(OSError):
            self._local.leader_epochs.truncate_from_start(offset)
        if self.on_start_moved is not None:
            self.on_start_moved()
