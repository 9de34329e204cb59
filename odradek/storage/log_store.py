"""A log as it lies on disk: its segments, the producers and leader epochs beside them, and up to where all that is synced.

What is written goes behind the last byte of the active segment, which is rolled when it is time. A sync is a FlushTask: files
first, then the directories that name them. What is appended, and what may be, is the business of odradek.storage.log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Self
from uuid import UUID

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import Buffer
from odradek.storage import checkpoints
from odradek.storage.errors import is_directory_failure
from odradek.storage.filesystem import File, FileSystem
from odradek.storage.flush import FlushTask
from odradek.storage.log_config import LogConfig
from odradek.storage.log_loader import LoadedLog, LoadRequest, load
from odradek.storage.log_segments import LogSegments
from odradek.storage.producer_restore import restore
from odradek.storage.producer_state import ProducerStates
from odradek.storage.recovery import Warn
from odradek.storage.retention import count_deletable
from odradek.storage.segment import Segment
from odradek.storage.segment_removal import SegmentRemoval

# Beyond what any count or timestamp comes to, and still a small number where this is compiled.
_NEVER_REACHED: Final = 2**62 - 1


class LogStore:
    """The ground of a Log, and like it the loop thread's; only a FlushTask may run elsewhere."""

    def __init__(self, request: LoadRequest, loaded: LoadedLog, topic: str, partition: int, topic_id: UUID | None) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = request.directory
        self.segments = LogSegments(loaded.segments)
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        # Where the last clean has ended, None before the first (odradek.storage.cleaner).
        self.cleaned_offset = request.cleaned_offset
        self.last_flush_ms = request.now_ms
        # Up to where records are on disk: at least the recovery point, up to which their indexes are, too.
        self.flushed_offset = loaded.recovery_point
        # Who flushes when ``flush.messages`` says so, instead of the append that reaches it; and whether that is waited for.
        self.on_flush_due: Callable[[Any], None] | None = None
        self.awaits_flush = False
        # Who is told of each error of the disk: it may be that of a whole data directory.
        self.on_disk_error: Callable[[Any, OSError], None] | None = None
        self.leader_epochs = loaded.leader_epochs
        self.removal = SegmentRemoval(request.file_system)
        # While its segments are rewritten, none of them goes.
        self.is_being_cleaned = False
        # Another thread may look at this.
        self.is_closed = False
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
        cleaned_offset: int | None = None,
        clean: bool,
        now_ms: int,
        warn: Warn,
        topic_id: UUID | None = None,
        removal: SegmentRemoval | None = None,
    ) -> Self:
        """Open the log in ``directory``, created if need be; unless ``clean``, recover what lies past ``recovery_point``.

        ``topic_id`` is recorded if the directory has none; ``removal`` takes the files of segments that go. Raises LogCorrupt,
        OSError, ValueError (partition.metadata).
        """
        found_id = checkpoints.read_topic_id(file_system, directory)
        if found_id is None:
            file_system.make_dirs(directory)
        if found_id is None and topic_id is not None:
            checkpoints.write_topic_id(file_system, directory, topic_id)
        request = LoadRequest(
            file_system=file_system,
            directory=directory,
            config=config,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_offset=cleaned_offset,
            is_clean=clean,
            now_ms=now_ms,
            warn=warn,
        )
        log = cls(request, load(request), topic, partition, found_id or topic_id)
        log.removal = removal or log.removal
        return log

    @property
    def file_system(self) -> FileSystem:
        """Where its directory is."""
        return self._file_system

    @property
    def config(self) -> LogConfig:
        """The topic's configuration; it may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        # What each append asks for.
        self._segment_bytes = config.segment_bytes
        self._max_segment_ms = config.max_segment_ms
        self._max_message_bytes = config.max_message_bytes
        self._index_interval_bytes = config.index_interval_bytes
        self._flush_messages = min(config.flush_messages, _NEVER_REACHED)
        self._stamps_append_time = config.stamps_append_time
        self._latest_in_ms = _NEVER_REACHED if config.stamps_append_time else config.message_timestamp_after_max_ms
        limits_age = config.limits_old_timestamps and not config.stamps_append_time
        self._inspects_all = config.is_compacted or limits_age or config.target_codec is not None

    @property
    def max_batch_bytes(self) -> int:
        """What ``max.message.bytes`` and ``segment.bytes`` allow."""
        return min(self._max_message_bytes, self._segment_bytes)

    @property
    def size_bytes(self) -> int:
        """The record batches' bytes, as DescribeLogDirs tells them."""
        return sum(segment.size for segment in self.segments)

    @property
    def readable_offset(self) -> int:
        """Up to where records may be read: the log's end, unless something has to be on disk first."""
        return self.flushed_offset if self.awaits_flush else self.log_end_offset

    @property
    def producers(self) -> ProducerStates:
        """The producers, from their snapshot when they are first asked for. KafkaError: KAFKA_STORAGE_ERROR."""
        if self._producers is None:
            at = self._restore_offset
            try:
                producers = restore(list(self.segments), self._snapshots, self.log_start_offset, at, at)
            except OSError as error:
                raise self.storage_error(error) from error
            producers.expire(self._opened_ms, self._config.producer_id_expiration_ms)
            self._producers = producers
        return self._producers

    def _write(
        self, buffers: Sequence[Buffer], size: int, last_offset: int, timestamp: int, leader_epoch: int, now_ms: int
    ) -> None:
        """Put batches at the end of the log, in a new segment if it is time for one. KafkaError: KAFKA_STORAGE_ERROR."""
        if self._sync_error:
            self._ensure_synced()
        segment = self.segments.active
        try:
            if segment.should_roll(size, last_offset, timestamp, now_ms, self._segment_bytes, self._max_segment_ms):
                segment = self.roll(now_ms)
            if leader_epoch != self.leader_epochs.latest:
                self.leader_epochs.assign(leader_epoch, self.log_end_offset)
            segment.append(buffers, size, last_offset, timestamp, self._index_interval_bytes)
        except OSError as error:
            self._has_failed = True
            raise self.storage_error(error) from error
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
        # An empty log may have had producers.
        has_any = offset > self.log_start_offset or (self._producers is not None and self._producers.by_id)
        if has_any and offset not in self._snapshots.offsets:
            self._snapshots.take(self._producers or self.producers, offset)

    def release_old_segments(self, now_ms: int) -> list[Segment]:
        """Let the log begin behind the segments that retention does not keep, which may be all it has: then a new one begins.

        Those it returns are no longer part of the log; their files are the caller's to give to ``removal``, when the new start is
        on disk. KafkaError: KAFKA_STORAGE_ERROR. Raises OSError, LogCorrupt; then nothing has gone.
        """
        if self._sync_error or self.is_being_cleaned:
            return []
        count = count_deletable(
            self.segments,
            self._config,
            log_start_offset=self.log_start_offset,
            readable_offset=self.readable_offset,
            log_end_offset=self.log_end_offset,
            now_ms=now_ms,
        )
        if not count:
            return []
        first = self.segments[count] if count < len(self.segments) else self.roll(now_ms)
        if first.base_offset > self.log_start_offset:
            self._start_at(first.base_offset)
        removed = self.segments.remove_first(count)
        # What is gone needs no sync; but a loss of power may bring it back, so the recovery point waits for a flush.
        self.flushed_offset = max(self.flushed_offset, first.base_offset)
        # The next start removes what cannot be removed now.
        with suppress(OSError):
            self._snapshots.forget_below(first.base_offset)
        return removed

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """Let ``new`` stand for ``old``: neighbours, not active, whose records it has as far as they are to stay.

        Its files, which are synced, are called ``.swap`` for now; those of ``old`` go to ``removal``. Raises OSError.
        """
        self.segments.replace(old, new)
        self.removal.set_aside(self.directory, old, delay_ms=self._config.file_delete_delay_ms)
        # One that cannot be removed now goes with the next start.
        with suppress(OSError):
            self._snapshots.forget(segment.base_offset for segment in old if segment.base_offset != new.base_offset)

    def _start_at(self, offset: int) -> None:
        """Let ``offset`` be the first that can be read. KafkaError: KAFKA_STORAGE_ERROR; then it is not."""
        # Their snapshots may be about to go.
        self._producers = self._producers or self.producers
        self.log_start_offset = offset
        # An old epoch that cannot be forgotten on disk is forgotten by the next start.
        with suppress(OSError):
            self.leader_epochs.truncate_from_start(offset)

    def expire_producers(self, now_ms: int) -> int:
        """Forget idle producers (``producer.id.expiration.ms``); how many."""
        if self._producers is None:
            return 0
        return self._producers.expire(now_ms, self._config.producer_id_expiration_ms)

    def flush_task(self, *, active: bool = True) -> FlushTask:
        """What must be synced for all that the log has, or all but the active segment, to outlive the machine. Raises OSError."""
        self.leader_epochs.sync()
        files: list[File] = []
        # With the name of the first segment on disk, nothing in front of it counts any more.
        offset = max(self.recovery_point, self.segments.first_offset)
        for segment, end_offset in self.segments.with_ends(self.log_end_offset):
            is_dirty = end_offset > self.recovery_point or segment.has_unsynced_index or self._has_failed
            if is_dirty and (active or segment is not self.segments.active):
                files += segment.files_to_sync()
                offset = max(offset, end_offset)
        return FlushTask(self._file_system, self._unnamed_directories(), tuple(files), offset, self._segments_begun)

    def commit_task(self) -> FlushTask:
        """What must be synced for the records that the log has to outlive the machine. Raises OSError."""
        found = self.segments.with_ends(self.log_end_offset)
        files = tuple(segment.file for segment, end_offset in found if segment.size and end_offset > self.flushed_offset)
        directories = self._unnamed_directories()
        return FlushTask(self._file_system, directories, files, self.log_end_offset, self._segments_begun, is_whole=False)

    def _unnamed_directories(self) -> tuple[str, ...]:
        """Those in which names are not synced yet."""
        is_named = self._segments_named == self._segments_begun
        return () if is_named else (self.directory, self.directory.rpartition("/")[0])

    def flushed(self, task: FlushTask, now_ms: int) -> None:
        """``task`` has run."""
        if self._sync_error:
            return
        self.flushed_offset = max(self.flushed_offset, task.offset)
        self._segments_named = max(self._segments_named, task.segments_begun)
        self.awaits_flush = self.awaits_flush and self.log_end_offset - self.flushed_offset >= self._flush_messages
        if task.is_whole:
            self.recovery_point = max(self.recovery_point, task.offset)
            self.last_flush_ms = now_ms

    def sync_failed(self, error: OSError) -> None:
        """A sync went wrong: what it should have written may be lost, though the next one may say that all is well.

        So nothing more is appended, nothing counts as synced, and the stop is not clean: the next start looks what is there.
        """
        self._sync_error = f"could not be synced: {error}"
        self.storage_error(error)

    def flush(self, now_ms: int) -> None:
        """Sync all that the log has, here and now. KafkaError: KAFKA_STORAGE_ERROR, from then on."""
        self._ensure_synced()
        try:
            task = self._affordable_task()
            task.run()
        except OSError as error:
            self.sync_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._has_failed = self._has_failed and not task.is_whole
        self.flushed(task, now_ms)

    def _affordable_task(self) -> FlushTask:
        """A flush; where the disk has no room for indexes and epochs, which recovery makes anew, of the records alone."""
        try:
            return self.flush_task()
        except OSError as error:
            if is_directory_failure(error):
                raise
            return self.commit_task()

    def flush_found(self, now_ms: int) -> None:
        """After a kill the log may have more than ``flush.messages`` allows to be read. KafkaError: KAFKA_STORAGE_ERROR.

        It is flushed here and now: what is acknowledged is among it, and readers must not see less of the log than before.
        """
        if self.log_end_offset - self.flushed_offset >= self._flush_messages:
            self.flush(now_ms)

    def _flush_due(self, now_ms: int) -> None:
        """As many records as ``flush.messages`` are not on disk."""
        # Of a failed append something may have to be cut off first, which is not a thread's to do.
        if self.on_flush_due is None or self._has_failed:
            self.flush(now_ms)
        else:
            self.awaits_flush = True
            self.on_flush_due(self)

    def storage_error(self, error: OSError) -> KafkaError:
        """What a client is told of an error of the disk, once all who care have been told."""
        if self.on_disk_error is not None:
            self.on_disk_error(self, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    @property
    def has_lost_sync(self) -> bool:
        """Whether a sync has failed."""
        return bool(self._sync_error)

    def _ensure_synced(self) -> None:
        if self._sync_error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._sync_error)

    def abandon(self, reason: str) -> None:
        """Touch the files no more: their directory does not work. All that is asked of the log from now on is refused."""
        self.is_closed = True
        self._sync_error = reason
        for segment in self.segments:
            segment.release_file()

    def write_out(self) -> None:
        """Put into files what is only in memory: index entries, the producers as of the log's end. Raises KafkaError, OSError."""
        for segment in self.segments:
            if segment.transaction_index is not None:
                segment.transaction_index.write_out()
        self.segments.active.close_indexes()
        self._take_snapshot()

    def close(self, *, clean: bool, now_ms: int) -> None:
        """Let go of the files; if ``clean``, with all that the next start needs to trust them. Raises KafkaError, OSError.

        Slices in use stay readable.
        """
        self.is_closed = True
        if clean:
            self._ensure_synced()
            active = self.segments.active
            self.write_out()
            if self.recovery_point < self.log_end_offset or self._has_failed:
                self.flush(now_ms)
                if self.recovery_point < self.log_end_offset:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"there is no room for the indexes in {self.directory}")
            elif not (active.offset_index.is_synced and active.time_index.is_synced):
                for file in active.files_to_sync():
                    file.sync()
        for segment in self.segments:
            segment.release_file()
