"""One partition's log: record batches appended at its end, read from any offset, found by timestamp.

Directory ``<topic>-<partition>/``: segments (odradek.storage.segment), ``leader-epoch-checkpoint``, ``partition.metadata``. Where
the log starts and up to where it is flushed is in the data directory's checkpoints, which the LogManager keeps.

An append is one write to the active segment: the batch as it came, with offset and leader epoch in front. It is acknowledged when
the operating system has it; ``flush.messages`` and ``flush.ms`` ask for more. What is appended may be flushed for many at once,
by whom ``on_flush_due`` calls: until then it is in the log, and neither acknowledged nor read. A marker is flushed before its
append returns, with all before it: a transaction is not complete while one of its markers may be lost.

A Log belongs to the loop thread. How it lies on disk is odradek.storage.log_store's to know.
"""

from collections.abc import Sequence
from typing import Final

from odradek.protocol.compression import NONE
from odradek.protocol.control_records import build_end_txn_marker
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.plain_batches import build_batch
from odradek.protocol.record_batch import (
    LOG_OVERHEAD,
    STAMPED_BYTES,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    read_header,
    stamped_head,
    stamped_head_append_time,
    validate,
)
from odradek.storage import log_lookup, validation
from odradek.storage.log_config import LogConfig
from odradek.storage.log_lookup import TimestampOffset
from odradek.storage.log_segments import LogSlice
from odradek.storage.log_store import LogStore

_NO_TIMESTAMP: Final = -1
# Up to this size of a batch to copy it takes less time than to hand the system two buffers.
_COPIED_BYTES: Final = 4096


