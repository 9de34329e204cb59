"""Appends of batches that the broker itself builds: transaction markers, and the records of coordinators and controller.

Kafka's AppendOrigin.COORDINATOR: producer epochs are checked, sequence numbers are not.
"""

from collections.abc import Sequence
from typing import Final

from odradek.protocol.compression import NONE
from odradek.protocol.plain_batches import build_batch
from odradek.protocol.record_batch import (
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    read_header,
    stamped_head,
    stamped_head_append_time,
)
from odradek.storage.log.control_batches import LAST_MARKER
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.local_log import LocalLog, LogSettings
from odradek.storage.log.log_producers import LogProducers
from odradek.storage.log.log_writer import AppendInfo, LogWriter
from odradek.storage.log.validation import too_large_for_segment
from odradek.storage.recovery.recovery import Warn

_NO_TIMESTAMP: Final = -1


class CoordinatorAppends:
    """The broker's own appends to one log. Loop thread only."""

    __slots__ = ("_flush_state", "_local", "_producers", "_settings", "_warn", "_writer")

    def __init__(
        self,
        local: LocalLog,
        settings: LogSettings,
        flush_state: FlushState,
        producers: LogProducers,
        writer: LogWriter,
        warn: Warn,
    ) -> None:
        self._local = local
        self._settings = settings
        self._flush_state = flush_state
        self._producers = producers
        self._writer = writer
        self._warn = warn

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
