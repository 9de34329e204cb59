"""One partition's log: record batches appended at its end, read from any offset, found by timestamp.

Directory ``<topic>-<partition>/``: segments (odradek.storage.segment), ``leader-epoch-checkpoint``, ``partition.metadata``. Where
the log starts and up to where it is flushed is in the data directory's checkpoints, which the LogManager keeps.

An append is one write to the active segment: the batch as it came, with offset and leader epoch in front. It is acknowledged when
the operating system has it; ``flush.messages`` and ``flush.ms`` ask for more.

A Log belongs to the loop thread. Only a FlushTask may run elsewhere.

Left out: retention, compaction.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from odradek.protocol.control_records import build_end_txn_marker
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import (
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    iter_batches,
    read_header,
    stamped_head,
    stamped_head_append_time,
    validate,
)
from odradek.storage import checkpoints, log_lookup, validation
from odradek.storage.filesystem import File, FileSystem
from odradek.storage.flush import FlushTask
from odradek.storage.log_config import LogConfig
from odradek.storage.log_loader import LoadedLog, LoadRequest, load
from odradek.storage.log_lookup import TimestampOffset
from odradek.storage.log_segments import LogSegments, LogSlice
from odradek.storage.producer_restore import restore
from odradek.storage.producer_state import ProducerStates
from odradek.storage.recovery import Warn
from odradek.storage.segment import Segment

_NO_TIMESTAMP = -1
_ALWAYS_IN_TIME = 2**64
_INSPECTED_ATTRIBUTES = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK


class AppendInfo(NamedTuple):
    """Where a batch lies. ``log_append_time_ms`` is -1 for CreateTime; ``duplicate``: it was there already, not written again."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class Log:
    """One partition's log. Offsets are those of records; ``log_end_offset`` is the next record's."""

    def __init__(self, request: LoadRequest, loaded: LoadedLog, topic: str, partition: int, topic_id: UUID | None) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = request.directory
        self.segments = LogSegments(loaded.segments)
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.last_flush_ms = request.now_ms
        self.leader_epochs = loaded.leader_epochs
        self._file_system: FileSystem = request.file_system
        self._producers = loaded.producers
        self._snapshots = loaded.snapshots
        self._opened_ms = request.now_ms
        # Nothing behind it is a producer's while ``_producers`` is None: the first such batch asks for them.
        self._restore_offset = loaded.log_end_offset
        # Segments begun since the log was opened, those it had then counting as one; and of how many the names are synced.
        self._segments_begun = 1
        self._segments_named = 0
        self._sync_error = ""
        # Whether an append has failed, of which something may lie behind the log's end until it is synced.
        self._has_failed = False
        self.config = request.config

    @classmethod
    def open(  # noqa: PLR0913 - what there is to know of a log before it is read, all of it by name
        cls,
        file_system: FileSystem,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool,
        now_ms: int,
        warn: Warn,
        topic_id: UUID | None = None,
    ) -> "Log":
        """Open the log in ``directory``, created if need be; unless ``clean``, recover what lies past ``recovery_point``.

        ``topic_id`` is recorded if the directory has none. Raises LogCorrupt, OSError, ValueError (partition.metadata).
        """
        file_system.make_dirs(directory)
        found_id = checkpoints.read_topic_id(file_system, directory)
        if found_id is None and topic_id is not None:
            checkpoints.write_topic_id(file_system, directory, topic_id)
        request = LoadRequest(
            file_system=file_system,
            directory=directory,
            config=config,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            is_clean=clean,
            now_ms=now_ms,
            warn=warn,
        )
        return cls(request, load(request), topic, partition, found_id or topic_id)

    @property
    def config(self) -> LogConfig:
        """The topic's configuration; it may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._stamps_append_time = config.stamps_append_time
        self._latest_in_ms = _ALWAYS_IN_TIME if config.stamps_append_time else config.message_timestamp_after_max_ms
        limits_age = config.limits_old_timestamps and not config.stamps_append_time
        self._inspects_all = config.is_compacted or limits_age or config.target_codec is not None

    @property
    def size_bytes(self) -> int:
        """The record batches' bytes, as DescribeLogDirs tells them."""
        return sum(segment.size for segment in self.segments)

    @property
    def producers(self) -> ProducerStates:
        """The producers, from their snapshot when they are first asked for. KafkaError: KAFKA_STORAGE_ERROR."""
        if self._producers is None:
            at = self._restore_offset
            try:
                producers = restore(list(self.segments), self._snapshots, self.log_start_offset, at, at)
            except OSError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            producers.expire(self._opened_ms, self._config.producer_id_expiration_ms)
            self._producers = producers
        return self._producers

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
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def aborted_in(self, found: LogSlice, offset: int, upper_offset: int) -> list[tuple[int, int]]:
        """``aborted_transactions`` with records in what ``read`` has ``found`` from ``offset`` on, perhaps some more behind it.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        if not self.segments.has_aborted_from(offset):
            return []
        try:
            end_offset = self.segments.end_offset_of(found, offset, upper_offset)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return self.aborted_transactions(offset, end_offset)

    def append(self, records: Buffer, *, leader_epoch: int, now_ms: int, transaction_verified: bool = False) -> AppendInfo:
        """Append what a Produce request of version 3 or later has for this partition: one batch, checked and stamped.

        A transactional batch needs the producer's transaction to be open here already, or ``transaction_verified`` (KIP-890).

        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
        INVALID_TXN_STATE, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH: nothing has been written then.
        KAFKA_STORAGE_ERROR: nothing has been written, or it could not be synced.
        """
        header, records = self._checked(records, now_ms)
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
            head = stamped_head(header, records, 0, base_offset, leader_epoch)
        size = header.batch_length + 12
        last_offset = base_offset + header.last_offset_delta
        self._write((head, memoryview(records)[len(head) : size]), size, last_offset, timestamp, leader_epoch, now_ms)
        if producers is not None:
            producers.record(header, base_offset, timestamp)
        if last_offset + 1 - self.recovery_point >= self._config.flush_messages:
            self.flush(now_ms)
        return AppendInfo(base_offset, last_offset, append_time_ms, self.log_start_offset, False)

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
        batch = build_end_txn_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
        header = read_header(batch)
        offset = self.log_end_offset
        if self._stamps_append_time:
            head = stamped_head_append_time(header, batch, 0, offset, leader_epoch, now_ms)
        else:
            head = stamped_head(header, batch, 0, offset, leader_epoch)
        self._write((head, batch[len(head) :]), len(batch), offset, now_ms, leader_epoch, now_ms)
        aborted = producers.record_marker(producer_id, producer_epoch, coordinator_epoch, commit, offset, now_ms)
        if aborted is not None:
            self.segments.active.append_aborted(aborted)
        if offset + 1 - self.recovery_point >= self._config.flush_messages:
            self.flush(now_ms)
        append_time_ms = now_ms if self._stamps_append_time else _NO_TIMESTAMP
        return AppendInfo(offset, offset, append_time_ms, self.log_start_offset, False)

    def _checked(self, records: Buffer, now_ms: int) -> tuple[BatchHeader, Buffer]:
        """The produced batch and its header if it may be appended; the batch may have had to be rewritten."""
        if self._sync_error:
            # Not even a batch that is there already may be acknowledged.
            self._ensure_synced()
        try:
            header = read_header(records)
        except MalformedMessage as error:
            raise validation.refuse_malformed(records, error) from error
        config = self._config
        size = header.batch_length + 12
        if len(records) != size:
            validation.ensure_one_batch(records, size)
        if header.base_offset:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"the record batch begins with offset {header.base_offset}, not 0")
        if size > config.max_message_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{size} bytes, and max.message.bytes is {config.max_message_bytes}")
        validate(header, records)
        if self._inspects_all or header.attributes & _INSPECTED_ATTRIBUTES or header.max_timestamp - now_ms > self._latest_in_ms:
            inspected = validation.inspect(records, header, config, now_ms)
            if inspected is not records:
                records, header = inspected, read_header(inspected)
                size = header.batch_length + 12
        if size > config.segment_bytes:
            raise _too_large_for_segment(size, config)
        return header, records

    def append_internal(self, records: Buffer, *, leader_epoch: int, now_ms: int) -> AppendInfo:
        """Append what the broker itself has built: any number of batches, one at least, trusted, their offsets assigned here.

        Batches under a producer id (offsets that a transaction commits) open its transaction; markers are ``append_marker``'s.
        All or nothing, in one write. KafkaError: RECORD_LIST_TOO_LARGE, KAFKA_STORAGE_ERROR, INVALID_PRODUCER_EPOCH.
        """
        view = memoryview(records)
        if len(view) > self._config.segment_bytes:
            raise _too_large_for_segment(len(view), self._config)
        buffers: list[Buffer] = []
        base_offset = next_offset = self.log_end_offset
        timestamp = _NO_TIMESTAMP
        of_producers: list[tuple[BatchHeader, int]] = []
        for position, header in iter_batches(records):
            if header.producer_id >= 0:
                self.producers.check_internal(header)
                of_producers.append((header, next_offset))
            if self._stamps_append_time:
                timestamp = now_ms
                head = stamped_head_append_time(header, records, position, next_offset, leader_epoch, now_ms)
            else:
                timestamp = max(timestamp, header.max_timestamp)
                head = stamped_head(header, records, position, next_offset, leader_epoch)
            buffers += (head, view[position + len(head) : position + header.size_bytes])
            next_offset += header.last_offset_delta + 1
        self._write(buffers, len(view), next_offset - 1, timestamp, leader_epoch, now_ms)
        for header, first_offset in of_producers:
            self.producers.record(header, first_offset, now_ms if self._stamps_append_time else header.max_timestamp)
        if next_offset - self.recovery_point >= self._config.flush_messages:
            self.flush(now_ms)
        append_time_ms = now_ms if self._stamps_append_time else _NO_TIMESTAMP
        return AppendInfo(base_offset, next_offset - 1, append_time_ms, self.log_start_offset, False)

    def _write(
        self, buffers: Sequence[Buffer], size: int, last_offset: int, timestamp: int, leader_epoch: int, now_ms: int
    ) -> None:
        """Put batches at the end of the log, in a new segment if it is time for one. KafkaError: KAFKA_STORAGE_ERROR."""
        if self._sync_error:
            self._ensure_synced()
        segment = self.segments.active
        config = self._config
        try:
            if segment.should_roll(size, last_offset, timestamp, now_ms, config):
                segment = self.roll(now_ms)
            if leader_epoch != self.leader_epochs.latest:
                self.leader_epochs.assign(leader_epoch, self.log_end_offset)
            segment.append(buffers, size, last_offset, timestamp, config.index_interval_bytes)
        except OSError as error:
            self._has_failed = True
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self.log_end_offset = last_offset + 1

    def roll(self, now_ms: int) -> Segment:
        """Begin a new active segment, unless the present one is empty; returns the active one. Raises OSError."""
        active = self.segments.active
        if active.size:
            active.close_indexes()
            active = Segment.create(self._file_system, self.directory, self.log_end_offset, self._config, now_ms)
            self.segments.add(active)
            self._segments_begun += 1
            # One that cannot be written costs the next start a longer look into the log, and nothing else.
            with suppress(OSError, KafkaError):
                self._take_snapshot()
        return active

    def _take_snapshot(self) -> None:
        """Write down the producers as of the log's end, unless that was done. Raises KafkaError, OSError."""
        offset = self.log_end_offset
        if offset > self.log_start_offset and offset not in self._snapshots.offsets:
            self._snapshots.take(self._producers or self.producers, offset)

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
            return self.segments.read(offset, max_bytes, upper_offset, end_offset, min_one_batch=min_one_batch)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

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
        """Let the log start at ``offset``, if that is further on; the log start offset then. Files stay until retention.

        KafkaError: OFFSET_OUT_OF_RANGE beyond the log's end.
        """
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is beyond the log's end at {self.log_end_offset}")
        if offset > self.log_start_offset:
            self._producers = self._producers or self.producers
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)
        return self.log_start_offset

    def expire_producers(self, now_ms: int) -> int:
        """Forget idle producers (``producer.id.expiration.ms``); how many."""
        if self._producers is None:
            return 0
        return self._producers.expire(now_ms, self._config.producer_id_expiration_ms)

    def flush_task(self, *, active: bool = True) -> FlushTask:
        """What must be synced for all that the log has, or all but the active segment, to outlive the machine. Raises OSError."""
        self.leader_epochs.sync()
        files: list[File] = []
        offset = self.recovery_point
        ends = [*(segment.base_offset for segment in self.segments), self.log_end_offset][1:]
        for segment, end_offset in zip(self.segments, ends, strict=True):
            is_dirty = end_offset > self.recovery_point or self._has_failed
            if is_dirty and (active or segment is not self.segments.active):
                files += segment.files_to_sync()
                offset = end_offset
        begun = self._segments_begun
        directories = () if self._segments_named == begun else (self.directory, self.directory.rpartition("/")[0])
        return FlushTask(self._file_system, directories, tuple(files), offset, begun)

    def flushed(self, task: FlushTask, now_ms: int) -> None:
        """``task`` has run."""
        if self._sync_error:
            return
        self.recovery_point = max(self.recovery_point, task.offset)
        self._segments_named = max(self._segments_named, task.segments_begun)
        self.last_flush_ms = now_ms

    def sync_failed(self, error: OSError) -> None:
        """A sync went wrong: what it should have written may be lost, though the next one may say that all is well.

        So nothing more is appended, nothing counts as synced, and the stop is not clean: the next start looks what is there.
        """
        self._sync_error = f"could not be synced: {error}"

    def flush(self, now_ms: int) -> None:
        """Sync all that the log has, here and now. KafkaError: KAFKA_STORAGE_ERROR, from then on."""
        self._ensure_synced()
        try:
            task = self.flush_task()
            task.run()
        except OSError as error:
            self.sync_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._has_failed = False
        self.flushed(task, now_ms)

    @property
    def has_lost_sync(self) -> bool:
        """Whether a sync has failed."""
        return bool(self._sync_error)

    def _ensure_synced(self) -> None:
        if self._sync_error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._sync_error)

    def close(self, *, clean: bool, now_ms: int) -> None:
        """Let go of the files; if ``clean``, with all that the next start needs to trust them. Raises KafkaError, OSError.

        Slices in use stay readable.
        """
        if clean:
            self._ensure_synced()
            active = self.segments.active
            active.close_indexes()
            self._take_snapshot()
            if self.recovery_point < self.log_end_offset or self._has_failed:
                self.flush(now_ms)
            elif not (active.offset_index.is_synced and active.time_index.is_synced):
                for file in active.files_to_sync():
                    file.sync()
        for segment in self.segments:
            segment.release_file()


def _too_large_for_segment(size: int, config: LogConfig) -> KafkaError:
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes, and segment.bytes is {config.segment_bytes}")