class AppendInfo:
    """Where a batch lies. ``log_append_time_ms`` is -1 for CreateTime; ``duplicate``: it was there already, not written again."""

    __slots__ = ("duplicate", "first_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, first_offset: int, last_offset: int, log_append_time_ms: int, log_start_offset: int, duplicate: bool
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate


class Log(LogStore):
    """One partition's log. Offsets are those of records; ``log_end_offset`` is the next record's."""

    def append(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        transaction_verified: bool = False,
        header: BatchHeader | None = None,
    ) -> AppendInfo:
        """Append what a Produce request of version 3 or later has for this partition: one batch, checked and stamped.

        A transactional batch needs the producer's transaction to be open here already, or ``transaction_verified`` (KIP-890).
        ``header`` is that of ``records``, for who has read it.

        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
        INVALID_TXN_STATE, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH: nothing has been written then.
        KAFKA_STORAGE_ERROR: nothing has been written, or it could not be synced.
        """
        header, records = self._checked(records, header, now_ms)
        producers = None
        if header.producer_id >= 0:
            producers = self._producers or self.producers
            if header.attributes & TRANSACTIONAL_MASK:
                duplicate = producers.check_transactional(header, transaction_verified)
            else:
                duplicate = producers.check(header)
            if duplicate is not None:
                return AppendInfo(duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, self.log_start_offset, True)
        base_offset = self.log_end_offset
        if self._stamps_append_time:
            append_time_ms = timestamp = now_ms
            head = stamped_head_append_time(header, records, 0, base_offset, leader_epoch, now_ms)
        else:
            append_time_ms = _NO_TIMESTAMP
            timestamp = header.max_timestamp
            head = stamped_head(header.batch_length, base_offset, leader_epoch)
        size = header.batch_length + LOG_OVERHEAD
        last_offset = base_offset + header.last_offset_delta
        buffers: tuple[Buffer, ...]
        if size <= _COPIED_BYTES:
            buffers = (b"".join((head, records[len(head) : size])),)
        else:
            buffers = (head, memoryview(records)[len(head) : size])
        self._write(buffers, size, last_offset, timestamp, leader_epoch, now_ms)
        if producers is not None:
            producers.record(header, base_offset, timestamp)
        if last_offset + 1 - self.flushed_offset >= self._flush_messages:
            self._flush_due(now_ms)
        return AppendInfo(base_offset, last_offset, append_time_ms, self.log_start_offset, False)

    def _checked(self, records: Buffer, header: BatchHeader | None, now_ms: int) -> tuple[BatchHeader, Buffer]:
        """The produced batch and its header if it may be appended; the batch may have had to be rewritten."""
        if self._sync_error:
            # Not even a batch that is there already may be acknowledged.
            self._ensure_synced()
        if header is None:
            try:
                header = read_header(records)
            except MalformedMessage as error:
                raise validation.refuse_malformed(records, error) from error
        size = header.batch_length + LOG_OVERHEAD
        if len(records) != size:
            validation.ensure_one_batch(records, size)
        if header.base_offset:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"the record batch begins with offset {header.base_offset}, not 0")
        if size > self._max_message_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{size} bytes, and max.message.bytes is {self._max_message_bytes}")
        validate(header, records)
        if (
            self._inspects_all
            or header.max_timestamp - now_ms > self._latest_in_ms
            or header.attributes & TIMESTAMP_TYPE_MASK
            or (header.attributes & TRANSACTIONAL_MASK and header.producer_id < 0)
        ):
            inspected = validation.inspect(records, header, self._config, now_ms)
            if inspected is not records:
                records, header = inspected, read_header(inspected)
                size = header.batch_length + LOG_OVERHEAD
        if size > self._segment_bytes:
            raise _too_large_for_segment(size, self._config)
        return header, records

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
        """End a producer's transaction here, as its coordinator has decided; a marker is written though there be none.

        KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        producers = self._producers or self.producers
        producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        batch, rest = _LAST_MARKER.batch(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
        offset = self.log_end_offset
        size = len(batch)
        if self._stamps_append_time:
            head = stamped_head_append_time(read_header(batch), batch, 0, offset, leader_epoch, now_ms)
            rest = batch[len(head) :]
        else:
            head = stamped_head(size - LOG_OVERHEAD, offset, leader_epoch)
        self._write((head + rest,), size, offset, now_ms, leader_epoch, now_ms)
        aborted = producers.record_marker(producer_id, producer_epoch, coordinator_epoch, commit, offset, now_ms)
        if aborted is not None:
            self.segments.active.append_aborted(aborted)
        if offset + 1 - self.flushed_offset >= self._flush_messages:
            self.flush(now_ms)
        append_time_ms = now_ms if self._stamps_append_time else _NO_TIMESTAMP
        return AppendInfo(offset, offset, append_time_ms, self.log_start_offset, False)

    def append_internal(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        leader_epoch: int,
        now_ms: int,
        compression: int = NONE,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append what the broker itself has to say, (key, value) of one record at least, as one batch; its size in bytes.

        Records under a ``producer``, its id and epoch (offsets that a transaction commits), open its transaction; markers are
        ``append_marker``'s. KafkaError: RECORD_LIST_TOO_LARGE, KAFKA_STORAGE_ERROR, INVALID_PRODUCER_EPOCH.
        """
        if producer is not None:
            self.producers.check_internal(*producer)
        base_offset = self.log_end_offset
        batch = build_batch(
            records,
            now_ms,
            compression=compression,
            producer=producer,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=TIMESTAMP_TYPE_MASK if self._stamps_append_time else 0,
        )
        size = len(batch)
        if size > self._segment_bytes:
            raise _too_large_for_segment(size, self._config)
        last_offset = base_offset + len(records) - 1
        self._write((batch,), size, last_offset, now_ms, leader_epoch, now_ms)
        if producer is not None:
            self.producers.record_internal(producer[0], producer[1], base_offset, last_offset, now_ms)
        if last_offset + 1 - self.flushed_offset >= self._flush_messages:
            self._flush_due(now_ms)
        return size

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction, as far as it is still in the log. KafkaError: KAFKA_STORAGE_ERROR."""
        transactions = (self._producers or self.producers).open_transactions
        return max(next(iter(transactions)), self.log_start_offset) if transactions else None

    def aborted_transactions(self, fetch_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions with records from ``fetch_offset`` up to ``end_offset``.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        try:
            return [found[:2] for found in self.segments.aborted_transactions(fetch_offset, end_offset)]
        except OSError as error:
            raise self.storage_error(error) from error

    def aborted_in(self, found: LogSlice, offset: int, upper_offset: int) -> list[tuple[int, int]]:
        """``aborted_transactions`` with records in what ``read`` has ``found`` from ``offset`` on, perhaps some more behind it.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        if not self.segments.has_aborted_from(offset):
            return []
        try:
            end_offset = self.segments.end_offset_of(found, offset, upper_offset)
        except OSError as error:
            raise self.storage_error(error) from error
        return self.aborted_transactions(offset, end_offset)

    def read(self, offset: int, max_bytes: int, *, upper_offset: int, min_one_batch: bool) -> LogSlice | None:
        """Batches from the one with ``offset`` on, below ``upper_offset`` (a batch boundary), of one segment; None if none.

        At most ``max_bytes``, which may cut the last batch; but a first batch that does not fit is there whole if
        ``min_one_batch`` and not at all otherwise (KIP-74). KafkaError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not within [{self.log_start_offset}, {end_offset}]"
            )
        if offset == end_offset:
            self.segments.remember_tail(end_offset)
            return None
        if offset >= upper_offset:
            return None
        try:
            found = self.segments.read(offset, max_bytes, upper_offset, end_offset, min_one_batch=min_one_batch)
        except OSError as error:
            raise self.storage_error(error) from error
        if found is not None:
            found.on_error = self.storage_error
        return found

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record that is not older than ``timestamp``. Raises LogCorrupt, OSError."""
        return log_lookup.first_at_or_after(self.segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp (KIP-734). Raises LogCorrupt, OSError."""
        return log_lookup.first_with_max_timestamp(self.segments)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(the largest epoch not above ``epoch``, its end offset); (-1, -1) if that is not known (KIP-279)."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Let the log start at ``offset``, if that is further on; the log start offset then. Files go when old segments do.

        KafkaError: OFFSET_OUT_OF_RANGE beyond the log's end, KAFKA_STORAGE_ERROR.
        """
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is beyond the log's end at {self.log_end_offset}")
        if offset > self.log_start_offset:
            self._start_at(offset)
        return self.log_start_offset


class _LastMarker:
    """The marker that was built last: a transaction ends with the same in all its partitions, one after the other."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # One object, for there may be brokers in other threads: what it is of, the batch, and what is behind its stamp.
        self._known: tuple[int, int, int, bool, int, bytes, bytes] = (-1, -1, -1, False, -1, b"", b"")

    def batch(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> tuple[bytes, bytes]:
        """The marker's batch, and what is behind the stamp."""
        known = self._known
        if (
            known[0] != producer_id
            or known[1] != producer_epoch
            or known[2] != coordinator_epoch
            or known[3] != commit
            or known[4] != now_ms
        ):
            batch = build_end_txn_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
            known = (producer_id, producer_epoch, coordinator_epoch, commit, now_ms, batch, batch[STAMPED_BYTES:])
            self._known = known
        return known[5], known[6]


_LAST_MARKER: Final = _LastMarker()


def _too_large_for_segment(size: int, config: LogConfig) -> KafkaError:
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes, and segment.bytes is {config.segment_bytes}")
