"""The upkeep of logs in the background: checkpoint files, flushes, and retention.

The checkpoint files of all data directories hold each log's start offset, synced offset and compacted offset; in a cluster also
its replicated offset.

Flushes are due for logs whose ``flush.ms`` has passed, and for segments that are no longer written to.

Retention removes old segments from many logs, a few at a time, so that the event loop can do other work in between. First each
log drops the segments that retention does not keep, so that they are no longer read. Then the new log start offsets are
written, once for all logs. Then the files are renamed, and later removed (odradek.storage.log.segment_files).
"""

import errno
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from odradek.protocol.errors import KafkaError
from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directories import DataDirectories
from odradek.storage.directories.data_directory import METADATA_LOG, OFFSET_FILES, DataDirectory, Partition
from odradek.storage.errors import is_directory_failure
from odradek.storage.log.flush import FlushTask
from odradek.storage.log.log import Log
from odradek.storage.log.segment import Segment
from odradek.storage.log.segment_files import SegmentRemoval
from odradek.storage.recovery.recovery import Warn

# The number of logs handled without a pause: a millisecond or two.
_TOGETHER: Final = 500


def aborted_of(log: Log) -> dict[int, tuple[int, int]]:
    """Return entries and CRC of the indexes of aborted transactions, by base offset."""
    return {
        segment.base_offset: segment.transaction_index.fingerprint()
        for segment in log.segments
        if segment.transaction_index is not None
    }


class OffsetCheckpoints:
    """Writes the offsets of ``logs``. A file is written only if it changes."""

    def __init__(
        self,
        directories: DataDirectories,
        logs: Mapping[Partition, Log],
        offline: Mapping[Partition, str],
        fail: Callable[[DataDirectory, str], None],
    ) -> None:
        """Take ``fail``, which takes a directory offline for a reason."""
        self._directories = directories
        self._logs = logs
        self._offline = offline
        self._fail = fail
        # The synced offset of the metadata log, which the controller syncs itself. A start checks that the log is complete up to
        # it.
        self.metadata_synced: Callable[[], int] | None = None
        # Returns the high watermark of a partition. A single broker has none: there it is the log's end.
        self.high_watermark_of: Callable[[Partition], int | None] | None = None
        # True if log start offsets could not be written, although segments before them may have been renamed.
        self.lack_starts = False

    def replicated_offset(self, key: Partition) -> int | None:
        """Return the offset below which a log is replicated; None if the broker has no cluster."""
        return None if self.high_watermark_of is None else self.high_watermark_of(key)

    def write(self) -> None:
        """Write all files but the compacted offsets. Raises OSError."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Do ``write`` in steps of some milliseconds, so that other work can run in between. Raises OSError."""
        yield from self._write_aborted()
        # In this order, and without a pause: a recovery point may have moved up to a new log start offset.
        self.write_start_offsets()
        self._write(checkpoints.RECOVERY_POINT_FILE, lambda log: log.recovery_point, self.metadata_synced)
        self.write_high_watermarks()

    def write_high_watermarks(self) -> None:
        """Write the replicated offsets. Raises OSError."""
        high_watermark_of = self.high_watermark_of
        if high_watermark_of is not None:
            self._write(checkpoints.HIGH_WATERMARK_FILE, lambda log: high_watermark_of(log.topic_partition))

    def write_start_offsets(self) -> None:
        """Write log start offsets. Raises OSError.

        Kafka leaves out a log that starts at a segment's beginning. Here the file distinguishes a removed segment from a lost
        one.
        """
        self.lack_starts = True
        self._write(checkpoints.LOG_START_FILE, lambda log: log.log_start_offset or None)
        self.lack_starts = False

    def write_cleaned_offsets(self) -> None:
        """Write the compacted offsets. Raises OSError."""
        for _ in self._write_aborted():
            pass
        self._write(checkpoints.CLEANER_OFFSET_FILE, lambda log: log.cleaned_offset)

    def _write_aborted(self) -> Iterator[None]:
        """Write entries and CRCs of the transaction indexes, in steps: Kafka takes a missing index for an empty one."""
        aborted: dict[str, checkpoints.Aborted] = {
            directory.path: {key: found for key in self._offline if (found := directory.aborted.get(key))}
            for directory in self._directories.online
        }
        for place, (key, log) in enumerate(list(self._logs.items()), 1):
            if place % _TOGETHER == 0:
                yield None
            if self._logs.get(key) is not log:
                continue
            found = aborted_of(log)
            held = aborted.get(log.directory.rpartition("/")[0])
            if found and held is not None:
                held[key] = found
        for directory in self._directories.online:
            # Another log may have taken the place of a log deleted meanwhile.
            held = {key: found for key, found in aborted[directory.path].items() if key in self._logs or key in self._offline}
            directory.write_aborted(held)

    def lower(self, key: Partition, offset: int) -> None:
        """Lower one log's larger offsets in the files to ``offset``, before the log is truncated. Raises OSError."""
        directory = self._directories.with_path(self._logs[key].directory.rpartition("/")[0])
        for name in OFFSET_FILES:
            held = directory.held_offset(name, key)
            if held is not None and held > offset:
                directory.note_offset(name, key, offset)

    def _write(self, name: str, offset_of: Callable[[Log], int | None], metadata_offset: Callable[[], int] | None = None) -> None:
        # Offline logs keep the offset that the file has.
        offsets = {directory.path: directory.held_of(name, self._offline) for directory in self._directories.online}
        for key, log in self._logs.items():
            offset = offset_of(log)
            if offset is not None:
                held = offsets.get(log.directory.rpartition("/")[0])
                if held is not None:
                    held[key] = offset
        if metadata_offset is not None and self._directories.metadata.path in offsets:
            offsets[self._directories.metadata.path][METADATA_LOG] = metadata_offset()
        failure: OSError | None = None
        for directory in self._directories.online:
            try:
                directory.write_offsets(name, offsets[directory.path])
            except OSError as error:
                failure = error
                if is_directory_failure(error):
                    self._fail(directory, str(error))
        if failure is not None:
            raise failure


