"""All logs of a broker, in one or several data directories (``log.dirs``).

The layout of a directory, and the files at its top, are in ``data_directory``. A new log is created in the directory with the
fewest logs. If a directory fails, its logs are ``offline`` until the next start, and the others continue. Without the metadata
log's directory (``metadata.log.dir``, by default the first) the broker does not start.

A log moves to another directory by a copy, ``<topic>-<partition>.<uuid>-future``. When the copy is complete and synced, the log
is renamed to end with ``-delete``, that name is synced, and the copy gets the log's name. So at a start, a copy is the log if
there is a ``-delete`` directory with the same uuid. If the log itself exists, the copy is unfinished and is made again.
"""

import errno
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from uuid import UUID

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directories import DataDirectories, RemovedLogs, scan
from odradek.storage.directories.data_directory import (
    METADATA_LOG,
    NO_BROKER_EPOCH,
    DataDirectory,
    DirectoryIdentity,
    Partition,
    is_full,
)
from odradek.storage.directories.upkeep import LogFlusher, OffsetCheckpoints, RetentionCheck
from odradek.storage.errors import is_directory_failure
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment_files import SegmentRemoval
from odradek.storage.recovery.recovery import Warn

# Its offsets are recorded by the controller.
_UNMANAGED = (METADATA_LOG,)
ForEachLog = Callable[[Callable[[Log], None], Iterable[Log]], None]


