"""Moves a log to another data directory while it is written (KIP-113, AlterReplicaLogDirs).

The files are copied in rounds: closed segments first, then the records appended meanwhile, until so little is left that the event
loop may wait for it. Then the copy gets the rest, with the producers' snapshot, and replaces the log. Wherever the renames (see
odradek.storage.directories.log_manager) are interrupted, one complete log is left.

While a log moves, none of its segments is removed or compacted. If the log is truncated, the move is cancelled.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directory import DataDirectory, Partition
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.errors import MoveCancelled, TargetFailed
from odradek.storage.filesystem import File, FileSystem
from odradek.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_FILE
from odradek.storage.log.log import Log
from odradek.storage.log.segment import INDEX_SUFFIXES

_SLICE_BYTES = 1024 * 1024


@dataclass(slots=True)
class CopyTask:
    """Bytes to copy: ``spans`` of growing files, (name, from, to), and ``whole`` files. ``run`` in any thread."""

    file_system: FileSystem
    source: str
    target: str
    spans: list[tuple[str, int, int]]
    is_cancelled: Callable[[], bool]
    on_copied: Callable[[int], None]
    # The end offset of the copy after the task; None if the task copies only a part.
    end_offset: int | None
    whole: list[str] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes to copy from growing files."""
        return sum(end - start for _, start, end in self.spans)

    def run(self) -> None:
        """Copy and sync. Raises MoveCancelled, TargetFailed, or OSError if the log cannot be read."""
        for name, start, end in self.spans:
            self._copy(name, start, end)
        for name in self.whole:
            if self.file_system.exists(f"{self.source}/{name}"):
                self._copy(name, 0, self.file_system.size(f"{self.source}/{name}"))

    def _copy(self, name: str, start: int, end: int) -> None:
        with closing(self.file_system.open(f"{self.source}/{name}")) as source:
            with _writing_target():
                target = self.file_system.open(f"{self.target}/{name}", create=True)
            with closing(target):
                with _writing_target():
                    if target.size() > start:
                        target.truncate(start)
                self._append(source, target, name, start, end)
                with _writing_target():
                    target.sync()
        # Records without timestamps are as old as their file.
        modified_ms = self.file_system.modified_ms(f"{self.source}/{name}")
        with _writing_target():
            self.file_system.set_modified_ms(f"{self.target}/{name}", modified_ms)

    def _append(self, source: File, target: File, name: str, position: int, end: int) -> None:
        while position < end:
            if self.is_cancelled():
                raise MoveCancelled
            data = source.pread(min(_SLICE_BYTES, end - position), position)
            if not data:
                raise OSError(f"{self.source}/{name} ended at {position}, not at {end}")
            with _writing_target():
                target.append([data])
            position += len(data)
            if name.endswith(".log"):
                self.on_copied(len(data))


@contextmanager
def _writing_target() -> Iterator[None]:
    """Raise TargetFailed for an OSError, which is the target directory's."""
    try:
        yield
    except OSError as error:
        raise TargetFailed(error) from error