_TOO_MANY_FILES = {errno.EMFILE, errno.ENFILE}


class LogFlusher:
    """Prepares the due flushes of ``logs``, and takes their results. Loop thread only; the tasks run in any thread."""

    def __init__(self, logs: Mapping[Partition, Log], on_error: Callable[[Log, OSError], object], warn: Warn) -> None:
        """Take ``on_error``, which is called with each disk error."""
        self._logs = logs
        self._on_error = on_error
        self._warn = warn

    def tasks(self, now_ms: int) -> Iterator[tuple[Log, FlushTask]]:
        """Yield the due flushes. Each must be run, and its result passed to ``finished``.

        Each is prepared on demand, and holds files of its log open until it has been run and dropped. A log whose flush cannot be
        prepared waits for the next call, with a warning.
        """
        for log in list(self._logs.values()):
            if self._logs.get(log.topic_partition) is not log:
                continue
            state = log.flush_state
            is_due = state.recovery_point < log.log_end_offset and now_ms - state.last_flush_ms >= log.config.flush_ms
            if log.has_lost_sync or not (is_due or state.recovery_point < log.segments.active.base_offset):
                continue
            try:
                task = state.flush_task(active=is_due)
            except OSError as error:
                self._warn("cannot flush a log", topic=log.topic, partition=log.partition, reason=str(error))
                self._on_error(log, error)
            else:
                yield log, task

    def finished(self, log: Log, task: FlushTask, error: OSError | None, now_ms: int) -> None:
        """Give ``log`` the result of its flush, ``error`` if it failed. Ignores a log deleted meanwhile."""
        if self._logs.get(log.topic_partition) is not log:
            return
        if error is None:
            log.flush_state.flushed(task, now_ms)
        elif error.errno in _TOO_MANY_FILES:
            # A directory could not be opened. Files synced so far are synced; the next flush covers the rest.
            self._warn("cannot flush a log", topic=log.topic, partition=log.partition, reason=str(error))
        else:
            log.flush_state.sync_failed(error)
            self._warn("log out of service: it cannot be synced", topic=log.topic, partition=log.partition, reason=str(error))


# Some milliseconds of work each.
_LOGS_SEEN = 500
_LOGS_SHORTENED = 8
_LOGS_RENAMED = 32


class RetentionCheck:
    """Applies retention to all of ``logs``. Loop thread only."""

    def __init__(
        self,
        logs: Mapping[Partition, Log],
        removal: SegmentRemoval,
        checkpoints: OffsetCheckpoints,
        on_error: Callable[[Log, OSError], object],
        warn: Warn,
    ) -> None:
        """Take ``on_error``, which is called with each disk error."""
        self._logs = logs
        self._removal = removal
        self._checkpoints = checkpoints
        self._on_error = on_error
        self._warn = warn

    def run(self, now_ms: int) -> int:
        """Remove old segments from all logs. Return their number."""
        return sum(self.steps(now_ms))

    def steps(self, now_ms: int) -> Iterator[int]:
        """Do ``run`` in steps of some milliseconds, each yielding the number of removed segments.

        If a log fails, it waits for the next run, with a warning.
        """
        removed: list[tuple[Log, list[Segment]]] = []
        gone = shortened = 0
        for number, log in enumerate(list(self._logs.values()), start=1):
            segments = self._release(log, now_ms)
            if segments:
                removed.append((log, segments))
                gone += len(segments)
                shortened += 1
            if shortened == _LOGS_SHORTENED or number % _LOGS_SEEN == 0:
                yield gone
                gone = shortened = 0
        if not removed:
            return
        one_by_one = not self._write_starts()
        yield gone
        for number, (log, segments) in enumerate(removed, start=1):
            self._set_aside(log, segments, one_by_one=one_by_one)
            if number % _LOGS_RENAMED == 0:
                yield 0

    def _is_there(self, log: Log) -> bool:
        """Return whether the log still exists. If it was deleted, a new log in its place has files of the same names."""
        return self._logs.get(log.topic_partition) is log

    def _release(self, log: Log, now_ms: int) -> list[Segment]:
        try:
            if not self._is_there(log):
                return []
            return log.retention.release_old_segments(now_ms, self._checkpoints.replicated_offset(log.topic_partition))
        except (KafkaError, OSError) as error:
            self._warn("cannot delete old segments", topic=log.topic, partition=log.partition, reason=str(error))
            if isinstance(error, OSError):
                self._on_error(log, error)
            return []

    def _write_starts(self) -> bool:
        try:
            self._checkpoints.write_start_offsets()
        except OSError as error:
            # Removing segments makes room if the disk is full.
            self._warn("cannot write log start offsets", reason=str(error))
            return False
        return True

    def _set_aside(self, log: Log, segments: list[Segment], *, one_by_one: bool) -> None:
        if not self._is_there(log):
            return
        delay_ms = log.config.file_delete_delay_ms
        try:
            self._removal.set_aside(log.directory, segments, delay_ms=delay_ms, one_by_one=one_by_one)
        except OSError as error:
            self._warn("old segments stay until the next start", topic=log.topic, partition=log.partition, reason=str(error))
