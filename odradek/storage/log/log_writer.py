"""Writes batches at the end of a log, and rolls it to a new segment.

``CoordinatorAppends`` writes the batches that the broker itself builds: transaction markers, and the records of coordinators
and controller. It is Kafka's AppendOrigin.COORDINATOR: producer epochs are checked, sequence numbers are not.

``LogProducers`` restores the log's producers from snapshot and log when they are first needed, and writes their snapshots. A
cleanly stopped log has a snapshot at its end. Most opened logs get no produce requests, and then the snapshot is not read.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from odradek.protocol.compression import NONE
from odradek.protocol.errors import KafkaError
from odradek.protocol.plain_batches import build_batch
from odradek.protocol.record_batch import (
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    Buffer,
    read_header,
    stamped_head,
    stamped_head_append_time,
)
from odradek.storage.errors import DiskErrors
from odradek.storage.log.control_batches import LAST_MARKER
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.local_log import LocalLog, LogSettings
from odradek.storage.log.producer_restore import restore
from odradek.storage.log.producer_state import ProducerStates
from odradek.storage.log.segment import Segment
from odradek.storage.log.segment_files import SegmentRemoval
from odradek.storage.log.validation import too_large_for_segment
from odradek.storage.recovery.log_loader import LoadedLog
from odradek.storage.recovery.recovery import Warn


class LogProducers:
    """The producers of one log, ``loaded`` on first use, and their ``snapshots``. Loop thread only."""

    __slots__ = ("_errors", "_local", "_opened_ms", "_restore_offset", "_settings", "loaded", "snapshots")

    def __init__(self, local: LocalLog, settings: LogSettings, errors: DiskErrors, loaded: LoadedLog, now_ms: int) -> None:
        self._local = local
        self._settings = settings
        self._errors = errors
        self._opened_ms = now_ms
        # While the producers are not loaded, no producer's batch lies after this offset: its append would have loaded them.
        self._restore_offset = loaded.log_end_offset
        self.loaded: ProducerStates | None = loaded.producers
        self.snapshots = loaded.snapshots

    def load(self) -> ProducerStates:
        """Return the producers, loaded from their snapshot if needed. KafkaError: KAFKA_STORAGE_ERROR."""
        if self.loaded is None:
            local = self._local
            end_offset = self._restore_offset
            try:
                self.loaded = restore(
                    list(local.segments),
                    self.snapshots,
                    local.log_start_offset,
                    end_offset,
                    end_offset,
                    self._settings.config,
                    self._opened_ms,
                )
            except OSError as error:
                raise self._errors.report(error) from error
        return self.loaded

    def reset(self) -> None:
        """Drop the loaded producers after a truncation. The next use loads them again from snapshot and log."""
        self.loaded = None
        self._restore_offset = self._local.log_end_offset

    def take_snapshot(self) -> None:
        """Write the producers as of the log end offset, unless that snapshot exists. Raises KafkaError, OSError."""
        local = self._local
        offset = local.log_end_offset
        # An empty log may have had producers.
        has_any = offset > local.log_start_offset or (self.loaded is not None and self.loaded.by_id)
        if has_any and offset not in self.snapshots.offsets:
            self.snapshots.take(self.load(), offset)

    def expire(self, now_ms: int) -> int:
        """Drop idle producers (``producer.id.expiration.ms``). Return their number."""
        if self.loaded is None:
            return 0
        return self.loaded.expire(now_ms, self._settings.config.producer_id_expiration_ms)


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


@dataclass(frozen=True, slots=True)
class LogParts:
    """The parts of one log, for the classes of ``LogWork``."""

    local: LocalLog
    settings: LogSettings
    flush_state: FlushState
    producers: LogProducers
    writer: LogWriter
    removal: SegmentRemoval
    errors: DiskErrors
    warn: Warn


class LogWork:
    """The base of the classes that change a log. It keeps the log's parts as fields of its own: each append reads them."""

    __slots__ = ("_errors", "_flush_state", "_local", "_producers", "_settings", "_writer")

    def __init__(self, parts: LogParts) -> None:
        self._local = parts.local
        self._settings = parts.settings
        self._flush_state = parts.flush_state
        self._producers = parts.producers
        self._writer = parts.writer
        self._errors = parts.errors


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