class LogMove:
    """The move of one log to ``target``; ``copied_bytes`` and ``end_offset`` are the copy's.

    Loop thread only; its tasks run in any thread.
    """

    def __init__(self, manager: LogManager, log: Log, target: DataDirectory) -> None:
        """Create the copy's directory. Raises OSError."""
        self.key: Partition = log.topic_partition
        self.log = log
        self.target = target
        self.copied_bytes = 0
        self.end_offset = log.log_start_offset
        self.rounds = 0
        self.is_cancelled = False
        self._manager = manager
        self._file_system = manager.file_system
        self._unique = manager.new_uuid().hex
        self.path = checkpoints.future_path(target.log_path(self.key), self._unique)
        # The bytes copied of each segment's .log, by base offset, and the segments copied with their indexes.
        self._copied: dict[int, int] = {}
        self._whole: set[int] = set()
        self._is_begun = False
        self._truncations = log.truncations
        self._file_system.make_dirs(self.path)

    @property
    def may_begin(self) -> bool:
        """Return whether no compaction uses the segments."""
        return self._is_begun or not self.log.is_being_cleaned

    @property
    def offset_lag(self) -> int:
        """Return the number of offsets that the copy is behind the log."""
        return max(self.log.log_end_offset - self.end_offset, 0)

    def next_task(self, most_bytes: int | None = None) -> CopyTask:
        """Return the task to copy the outstanding data, or its first ``most_bytes``; a part has no end offset.

        From the first call on, none of the log's segments is removed. Raises MoveCancelled if the log was truncated since the
        move began.
        """
        if self._is_void():
            raise MoveCancelled
        self._is_begun = self.log.is_being_cleaned = True
        spans = []
        whole: list[str] = []
        end_offset: int | None = self.log.log_end_offset
        for segment in self.log.segments:
            done = self._copied.get(segment.base_offset, 0)
            if most_bytes is not None:
                if segment.size - done > most_bytes:
                    spans.append((f"{segment.base_offset:020d}.log", done, done + most_bytes))
                    end_offset = None
                    break
                most_bytes -= segment.size - done
            if segment.size > done or segment.base_offset not in self._copied:
                spans.append((f"{segment.base_offset:020d}.log", done, segment.size))
            if segment is not self.log.segments.active and segment.base_offset not in self._whole:
                whole += [f"{segment.base_offset:020d}{suffix}" for suffix in INDEX_SUFFIXES]
        return CopyTask(
            file_system=self._file_system,
            source=self.log.directory,
            target=self.path,
            spans=spans,
            is_cancelled=self._is_void,
            on_copied=self._on_copied,
            end_offset=end_offset,
            whole=whole,
        )

    def _is_void(self) -> bool:
        return self.is_cancelled or self.log.is_closed or self.log.truncations != self._truncations

    def _on_copied(self, size_bytes: int) -> None:
        self.copied_bytes += size_bytes

    def copied(self, task: CopyTask) -> None:
        """Note that ``task`` has run."""
        self.rounds += 1
        self.end_offset = self.end_offset if task.end_offset is None else task.end_offset
        for name, _, end in task.spans:
            self._copied[int(name[:20])] = end
        self._whole.update(int(name[:20]) for name in task.whole)

    def finish(self, now_ms: int) -> Log:
        """Copy the rest, and replace the log by the copy. Return the new open log.

        Afterwards ``removed_logs`` has the old directory. Raises KafkaError, OSError if the log cannot be read or renamed,
        TargetFailed; then the log is unchanged or, if ``log.is_closed``, offline until the next start.
        """
        log = self.log
        log.write_out()
        task = self.next_task()
        active = log.segments.active
        task.whole += [f"{active.base_offset:020d}{suffix}" for suffix in INDEX_SUFFIXES]
        task.whole += [f"{log.log_end_offset:020d}.snapshot", LEADER_EPOCHS_FILE, checkpoints.PARTITION_METADATA_FILE]
        task.run()
        # The name of a log that was never synced may not be on disk. A start that finds the offsets noted below, but no log,
        # considers its records lost.
        self._file_system.sync_dir(self._manager.home_of(log).path)
        with _writing_target():
            self._file_system.sync_dir(self.path)
            # The copy's own name must be on disk before the log is renamed.
            self._file_system.sync_dir(self.target.path)
            self.target.note_offset(checkpoints.RECOVERY_POINT_FILE, self.key, log.log_end_offset)
            self.target.note_offset(checkpoints.LOG_START_FILE, self.key, log.log_start_offset or None)
            self.target.note_offset(checkpoints.CLEANER_OFFSET_FILE, self.key, log.cleaned_offset)
        return self._manager.replace(log, self.path, self.target, self._unique, now_ms)

    def abandon(self) -> None:
        """Drop the move and its copy, which ``removed_logs`` removes. No task may be running."""
        if self._is_begun:
            self.log.is_being_cleaned = False
        if not self._file_system.exists(self.path):
            return
        # A start ignores this name, and does not begin the move again.
        removed = checkpoints.deleted_path(self.target.log_path(self.key), self._manager.new_uuid().hex)
        try:
            self._file_system.rename(self.path, removed)
        except OSError:
            removed = self.path
        self._manager.removed_logs.remove_later(removed)
