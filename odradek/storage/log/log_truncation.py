"""Removes records at either end of a log: truncation at its end, retention at its start.

Truncation of a log: a follower removes records that its leader does not have.

After a crash or a power loss at any point, the log can still be opened. It is then a prefix of the old log that has at least
the records to keep. So the order on disk is this:

1. ``before`` lowers the log's offsets in the checkpoint files. The next start expects all data below them.
2. Leader epochs and producer snapshots after the new end are removed, and synced. None of them can then reappear beside records
   of another leader.
3. Segments after the new end are removed, the last first, each synced.
4. The segment with the new end is cut, and synced. Its indexes are shortened in memory, and on disk with the next flush: a start
   rebuilds them past the recovery point.

An error in one of these steps takes the log out of service. The next start recovers it.

Batches are removed whole. Kafka leaves the log end offset in the middle of a batch whose records are gone.

Removes a log's oldest segments, and replaces segments by compacted ones.

Their files are handled by ``segment_files``. The rules of retention (``cleanup.policy=delete``) are those of Kafka's
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

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.local_log import LogSegments
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_writer import LogParts, LogWork
from odradek.storage.log.segment import Segment, iter_headers


class LogTruncation(LogWork):
    """Moves one log's end back. Loop thread only.

    ``before`` gets topic and partition, and an offset, and lowers the log's offsets in the checkpoint files to it.
    """

    __slots__ = ("_before", "_removal")

    def __init__(self, parts: LogParts, before: "Callable[[tuple[str, int], int], object] | None") -> None:
        super().__init__(parts)
        self._removal = parts.removal
        self._before = before

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Truncate the log; see ``Log.truncate_to``."""
        if offset < 0:
            raise ValueError(f"a log cannot end at {offset}")
        self._flush_state.ensure_synced()
        local = self._local
        if offset >= local.log_end_offset:
            self._forget_empty_epoch(offset)
            return False
        if offset < local.segments.first_offset:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        later = sum(segment.base_offset > offset for segment in local.segments)
        segment = local.segments[len(local.segments) - later - 1]
        self._lower_checkpoints(segment.base_offset)
        try:
            end_offset, position = _end_of(segment, offset)
            self._forget_behind(end_offset)
            if later:
                self._set_aside(local.segments.remove_last(later))
            if position < segment.size:
                segment.cut(end_offset, position, self._settings.index_interval_bytes)
                # After a power loss, records of another leader must not follow the removed ones.
                segment.file.sync()
        except OSError as error:
            raise self._failed(error) from error
        self._end_at(end_offset, min(local.log_start_offset, end_offset))
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Empty the log; see ``Log.truncate_fully_and_start_at``."""
        if offset < 0:
            raise ValueError(f"a log cannot start at {offset}")
        self._flush_state.ensure_synced()
        local = self._local
        self._lower_checkpoints(min(offset, local.segments.first_offset))
        try:
            self._forget_behind(-1)
            self._set_aside(list(local.segments))
            local.replace_all(offset, self._settings.config, now_ms)
        except OSError as error:
            raise self._failed(error) from error
        self._end_at(offset, offset)

    def _forget_empty_epoch(self, offset: int) -> None:
        """Remove the epoch of a leader without records. It would make the follower repeat the same request."""
        try:
            self._local.leader_epochs.truncate_from_end(offset)
        except OSError as error:
            raise self._errors.report(error) from error

    def _lower_checkpoints(self, offset: int) -> None:
        if self._before is None:
            return
        try:
            self._before(self._local.topic_partition, offset)
        except OSError as error:
            # Nothing has been truncated.
            raise self._errors.report(error) from error

    def _failed(self, error: OSError) -> KafkaError:
        self._local.truncations += 1
        self._flush_state.sync_failed(error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _forget_behind(self, end_offset: int) -> None:
        """Remove leader epochs that begin at or after ``end_offset``, and snapshots after it."""
        local = self._local
        local.leader_epochs.truncate_from_end(end_offset)
        local.leader_epochs.sync()
        snapshots = self._producers.snapshots
        behind = [offset for offset in snapshots.offsets if offset > end_offset]
        if behind:
            snapshots.forget(behind)
            local.file_system.sync_dir(local.directory)

    def _set_aside(self, segments: list[Segment]) -> None:
        delay_ms = self._settings.config.file_delete_delay_ms
        self._removal.set_aside(self._local.directory, reversed(segments), delay_ms=delay_ms, one_by_one=True)

    def _end_at(self, end_offset: int, start_offset: int) -> None:
        """Let the log end at ``end_offset``, where its files already end."""
        local = self._local
        local.log_start_offset = start_offset
        local.log_end_offset = end_offset
        local.truncations += 1
        local.segments.forget_tails()
        self._flush_state.truncated()
        self._producers.reset()


def _end_of(segment: Segment, offset: int) -> tuple[int, int]:
    """Return (offset, position) after the last batch that lies completely below ``offset``. Raises OSError."""
    found = segment.find(offset)
    end_position = segment.size if found is None else found[0]
    end_offset = segment.base_offset
    start = segment.offset_index.position_before(offset - 1)
    for _, header in iter_headers(segment.file, start, end_position):
        end_offset = header.next_offset
    return end_offset, end_position


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


class LogRetention(LogWork):
    """The log start offset and the retained segments of one log. Loop thread only.

    While ``is_being_cleaned`` no segment is removed: another thread reads them to compact or to move the log.
    """

    __slots__ = ("_replaced", "is_being_cleaned", "on_start_moved", "removal")

    def __init__(self, parts: LogParts) -> None:
        super().__init__(parts)
        self.removal = parts.removal
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
