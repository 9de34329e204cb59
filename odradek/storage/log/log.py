"""One partition's log: record batches appended at its end, read from any offset, found by timestamp.

Directory ``<topic>-<partition>/``: segments (``segment``), ``leader-epoch-checkpoint``, ``partition.metadata``. The
log start offset and the recovery point are in the data directory's checkpoint files, which the LogManager writes.

An append is one write to the active segment: the batch as received, with offset and leader epoch filled in. It is acknowledged
once the operating system has it. ``flush.messages`` and ``flush.ms`` can demand more (odradek.storage.log.flush_state).

A Log is made of parts, none of which knows the Log:

    LocalLog      the files, the log start offset, the log end offset, the leader epochs
    LogWriter     writes at the end, rolls to a new segment
    CoordinatorAppends   appends the broker's own batches: markers, the coordinators' records
    FlushState    recovery point, flushed offset, the next sync
    LogProducers  producers and their snapshots
    LogRetention  removes old segments, replaces compacted ones
    FollowerAppends, LogTruncation   the work of a follower
    LogSettings   the topic's configuration; DiskErrors reports errors

Kafka's name is UnifiedLog.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import (
    LOG_OVERHEAD,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    stamped_head,
    stamped_head_append_time,
)
from odradek.storage.directories import checkpoints
from odradek.storage.errors import DiskErrors
from odradek.storage.filesystem import FileSystem
from odradek.storage.log import log_lookup
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.follower_appends import FollowerAppends
from odradek.storage.log.local_log import LocalLog, LogSettings, LogSlice
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_lookup import TimestampOffset
from odradek.storage.log.log_truncation import LogRetention, LogTruncation
from odradek.storage.log.log_writer import AppendInfo, CoordinatorAppends, LogParts, LogProducers, LogWriter
from odradek.storage.log.producer_state import ProducerStates
from odradek.storage.log.segment import Segment
from odradek.storage.log.segment_files import SegmentRemoval
from odradek.storage.log.validation import admitted
from odradek.storage.recovery.load_checks import LoadRequest
from odradek.storage.recovery.log_loader import LoadedLog, load
from odradek.storage.recovery.recovery import Warn

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_TIMESTAMP: Final = -1
_NONE_ABORTED: Final[Mapping[int, tuple[int, int]]] = MappingProxyType({})
# Copying a batch of at most this size is faster than passing two buffers to the system.
_COPIED_BYTES: Final = 4096


class Log:
    """One partition's log. All offsets are record offsets. Loop thread only; a FlushTask may run in any thread."""

    def __init__(
        self,
        request: LoadRequest,
        loaded: LoadedLog,
        topic_id: UUID | None,
        removal: SegmentRemoval,
        disk_errors: DiskErrors,
    ) -> None:
        self.topic, self.partition = self.topic_partition = request.topic_partition
        self.topic_id = topic_id
        self.directory = request.directory
        self.file_system: FileSystem = request.file_system
        # The end offset of the last compaction, None before the first (odradek.storage.cleaning).
        self.cleaned_offset = request.cleaned_offset
        # Read by other threads.
        self.is_closed = False
        # Lowers the log's offsets in the checkpoint files (odradek.storage.log.log_truncation). The LogManager sets it.
        self.before_truncation: Callable[[tuple[str, int], int], object] | None = None
        self._settings = settings = LogSettings(request.config)
        self._local = local = LocalLog(request, loaded)
        self.segments = local.segments
        self.leader_epochs = local.leader_epochs
        self.flush_state = flush_state = FlushState(local, settings, disk_errors, loaded.recovery_point, request.now_ms)
        self._producers = producers = LogProducers(local, settings, disk_errors, loaded, request.now_ms)
        self._writer = writer = LogWriter(local, settings, flush_state, producers, disk_errors)
        self._parts = LogParts(local, settings, flush_state, producers, writer, removal, disk_errors, request.warn)
        self.coordinator_appends = CoordinatorAppends(self._parts)
        self.retention = LogRetention(self._parts)

    @classmethod
    def open(  # noqa: PLR0913 - all that is known of a log before it is read, by name
        cls,
        file_system: FileSystem,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int | None = None,
        clean: bool,
        now_ms: int,
        warn: Warn,
        topic_id: UUID | None = None,
        removal: SegmentRemoval | None = None,
        clean_end_offset: int | None = None,
        is_metadata: bool = False,
        may_lack_ends: bool = True,
        aborted: Mapping[int, tuple[int, int]] = _NONE_ABORTED,
        disk_errors: DiskErrors | None = None,
    ) -> Self:
        """Open the log in ``directory``, created if need be; unless ``clean``, recover records past ``recovery_point``.

        ``topic_id`` is recorded if the directory has none. ``removal`` takes the files of removed segments, ``disk_errors`` the
        errors. LoadRequest explains the other parameters. Raises LogCorrupt, OSError, ValueError (partition.metadata).
        """
        found_id = checkpoints.read_topic_id(file_system, directory)
        if found_id is None:
            file_system.make_dirs(directory)
        if found_id is None and topic_id is not None:
            checkpoints.write_topic_id(file_system, directory, topic_id)
        request = LoadRequest(
            file_system=file_system,
            directory=directory,
            topic_partition=(topic, partition),
            config=config,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_offset=cleaned_offset,
            is_clean=clean,
            now_ms=now_ms,
            warn=warn,
            clean_end_offset=clean_end_offset,
            is_metadata=is_metadata,
            may_lack_ends=may_lack_ends,
            aborted=aborted,
        )
        # If the ids are equal, use the caller's object, so that the partitions of a topic share it.
        known_id = topic_id if found_id in (None, topic_id) else found_id
        return cls(request, load(request), known_id, removal or SegmentRemoval(file_system), disk_errors or DiskErrors())

    # ------------------------------------------------------------------------------------------------------- its state

    @property
    def log_start_offset(self) -> int:
        """Return the first offset that may be read."""
        return self._local.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Return the next record's offset."""
        return self._local.log_end_offset

    @property
    def recovery_point(self) -> int:
        """Return the offset below which records and indexes are on disk."""
        return self.flush_state.recovery_point

    @property
    def flushed_offset(self) -> int:
        """Return the offset below which records are on disk."""
        return self.flush_state.flushed_offset

    @property
    def awaits_flush(self) -> bool:
        """Return whether appended records wait for a flush and cannot be read before."""
        return self.flush_state.awaits_flush

    @property
    def has_lost_sync(self) -> bool:
        """Return whether a sync has failed, after which nothing is appended."""
        return bool(self.flush_state.sync_error)

    @property
    def is_being_cleaned(self) -> bool:
        """Return whether another thread reads the segments to compact or move them. No segment is removed meanwhile."""
        return self.retention.is_being_cleaned

    @is_being_cleaned.setter
    def is_being_cleaned(self, value: bool) -> None:
        self.retention.is_being_cleaned = value

    @property
    def config(self) -> LogConfig:
        """Return the topic's configuration, which may be replaced at any time."""
        return self._settings.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._settings.use(config)

    @property
    def max_batch_bytes(self) -> int:
        """Return the size of the largest batch that ``max.message.bytes`` and ``segment.bytes`` allow."""
        return min(self._settings.max_message_bytes, self._settings.segment_bytes)

    @property
    def size_bytes(self) -> int:
        """Return the size of the record batches, as DescribeLogDirs reports it."""
        return sum(segment.size for segment in self.segments)

    @property
    def producers(self) -> ProducerStates:
        """Return the producers, loaded on first use. KafkaError: KAFKA_STORAGE_ERROR."""
        return self._producers.load()

    @property
    def knows_producers(self) -> bool:
        """Return whether the producers are loaded. Idle logs load them on first use."""
        return self._producers.loaded is not None

    # --------------------------------------------------------------------------------------------------------- appends

    def append(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        transaction_verified: bool = False,
        header: BatchHeader | None = None,
        is_inspected: bool = False,
    ) -> AppendInfo:
        """Append one partition's records of a Produce request of version 3 or later: one batch, checked and stamped.

        A transactional batch needs the producer's transaction to be open here already, or ``transaction_verified`` (KIP-890). It
        aborts a transaction left open by an earlier epoch (``producer_state``). ``header`` is the header of ``records``, if the
        caller has read it. Raises LongInspection for a batch that takes long to open: run it, and append its result with
        ``is_inspected``.

        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
        INVALID_TXN_STATE, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH: nothing has been written.
        KAFKA_STORAGE_ERROR: nothing has been written, or it could not be synced.
        """
        flush_state = self.flush_state
        if flush_state.sync_error:
            # Not even a duplicate may be acknowledged.
            flush_state.ensure_synced()
        local = self._local
        settings = self._settings
        header, records = admitted(records, header, settings, now_ms, is_inspected)
        producers = None
        if header.producer_id >= 0:
            producers = self._producers.loaded or self._producers.load()
            if header.attributes & TRANSACTIONAL_MASK:
                duplicate = producers.check_transactional(header, transaction_verified)
            else:
                duplicate = producers.check(header)
            if duplicate is not None:
                return AppendInfo(
                    duplicate.first_offset, duplicate.last_offset, duplicate.timestamp, local.log_start_offset, True
                )
            if transaction_verified:
                self.coordinator_appends.abort_left_open(
                    header.producer_id, header.producer_epoch, leader_epoch=leader_epoch, now_ms=now_ms
                )
        base_offset = local.log_end_offset
        if settings.stamps_append_time:
            append_time_ms = timestamp = now_ms
            head = stamped_head_append_time(header, records, 0, base_offset, leader_epoch, now_ms)
        else:
            append_time_ms = _NO_TIMESTAMP
            timestamp = header.max_timestamp
            head = stamped_head(header.batch_length, base_offset, leader_epoch)
        size = header.batch_length + LOG_OVERHEAD
        last_offset = base_offset + header.last_offset_delta
        buffers: tuple[Buffer, ...]
        if size > _COPIED_BYTES:
            buffers = (head, memoryview(records)[len(head) : size])
        elif isinstance(records, bytes):
            # True of nearly all small batches, and 0.06 us faster than the join.
            buffers = (head + records[len(head) : size],)
        else:
            buffers = (b"".join((head, records[len(head) : size])),)
        self._writer.write(buffers, size, last_offset, timestamp, leader_epoch, now_ms)
        if producers is not None:
            producers.record(header, base_offset, timestamp)
        if last_offset + 1 - flush_state.flushed_offset >= settings.flush_messages:
            flush_state.flush_soon(now_ms)
        return AppendInfo(base_offset, last_offset, append_time_ms, local.log_start_offset, False)

    def append_as_follower(self, batches: Buffer, *, leader_epoch: int, now_ms: int) -> AppendInfo | None:
        """Append consecutive batches as a leader wrote them; the last may be cut. Return None if none is complete.

        Batches keep their leader epochs and their offsets, which begin at the log end offset or after a gap. Batches of an epoch
        above ``leader_epoch``, the fetch's epoch, are skipped. All batches are checked before the first is written; a disk error
        may leave some of them appended. ValueError: UnexpectedAppendOffset, OffsetsOutOfOrder. KafkaError: CORRUPT_MESSAGE,
        KAFKA_STORAGE_ERROR.
        """
        return FollowerAppends(self._parts).append(batches, leader_epoch, now_ms)

    # ------------------------------------------------------------------------------------------------------ truncation

    @property
    def truncations(self) -> int:
        """Return the number of truncations. Other threads read it: work they began before a truncation is void."""
        return self._local.truncations

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Truncate the log to end at ``offset`` or, if a batch contains it, before that batch.

        The log start offset, the recovery point, the flushed offset and the compacted offset move back with the end. Return False
        if the log already ends there. KafkaError: KAFKA_STORAGE_ERROR. Raises LogCorrupt, ValueError (a negative offset).
        """
        is_cut = self._truncation().truncate_to(offset, now_ms)
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, self.segments.active.base_offset)
        return is_cut

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Remove all records, and let the log start and end at ``offset``, which may lie beyond its end.

        KafkaError: KAFKA_STORAGE_ERROR. ValueError for a negative offset.
        """
        self._truncation().truncate_fully_and_start_at(offset, now_ms)
        self.cleaned_offset = None if self.cleaned_offset is None else min(self.cleaned_offset, offset)

    def _truncation(self) -> LogTruncation:
        return LogTruncation(self._parts, self.before_truncation)

    # --------------------------------------------------------------------------------------------------------- flushes

    def flush(self, now_ms: int) -> None:
        """Sync the whole log before returning. KafkaError: KAFKA_STORAGE_ERROR, now and for every later append."""
        self.flush_state.flush(now_ms)

    def flush_found(self, now_ms: int) -> None:
        """Flush a log just opened if a kill left more unsynced than ``flush.messages`` allows. KafkaError: KAFKA_STORAGE_ERROR.

        Some of these records were acknowledged, and readers must not see less of the log than before.
        """
        if self.flush_state.is_flush_due:
            self.flush_state.flush(now_ms)

    # ----------------------------------------------------------------------------------------------------------- reads

    @property
    def first_unstable_offset(self) -> int | None:
        """Return the start of the oldest open transaction, at least the log start offset. KafkaError: KAFKA_STORAGE_ERROR."""
        transactions = (self._producers.loaded or self._producers.load()).open_transactions
        return max(next(iter(transactions)), self._local.log_start_offset) if transactions else None

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset below which all transactions ended by markers below ``high_watermark``.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        producers = self._producers.loaded or self._producers.load()
        first_unstable = producers.first_unstable_offset(high_watermark)
        if first_unstable is None:
            return high_watermark
        return min(max(first_unstable, self._local.log_start_offset), high_watermark)

    def settle_transactions(self, high_watermark: int) -> None:
        """Drop the data of ended transactions that ``last_stable_offset`` no longer needs."""
        if self._producers.loaded is not None:
            self._producers.loaded.settle(high_watermark)

    def aborted_transactions(self, fetch_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Return (producer id, first offset) of aborted transactions with records between the two offsets.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        try:
            return [found[:2] for found in self.segments.aborted_transactions(fetch_offset, end_offset)]
        except OSError as error:
            raise self._parts.errors.report(error) from error

    def aborted_in(self, found: LogSlice, offset: int, upper_offset: int) -> list[tuple[int, int]]:
        """Return the aborted transactions with records in ``found``, read at ``offset``; some may begin after it.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        if not self.segments.has_aborted_from(offset):
            return []
        try:
            end_offset = self.segments.end_offset_of(found, offset, upper_offset)
        except OSError as error:
            raise self._parts.errors.report(error) from error
        return self.aborted_transactions(offset, end_offset)

    def read(self, offset: int, max_bytes: int, *, upper_offset: int, min_one_batch: bool) -> LogSlice | None:
        """Return batches of one segment, from the one with ``offset`` on, below ``upper_offset`` (a batch boundary), or None.

        Returns at most ``max_bytes``, which may cut the last batch. A larger first batch is returned whole if ``min_one_batch``,
        otherwise not at all (KIP-74). KafkaError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        local = self._local
        end_offset = local.log_end_offset
        if not local.log_start_offset <= offset <= end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not within [{local.log_start_offset}, {end_offset}]"
            )
        if offset == end_offset:
            self.segments.remember_tail(end_offset)
            return None
        if offset >= upper_offset:
            return None
        try:
            found = self.segments.read(offset, max_bytes, upper_offset, end_offset, min_one_batch=min_one_batch)
        except OSError as error:
            raise self._parts.errors.report(error) from error
        if found is not None:
            found.on_error = self._parts.errors.report
        return found

    def offset_for_timestamp(self, timestamp: int, from_offset: int = 0) -> TimestampOffset | None:
        """Return the first record at or after ``from_offset`` that is not older than ``timestamp``.

        Raises LongLookup, LogCorrupt, OSError.
        """
        return log_lookup.first_at_or_after(self.segments, timestamp, max(from_offset, self.log_start_offset))

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """Return the first record with the largest timestamp (KIP-734). Raises LongLookup, LogCorrupt, OSError."""
        return log_lookup.first_with_max_timestamp(self.segments)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (the largest epoch not above ``epoch``, its end offset); (-1, -1) if unknown (KIP-279)."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Move the log start offset up to ``offset``, if it is lower. Return it. Retention removes the files.

        KafkaError: OFFSET_OUT_OF_RANGE if ``offset`` is beyond the log's end, KAFKA_STORAGE_ERROR.
        """
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is beyond the log's end at {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.retention.start_at(offset)
        return self.log_start_offset

    # ------------------------------------------------------------------------------------------------------- life cycle

    def roll(self, now_ms: int) -> Segment:
        """Begin a new active segment, unless the current one is empty. Return the active segment. Raises OSError."""
        return self._writer.roll(now_ms)

    def expire_producers(self, now_ms: int) -> int:
        """Drop idle producers (``producer.id.expiration.ms``). Return their number."""
        return self._producers.expire(now_ms)

    def storage_error(self, error: OSError) -> KafkaError:
        """Report a disk error that a reader met. Return the KAFKA_STORAGE_ERROR to answer with."""
        return self._parts.errors.report(error)

    def abandon(self, reason: str) -> None:
        """Stop using the files, as their directory has failed. Every later operation is refused."""
        self.is_closed = True
        self.flush_state.sync_error = reason
        for segment in self.segments:
            segment.release_file()

    def write_out(self) -> None:
        """Write data held only in memory: index entries, the snapshot of the producers. Raises KafkaError, OSError."""
        for segment in self.segments:
            if segment.transaction_index is not None:
                segment.transaction_index.write_out()
        self.segments.active.close_indexes()
        self._producers.take_snapshot()

    def close(self, *, clean: bool, now_ms: int) -> None:
        """Close the files; if ``clean``, with everything that the next start needs to trust them. Raises KafkaError, OSError.

        Slices in use stay readable.
        """
        self.is_closed = True
        if clean:
            self.flush_state.ensure_synced()
            active = self.segments.active
            self.write_out()
            if self.recovery_point < self.log_end_offset or self.flush_state.has_failed_append:
                self.flush_state.flush(now_ms)
                if self.recovery_point < self.log_end_offset:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no room for the indexes in {self.directory}")
            elif active.has_unsynced_index:
                active.sync()
        for segment in self.segments:
            segment.release_file()
