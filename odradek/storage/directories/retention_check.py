"""Removes old segments from many logs, a few at a time, so that the event loop can do other work in between.

First each log drops the segments that retention does not keep, so that they are no longer read. Then the new log start offsets
are written, once for all logs. Then the files are renamed, and later removed (odradek.storage.log.segment_removal).
"""

from collections.abc import Callable, Iterator, Mapping

from odradek.protocol.errors import KafkaError
from odradek.storage.directories.data_directory import Partition
from odradek.storage.directories.offset_checkpoints import OffsetCheckpoints
from odradek.storage.log.log import Log
from odradek.storage.log.segment import Segment
from odradek.storage.log.segment_removal import SegmentRemoval
from odradek.storage.recovery.recovery import Warn

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
