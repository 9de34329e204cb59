"""The synced offsets of a log, and its flushes.

A flush is a FlushTask: files first, then the directories that name them. It covers

- the whole log (``flush_task``): records, indexes and leader epochs. This moves the recovery point.
- or the records alone (``commit_task``), which is enough for them to survive: recovery rebuilds indexes. Only the flushed offset
  moves.

After a failed sync nothing counts as synced: the system may have dropped unwritten data, and report success the next time. The
log then refuses appends, and the stop is unclean, so that the next start recovers the data on disk.

Many appends in one turn of the loop may reach ``flush.messages``. If ``on_flush_due`` is set, it is called with topic and
partition, and soon flushes all of them at once. Until then their records are in the log, but neither acknowledged nor read. A
transaction marker is flushed before its append returns, with all records before it: a transaction is not complete while its
marker may be lost.
"""

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.errors import DiskErrors, is_directory_failure
from odradek.storage.log.flush import FlushTask
from odradek.storage.log.local_log import LocalLog, LogSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.filesystem import File
    from odradek.storage.log.flush import UnsyncedIndex


class FlushState:
    """The synced part of one log. Loop thread only; a FlushTask may run in any thread.

    Records below ``flushed_offset`` are on disk; below ``recovery_point``, so are their indexes. ``sync_error`` is empty until a
    sync fails.
    """

    __slots__ = (
        "_errors",
        "_local",
        "_segments_named",
        "_settings",
        "awaits_flush",
        "flushed_offset",
        "has_failed_append",
        "last_flush_ms",
        "on_flush_due",
        "recovery_point",
        "sync_error",
    )

    def __init__(self, local: LocalLog, settings: LogSettings, errors: DiskErrors, recovery_point: int, now_ms: int) -> None:
        self._local = local
        self._settings = settings
        self._errors = errors
        # The number of ``local.segments_begun`` whose names are synced.
        self._segments_named = 0
        self.recovery_point = recovery_point
        self.flushed_offset = recovery_point
        self.last_flush_ms = now_ms
        # Requests a flush when ``flush.messages`` is reached. Without it the append itself flushes.
        self.on_flush_due: Callable[[tuple[str, int]], object] | None = None
        # True if appended records wait for a requested flush (``flush.messages``). They are not read before.
        self.awaits_flush = False
        # True if an append has failed since the last whole flush. Some of its bytes may lie beyond the log's end.
        self.has_failed_append = False
        self.sync_error = ""

    @property
    def readable_offset(self) -> int:
        """Return the offset below which records may be read: the log's end, or the flushed offset while awaiting a flush."""
        return self.flushed_offset if self.awaits_flush else self._local.log_end_offset

    @property
    def is_flush_due(self) -> bool:
        """Return whether ``flush.messages`` records or more are not on disk."""
        return self._local.log_end_offset - self.flushed_offset >= self._settings.flush_messages

    def ensure_synced(self) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) after a failed sync."""
        if self.sync_error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.sync_error)

    def flush_task(self, *, active: bool = True) -> FlushTask:
        """Return the sync of the whole log, or of all but the active segment. Raises OSError."""
        local = self._local
        local.leader_epochs.sync()
        files: list[File] = []
        indexes: list[UnsyncedIndex] = []
        # Records before the first segment need no sync once that segment's name is on disk.
        offset = max(self.recovery_point, local.segments.first_offset)
        for segment, end_offset in local.segments.with_ends(local.log_end_offset):
            is_dirty = end_offset > self.recovery_point or segment.has_unsynced_index or self.has_failed_append
            if is_dirty and (active or segment is not local.segments.active):
                files.append(segment.file)
                indexes += segment.unsynced_indexes()
                offset = max(offset, end_offset)
        return FlushTask(
            local.file_system,
            self._unnamed_directories(),
            tuple(files),
            offset,
            local.segments_begun,
            tuple(indexes),
            truncations=local.truncations,
        )

    def commit_task(self) -> FlushTask:
        """Return the sync of the records that are not on disk. Raises OSError."""
        local = self._local
        found = local.segments.with_ends(local.log_end_offset)
        files = tuple(segment.file for segment, end_offset in found if segment.size and end_offset > self.flushed_offset)
        return FlushTask(
            local.file_system,
            self._unnamed_directories(),
            files,
            local.log_end_offset,
            local.segments_begun,
            is_whole=False,
            truncations=local.truncations,
        )

    def _unnamed_directories(self) -> tuple[str, ...]:
        """Return the directories with unsynced names."""
        directory = self._local.directory
        is_named = self._segments_named == self._local.segments_begun
        return () if is_named else (directory, directory.rpartition("/")[0])

    def flushed(self, task: FlushTask, now_ms: int) -> None:
        """Move the offsets after ``task`` has run."""
        if self.sync_error or task.truncations != self._local.truncations:
            return
        self.flushed_offset = max(self.flushed_offset, task.offset)
        self._segments_named = max(self._segments_named, task.segments_begun)
        self.awaits_flush = self.awaits_flush and self.is_flush_due
        for index in task.indexes:
            index.synced()
        if task.is_whole:
            self.recovery_point = max(self.recovery_point, task.offset)
            self.last_flush_ms = now_ms

    def truncated(self) -> None:
        """Limit the offsets to the log after a truncation."""
        end_offset = self._local.log_end_offset
        self.recovery_point = min(self.recovery_point, end_offset)
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.awaits_flush = self.awaits_flush and self.is_flush_due

    def sync_failed(self, error: OSError) -> None:
        """Take the log out of service: a sync has failed."""
        self.sync_error = f"could not be synced: {error}"
        self._errors.report(error)

    def flush_soon(self, now_ms: int) -> None:
        """Request a flush, or flush, as ``flush.messages`` is reached. KafkaError: KAFKA_STORAGE_ERROR."""
        # After a failed append, bytes may have to be cut off first. Only the loop thread does that.
        if self.on_flush_due is None or self.has_failed_append:
            self.flush(now_ms)
        else:
            self.awaits_flush = True
            self.on_flush_due(self._local.topic_partition)

    def flush(self, now_ms: int) -> None:
        """Sync the whole log before returning. KafkaError: KAFKA_STORAGE_ERROR, now and for every later append."""
        self.ensure_synced()
        try:
            task = self._affordable_task()
            task.run()
        except OSError as error:
            self.sync_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self.has_failed_append = self.has_failed_append and not task.is_whole
        self.flushed(task, now_ms)

    def _affordable_task(self) -> FlushTask:
        """Return a flush of the whole log; of records only, if the disk is too full for indexes and leader epochs."""
        try:
            return self.flush_task()
        except OSError as error:
            if is_directory_failure(error):
                raise
            return self.commit_task()
