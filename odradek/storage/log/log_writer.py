"""Writes batches at the end of a log, and rolls it to a new segment."""

from collections.abc import Sequence
from contextlib import suppress

from odradek.protocol.errors import KafkaError
from odradek.protocol.record_batch import Buffer
from odradek.storage.errors import DiskErrors
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.local_log import LocalLog, LogSettings
from odradek.storage.log.log_producers import LogProducers
from odradek.storage.log.segment import Segment


class LogWriter:
    """The only writer of a log's active segment. Loop thread only."""

    __slots__ = ("_errors", "_flush_state", "_local", "_producers", "_settings")

    def __init__(
        self, local: LocalLog, settings: LogSettings, flush_state: FlushState, producers: LogProducers, errors: DiskErrors
    ) -> None:
        self._local = local
        self._settings = settings
        self._flush_state = flush_state
        self._producers = producers
        self._errors = errors

    def write(
        self, buffers: Sequence[Buffer], size: int, last_offset: int, timestamp: int, leader_epoch: int, now_ms: int
    ) -> None:
        """Write one batch at the end of the log, in a new segment if one is due. KafkaError: KAFKA_STORAGE_ERROR.

        ``timestamp`` is its max timestamp.
        """
        flush_state = self._flush_state
        if flush_state.sync_error:
            flush_state.ensure_synced()
        local = self._local
        settings = self._settings
        segment = local.segments.active
        try:
            if segment.should_roll(size, last_offset, timestamp, now_ms, settings.segment_bytes, settings.max_segment_ms):
                segment = self.roll(now_ms)
            if leader_epoch != local.leader_epochs.latest:
                local.leader_epochs.assign(leader_epoch, local.log_end_offset)
            segment.append(buffers, size, last_offset, timestamp, settings.index_interval_bytes)
        except OSError as error:
            flush_state.has_failed_append = True
            raise self._errors.report(error) from error
        local.log_end_offset = last_offset + 1

    def roll(self, now_ms: int) -> Segment:
        """Begin a new active segment, unless the current one is empty. Return the active segment. Raises OSError."""
        local = self._local
        active = local.segments.active
        if active.size:
            active.close_indexes()
            active = local.begin_segment(local.log_end_offset, self._settings.config, now_ms)
            # Without this snapshot, the next start only reads more of the log.
            with suppress(OSError, KafkaError):
                self._producers.take_snapshot()
        return active


class AppendInfo:
    """The offsets of an appended batch. ``log_append_time_ms`` is -1 for CreateTime. A ``duplicate`` was not written again."""

    __slots__ = ("duplicate", "first_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, first_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int, duplicate: bool
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