class LogManager:
    """The logs of ``log_dirs``: ``logs`` are open, ``offline`` logs are not and have a reason.

    Its parts: ``checkpoints`` writes offsets, ``flusher`` flushes in the background, ``retention`` removes old segments,
    ``removed_logs`` and ``removal`` remove directories and files.
    """

    def __init__(
        self,
        file_system: FileSystem,
        *log_dirs: str,
        node_id: int,
        warn: Warn,
        new_uuid: Callable[[], UUID],
        cluster_id: str | None = None,
        metadata_dir: str | None = None,
        reserve_bytes: int = 0,
    ) -> None:
        """Keep ``reserve_bytes`` of each disk for writes that free space (odradek.storage.directories.data_directory).

        ``cluster_id`` must equal the directories' cluster id, if they have one. New directories get it, or a random one.

        ``metadata_dir`` is by default the first of ``log_dirs``, but may be another directory.
        """
        self.logs: dict[Partition, Log] = {}
        # The number of open logs in each directory, by path. Determines the place of new logs.
        self._open_logs: Counter[str] = Counter()
        self.offline: dict[Partition, str] = {}
        # The directories of offline logs that were found but could not be opened.
        self.offline_homes: dict[Partition, DataDirectory] = {}
        self.directories = DataDirectories(file_system, log_dirs, metadata_dir, warn, reserve_bytes=reserve_bytes)
        self.removal = SegmentRemoval(file_system)
        self.removed_logs = RemovedLogs(file_system, self.directories)
        self.checkpoints = OffsetCheckpoints(self.directories, self.logs, self.offline, self._fail)
        self.retention = RetentionCheck(self.logs, self.removal, self.checkpoints, self.note_error, warn)
        self.flusher = LogFlusher(self.logs, self.note_error, warn)
        # Called with a log when ``flush.messages`` is reached (odradek.storage.log.flush_state). Set it before any log is opened.
        self.on_flush_due: Callable[[Log], None] | None = None
        # Called with a directory that has just failed, in the middle of the failed operation: call ``take_offline`` soon after.
        self.on_failure: Callable[[DataDirectory], object] | None = None
        # Moves interrupted by a stop: the log and its target.
        self.unfinished_moves: list[tuple[Partition, DataDirectory]] = []
        # The number of logs that the last stop did not close, and the time it took to open all logs.
        self.recovered_logs = 0
        self.load_ms = 0.0
        # The epoch of this incarnation of a broker in a cluster, for the marker of a clean stop.
        self.broker_epoch = NO_BROKER_EPOCH
        self.file_system = file_system
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._warn = warn
        self.new_uuid = new_uuid
        # Bound once, for all logs.
        self._lower_offsets = self.checkpoints.lower
        self._request_flush = self._flush_due
        for directory in self.directories.all:
            directory.disk_errors.on_error = partial(self.directory_error, directory)

    @property
    def was_clean(self) -> bool:
        """Return whether the last stop was clean in all directories."""
        return all(directory.was_clean for directory in self.directories.all)

    @property
    def previous_broker_epoch(self) -> int:
        """Return the epoch of the broker that stopped cleanly, if all directories agree; else -1."""
        epochs = {directory.previous_broker_epoch for directory in self.directories.all}
        return epochs.pop() if len(epochs) == 1 else NO_BROKER_EPOCH

    def start(self) -> DirectoryIdentity:
        """Lock the directories and read their files. Return the identity of the metadata log's directory. Call this first.

        Raises DataDirectoryLocked, InconsistentDataDirectory, OSError; then nothing was changed.
        """
        return self.directories.start(self._node_id, self._cluster_id, self.new_uuid)

    def home_of(self, log: Log) -> DataDirectory:
        """Return the directory of a log."""
        return self.directories.with_path(log.directory.rpartition("/")[0])

    def counts(self) -> dict[UUID, int]:
        """Return the number of logs in each online directory, by directory id."""
        offline = Counter(directory.path for directory in self.offline_homes.values())
        return {
            directory.identity.directory_id: self._open_logs[directory.path] + offline[directory.path]
            for directory in self.directories.online
            if directory.identity is not None
        }

    def load_all(
        self, config_for_topic: Callable[[str], LogConfig], now_ms: int, topic_ids: Mapping[Partition, UUID] | None = None
    ) -> None:
        """Open every log except the metadata log, which the controller opens. Logs that cannot be opened are offline.

        A log without a topic id gets it from ``topic_ids``. Raises InconsistentDataDirectory if a log is in two directories,
        OSError if no directory is online any more.
        """
        topic_ids = topic_ids or {}
        are_all = self.directories.are_online
        found = scan(self.file_system, self.directories.online, topic_ids, are_all=are_all)
        for path in found.removable:
            self.removed_logs.remove_later(path)
        self.unfinished_moves = found.unfinished
        configs: dict[str, LogConfig] = {}
        for key, directory in sorted(found.logs.items()):
            if directory.failure:
                continue
            config = configs.get(key[0])
            if config is None:
                config = configs[key[0]] = config_for_topic(key[0])
            self._load(directory, key, config, topic_ids.get(key), now_ms)
        for key, directory in found.logs.items():
            if directory.failure:
                self._leave(key)
                self.offline[key] = directory.failure
        if not self.directories.online:
            raise OSError(self.directories.metadata.failure)
        self.recovered_logs = sum(not self.home_of(log).was_clean for log in self.logs.values())
        self.removed_logs.remove_all()

    def _load(self, directory: DataDirectory, key: Partition, config: LogConfig, topic_id: UUID | None, now_ms: int) -> None:
        try:
            try:
                directory.reserve.spend(
                    lambda: self._open(directory, key, config, topic_id, clean=directory.was_clean, now_ms=now_ms)
                )
            except ValueError:
                if topic_id is None:
                    raise
                checkpoints.write_topic_id(self.file_system, directory.log_path(key), topic_id)
                self._open(directory, key, config, topic_id, clean=directory.was_clean, now_ms=now_ms)
        except (KafkaError, OSError, ValueError) as error:
            # A missing directory concerns this log only, as its parent has just been listed.
            is_own = isinstance(error, NotADirectoryError)
            if isinstance(error, OSError) and is_directory_failure(error) and not is_own:
                directory.fail(str(error))
                return
            self.offline[key] = str(error)
            self.offline_homes[key] = directory
            self._warn("partition offline", topic=key[0], partition=key[1], reason=str(error))

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        *,
        now_ms: int,
        directory: DataDirectory | None = None,
    ) -> Log:
        """Create a log, or return the existing log of this topic id. Raises KafkaError, OSError.

        ``directory`` is by default the one with the fewest logs. Not synced: the metadata log has the topic, and a start
        recreates a lost log.
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None and log.topic_id == topic_id:
            return log
        if directory is None:
            directory = self._emptiest()
        elif directory.failure:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, directory.failure)
        if log is not None or self.file_system.exists(directory.log_path(key)):
            self.delete(topic, partition)
        # Remove the offsets of a deleted topic of the same name. After a crash the new log must not get them.
        directory.forget_offsets((key,))
        try:
            return self._open(directory, key, config, topic_id, clean=False, now_ms=now_ms)
        except OSError as error:
            self.directory_error(directory, error)
            raise

    def _emptiest(self) -> DataDirectory:
        counts = self.counts()
        if not counts:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "all data directories have failed")
        found = self.directories.with_id(min(counts, key=counts.__getitem__))
        assert found is not None  # noqa: S101
        return found

    def _open(
        self,
        directory: DataDirectory,
        key: Partition,
        config: LogConfig,
        topic_id: UUID | None,
        *,
        clean: bool,
        now_ms: int,
    ) -> Log:
        log = Log.open(
            self.file_system,
            directory.log_path(key),
            *key,
            config,
            recovery_point=directory.held_offset(checkpoints.RECOVERY_POINT_FILE, key) or 0,
            log_start_offset=directory.held_offset(checkpoints.LOG_START_FILE, key) or 0,
            cleaned_offset=directory.held_offset(checkpoints.CLEANER_OFFSET_FILE, key),
            clean=clean,
            now_ms=now_ms,
            warn=self._warn,
            topic_id=topic_id,
            removal=self.removal,
            clean_end_offset=directory.held_offset(checkpoints.RECOVERY_POINT_FILE, key) if clean else None,
            may_lack_ends=self.directories.have_been_kafkas,
            aborted=directory.aborted.get(key, {}),
            disk_errors=directory.disk_errors,
        )
        if self.on_flush_due is not None:
            log.flush_state.on_flush_due = self._request_flush
        log.before_truncation = self._lower_offsets
        log.flush_found(now_ms)
        self._leave(key)
        self.logs[log.topic_partition] = log
        self._open_logs[directory.path] += 1
        return log

    def _leave(self, key: Partition) -> Log | None:
        """Remove a log from the open logs. Return it if it was open."""
        log = self.logs.pop(key, None)
        if log is not None:
            self._open_logs[self.home_of(log).path] -= 1
        return log

    def _flush_due(self, key: Partition) -> None:
        if self.on_flush_due is not None:
            self.on_flush_due(self.logs[key])

    def delete(self, topic: str, partition: int) -> None:
        """Take a log out of service, offline or not, and rename its directory; ``removed_logs`` frees the disk later.

        If its directory has failed, the next start looks for the log. Raises OSError, FileNotFoundError if there is no such log.
        """
        key = (topic, partition)
        log = self._leave(key)
        self.offline.pop(key, None)
        home = self.offline_homes.pop(key, None) if log is None else self.home_of(log)
        if log is not None:
            log.close(clean=False, now_ms=log.flush_state.last_flush_ms)
        if home is None:
            home = next((other for other in self.directories.online if self.file_system.exists(other.log_path(key))), None)
        if home is None:
            if not self.directories.are_online:
                return
            raise FileNotFoundError(errno.ENOENT, "no such log", f"{topic}-{partition}")
        if home.failure:
            return
        deleted = checkpoints.deleted_path(home.log_path(key), self.new_uuid().hex)
        self.removed_logs.rename(home, key, deleted)
        self.removed_logs.remove_later(deleted)

    def close_offline(self, key: Partition, reason: str) -> None:
        """Take an open log offline, and leave its files alone."""
        log = self.logs.pop(key, None)
        if log is not None:
            self.offline_homes[key] = self.home_of(log)
            log.abandon(reason)
        self.offline[key] = reason

    def forget_offsets(self, keys: Collection[Partition]) -> None:
        """Remove deleted logs from the checkpoint files: a start considers a recorded log without a directory lost.

        Raises OSError.
        """
        for directory in self.directories.online:
            directory.forget_offsets(keys)

    def forget_all_but(self, keys: Collection[Partition]) -> None:
        """Remove all logs but ``keys`` from the checkpoint files. Raises OSError."""
        for directory in self.directories.online:
            directory.forget_offsets(directory.recorded().difference(keys, _UNMANAGED))

    def set_aside(self, topic: str, partition: int, suffix: str, now_ms: int) -> str:
        """Close a log, and rename its directory to end with ``suffix``. Return the new path. Raises OSError."""
        key = (topic, partition)
        log = self._leave(key)
        self.offline.pop(key, None)
        home = self.offline_homes.pop(key, None) if log is None else self.home_of(log)
        if log is not None:
            log.close(clean=True, now_ms=now_ms)
        if home is None:
            raise FileNotFoundError(errno.ENOENT, "no such log", f"{topic}-{partition}")
        deleted = checkpoints.deleted_path(home.log_path(key), self.new_uuid().hex)
        path = deleted.removesuffix(checkpoints.DELETED_SUFFIX) + suffix
        self.removed_logs.rename(home, key, path)
        return path

    def replace(self, log: Log, copy: str, target: DataDirectory, unique: str, now_ms: int) -> Log:
        """Replace ``log`` by ``copy``, a complete and synced copy in ``target``. Return the new open log.

        Raises KafkaError, OSError; then ``log`` is unchanged or, if it is closed, offline.
        """
        key = log.topic_partition
        home = self.home_of(log)
        removed = checkpoints.deleted_path(log.directory, unique)
        self.file_system.rename(log.directory, removed)
        try:
            # After a power loss the log must not be in both directories.
            self.file_system.sync_dir(home.path)
            self.file_system.rename(copy, target.log_path(key))
        except OSError as error:
            try:
                self.file_system.rename(removed, log.directory)
            except OSError:
                self._leave(key)
                log.abandon(str(error))
                self.offline[key] = str(error)
            raise
        log.close(clean=False, now_ms=now_ms)
        self._leave(key)
        try:
            self.file_system.sync_dir(target.path)
            self.removed_logs.remove_later(removed)
            return self._open(target, key, log.config, log.topic_id, clean=True, now_ms=now_ms)
        except (KafkaError, OSError, ValueError) as error:
            self.offline[key] = str(error)
            self.offline_homes[key] = target
            raise

    def directory_error(self, directory: DataDirectory, error: OSError) -> None:
        """Take ``directory`` offline if ``error`` means that it has failed."""
        is_gone = isinstance(error, FileNotFoundError) and not self.file_system.exists(directory.file(checkpoints.LOCK_FILE))
        if is_gone or is_directory_failure(error):
            self._fail(directory, str(error))
        elif is_full(error):
            directory.reserve.is_wanted = True

    def look_for_directories(self) -> None:
        """Take removed directories offline: their open files can still be written, but are lost."""
        for directory in self.directories.all:
            if not directory.failure and directory.is_gone:
                self._fail(directory, "the directory was removed")

    def note_error(self, log: Log, error: OSError) -> None:
        """Do ``directory_error`` for the directory of ``log``."""
        self.directory_error(self.home_of(log), error)

    def _fail(self, directory: DataDirectory, reason: str) -> None:
        if not directory.failure:
            directory.fail(reason)
            if self.on_failure is not None:
                self.on_failure(directory)

    def take_offline(self, directory: DataDirectory) -> list[Partition]:
        """Take the logs of a failed directory offline without writing anything. Return their keys."""
        lost = {key: log for key, log in self.logs.items() if self.home_of(log) is directory}
        for key, log in lost.items():
            self._leave(key)
            log.abandon(directory.failure)
            self.offline[key] = directory.failure
        return list(lost)

    def expire_producers(self, now_ms: int) -> int:
        """Drop idle producers of all logs (every ``producer.id.expiration.check.interval.ms``). Return their number."""
        return sum(log.expire_producers(now_ms) for log in self.logs.values())

    def shutdown(self, now_ms: int, *, for_each: ForEachLog | None = None) -> None:
        """Flush and close every log, mark the stop clean in each directory where that succeeded, and unlock them.

        ``for_each`` calls a function with each log, perhaps in threads: a disk writes many files at once as fast as one.
        """
        # An offline log must be recovered by the next start, so the stop is not clean.
        unclean = {directory.path for directory in self.offline_homes.values()}
        for directory in self.directories.all:
            directory.disk_errors.on_error = None
        for directory in self.directories.online:
            if directory.reserve.is_wanted:
                # The indexes and snapshots of the logs may use the reserve. The next start has what they leave.
                with suppress(OSError):
                    directory.reserve.release()

        def close(log: Log) -> None:
            try:
                log.close(clean=True, now_ms=now_ms)
            except (KafkaError, OSError) as error:
                unclean.add(self.home_of(log).path)
                self._warn("cannot flush a log", topic=log.topic, partition=log.partition, reason=str(error))

        if for_each is not None:
            for_each(close, self.logs.values())
        else:
            for log in self.logs.values():
                close(log)
        try:
            self.checkpoints.write()
            for directory in self.directories.online:
                if directory.path not in unclean:
                    directory.mark_clean(self.broker_epoch)
        except OSError as error:
            self._warn("unclean stop: the next start recovers logs", reason=str(error))
        finally:
            self.directories.fill_reserves()
            self.release()

    def release(self) -> None:
        """Unlock the directories as a crash would: nothing is flushed or marked. Idempotent."""
        self.logs.clear()
        self._open_logs.clear()
        self.directories.release()
