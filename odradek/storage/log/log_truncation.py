"""Truncation of a log: a follower removes records that its leader does not have.

After a crash or a power loss at any point, the log can still be opened. It is then a prefix of the old log that has at least the
records to keep. So the order on disk is this:

1. ``before`` lowers the log's offsets in the checkpoint files. The next start expects all data below them.
2. Leader epochs and producer snapshots after the new end are removed, and synced. None of them can then reappear beside records
   of another leader.
3. Segments after the new end are removed, the last first, each synced.
4. The segment with the new end is cut, and synced. Its indexes are shortened in memory, and on disk with the next flush: a start
   rebuilds them past the recovery point.

An error in one of these steps takes the log out of service. The next start recovers it.

Batches are removed whole. Kafka leaves the log end offset in the middle of a batch whose records are gone.
"""

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.errors import DiskErrors
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.local_log import LocalLog, LogSettings
from odradek.storage.log.log_producers import LogProducers
from odradek.storage.log.segment import Segment, iter_headers
from odradek.storage.log.segment_removal import SegmentRemoval

if TYPE_CHECKING:
    from collections.abc import Callable


class LogTruncation:
    """Moves one log's end back. Loop thread only.

    ``before`` gets topic and partition, and an offset, and lowers the log's offsets in the checkpoint files to it.
    """

    __slots__ = ("_before", "_errors", "_flush_state", "_local", "_producers", "_removal", "_settings")

    def __init__(
        self,
        local: LocalLog,
        settings: LogSettings,
        flush_state: FlushState,
        producers: LogProducers,
        removal: SegmentRemoval,
        errors: DiskErrors,
        before: "Callable[[tuple[str, int], int], object] | None",
    ) -> None:
        self._local = local
        self._settings = settings
        self._flush_state = flush_state
        self._producers = producers
        self._removal = removal
        self._errors = errors
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
            self._remove_last(later)
            if position < segment.size:
                self._cut(segment, end_offset, position)
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

    def _remove_last(self, count: int) -> None:
        if count:
            self._set_aside(self._local.segments.remove_last(count))

    def _set_aside(self, segments: list[Segment]) -> None:
        delay_ms = self._settings.config.file_delete_delay_ms
        self._removal.set_aside(self._local.directory, reversed(segments), delay_ms=delay_ms, one_by_one=True)

    def _cut(self, segment: Segment, end_offset: int, position: int) -> None:
        segment.cut(end_offset, position, self._settings.index_interval_bytes)
        # After a power loss, records of another leader must not follow the removed ones.
        segment.file.sync()

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