_NO_TIMESTAMP: Final = -1


class CoordinatorAppends(LogWork):
    """The broker's own appends to one log. Loop thread only."""

    __slots__ = ("_warn",)

    def __init__(self, parts: LogParts) -> None:
        super().__init__(parts)
        self._warn = parts.warn

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        *,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """End a producer's transaction in this partition. The marker is written even if none is open.

        A commit first aborts a transaction left open by an earlier epoch (``producer_state``). KafkaError:
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        producers = self._producers.loaded or self._producers.load()
        producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        if commit:
            # A transaction's marker has its epoch, or the next one (KIP-890).
            self.abort_left_open(producer_id, producer_epoch - 1, leader_epoch=leader_epoch, now_ms=now_ms)
        batch, rest = LAST_MARKER.batch(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
        settings = self._settings
        local = self._local
        offset = local.log_end_offset
        size = len(batch)
        if settings.stamps_append_time:
            head = stamped_head_append_time(read_header(batch), batch, 0, offset, leader_epoch, now_ms)
            rest = batch[len(head) :]
        else:
            head = stamped_head(size - LOG_OVERHEAD, offset, leader_epoch)
        self._writer.write((head + rest,), size, offset, now_ms, leader_epoch, now_ms)
        aborted = producers.record_marker(
            producer_id, producer_epoch, coordinator_epoch, commit, offset, now_ms, transaction_version
        )
        if aborted is not None:
            local.segments.active.append_aborted(aborted)
        if offset + 1 - self._flush_state.flushed_offset >= settings.flush_messages:
            self._flush_state.flush(now_ms)
        append_time_ms = now_ms if settings.stamps_append_time else _NO_TIMESTAMP
        return AppendInfo(offset, offset, append_time_ms, local.log_start_offset, False)

    def abort_left_open(self, producer_id: int, oldest_epoch: int, *, leader_epoch: int, now_ms: int) -> None:
        """Abort the producer's open transaction if it is ``left_open``. KafkaError: KAFKA_STORAGE_ERROR."""
        producer = (self._producers.loaded or self._producers.load()).left_open(producer_id, oldest_epoch)
        if producer is None:
            return
        self._warn(
            "the end of a transaction was lost: aborting it",
            topic=self._local.topic_partition[0],
            partition=self._local.topic_partition[1],
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            start_offset=producer.transaction_start,
        )
        self.append_marker(
            producer_id, producer.epoch, producer.coordinator_epoch, False, leader_epoch=leader_epoch, now_ms=now_ms
        )

    def append_internal(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        leader_epoch: int,
        now_ms: int,
        compression: int = NONE,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append at least one of the broker's own (key, value) records as one batch. Return its size in bytes.

        Records of a ``producer``, an id and epoch, open its transaction (for offsets committed in a transaction). KafkaError:
        RECORD_LIST_TOO_LARGE, KAFKA_STORAGE_ERROR, INVALID_PRODUCER_EPOCH.
        """
        if producer is not None:
            self._producers.load().check_internal(*producer)
            self.abort_left_open(*producer, leader_epoch=leader_epoch, now_ms=now_ms)
        settings = self._settings
        base_offset = self._local.log_end_offset
        batch = build_batch(
            records,
            now_ms,
            compression=compression,
            producer=producer,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=TIMESTAMP_TYPE_MASK if settings.stamps_append_time else 0,
        )
        size = len(batch)
        if size > settings.segment_bytes:
            raise too_large_for_segment(size, settings.segment_bytes)
        last_offset = base_offset + len(records) - 1
        self._writer.write((batch,), size, last_offset, now_ms, leader_epoch, now_ms)
        if producer is not None:
            self._producers.load().record_internal(producer[0], producer[1], base_offset, last_offset, now_ms)
        if last_offset + 1 - self._flush_state.flushed_offset >= settings.flush_messages:
            self._flush_state.flush_soon(now_ms)
        return size
