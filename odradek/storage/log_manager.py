"""All logs of a broker, in one data directory or several (``log.dirs``).

What lies in a directory, and the files at its top: odradek.storage.data_directory. A new log goes where the fewest are. One
directory may fail and the rest go on: its logs are ``offline`` then, until the next start; only without that of the metadata log
(``metadata.log.dir``, the first by default) there is no start.

A log moves to another directory as a copy there, ``<topic>-<partition>.<uuid>-future``. When that has everything, and is synced,
the log is renamed to end with ``-delete``, that name is synced, and the copy gets the log's name. So a copy beside a directory of
the same uuid that is to be deleted is the log; beside the log itself it is unfinished, and begun anew.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from uuid import UUID, uuid4

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage import checkpoints
from odradek.storage.data_directories import DataDirectories
from odradek.storage.data_directory import OFFSET_FILES, DataDirectory, DirectoryIdentity, Partition
from odradek.storage.directory_scan import scan
from odradek.storage.errors import is_directory_failure
from odradek.storage.filesystem import FileSystem
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig
from odradek.storage.log_flusher import LogFlusher
from odradek.storage.offset_checkpoints import OffsetCheckpoints
from odradek.storage.recovery import Warn
from odradek.storage.removed_logs import RemovedLogs
from odradek.storage.retention_check import RetentionCheck
from odradek.storage.segment_removal import SegmentRemoval

ForEachLog = Callable[[Callable[[Log], None], Iterable[Log]], None]


class LogManager:
    """The logs of ``log_dirs``. ``logs`` are those that serve; ``offline`` tells of each other one why it does not."""

    def __init__(
        self,
        file_system: FileSystem,
        *log_dirs: str,
        node_id: int,
        warn: Warn,
        cluster_id: str | None = None,
        metadata_dir: str | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        """``cluster_id`` must be the directories', if one has any; those that have none get it, or else one that is drawn.

        ``metadata_dir`` is the first of ``log_dirs`` unless it is given; it may be none of them.
        """
        self.logs: dict[Partition, Log] = {}
        self.offline: dict[Partition, str] = {}
        # Where those lie of the offline ones that were found, and could not be opened.
        self.offline_homes: dict[Partition, DataDirectory] = {}
        self.directories = DataDirectories(file_system, log_dirs, metadata_dir, warn)
        self.removal = SegmentRemoval(file_system)
        self.removed_logs = RemovedLogs(file_system, self.directories)
        self.checkpoints = OffsetCheckpoints(self.directories, self.logs, self.offline, self._fail)
        self.retention = RetentionCheck(self.logs, self.removal, self.checkpoints, self.note_error, warn)
        self.flusher = LogFlusher(self.logs, self.note_error, warn)
        # Called with a log when ``flush.messages`` is reached (odradek.storage.flush_state). Set it before any log is opened.
        self.on_flush_due: Callable[[Log], None] | None = None
        # Called with a directory that has just failed, from within whatever met the error: to have ``take_offline`` called soon.
        self.on_failure: Callable[[DataDirectory], object] | None = None
        # Copies of logs that a stop has interrupted: which log, and where it was to move.
        self.unfinished_moves: list[tuple[Partition, DataDirectory]] = []
        self.file_system = file_system
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._warn = warn
        self.new_uuid = new_uuid

    @property
    def was_clean(self) -> bool:
        """Whether the last stop was clean, in all directories."""
        return all(directory.was_clean for directory in self.directories.all)

    def start(self) -> DirectoryIdentity:
        """Take the directories; what it returns is the metadata log's. To be called before everything else.

        Raises DataDirectoryLocked, InconsistentDataDirectory, OSError: nothing has been touched then.
        """
        return self.directories.start(self._node_id, self._cluster_id, self.new_uuid)

    def home_of(self, log: Log) -> DataDirectory:
        """The directory that a log is in."""
        return self.directories.with_path(log.directory.rpartition("/")[0])

    def counts(self) -> dict[UUID, int]:
        """How many logs there are in each directory that works, by its id."""
        homes = [self.home_of(log) for log in self.logs.values()] + list(self.offline_homes.values())
        per_path = Counter(directory.path for directory in homes)
        return {
            directory.identity.directory_id: per_path[directory.path]
            for directory in self.directories.online
            if directory.identity is not None
        }

    def load_all(
        self, config_for_topic: Callable[[str], LogConfig], now_ms: int, topic_ids: Mapping[Partition, UUID] | None = None
    ) -> None:
        """Open every log but that of the metadata, which is its controller's. Those that cannot be opened go offline.

        A log that has not recorded its topic's id gets it from ``topic_ids``. Raises InconsistentDataDirectory where a log is in
        two directories, OSError where no directory works any more.
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
                self.logs.pop(key, None)
                self.offline[key] = directory.failure
        if not self.directories.online:
            raise OSError(self.directories.metadata.failure)
        self.removed_logs.remove_all()

    def _load(self, directory: DataDirectory, key: Partition, config: LogConfig, topic_id: UUID | None, now_ms: int) -> None:
        try:
            try:
                self._open(directory, key, config, topic_id, clean=directory.was_clean, now_ms=now_ms)
            except ValueError:
                if topic_id is None:
                    raise
                checkpoints.write_topic_id(self.file_system, directory.log_path(key), topic_id)
                self._open(directory, key, config, topic_id, clean=directory.was_clean, now_ms=now_ms)
        except (KafkaError, OSError, ValueError) as error:
            if isinstance(error, OSError) and is_directory_failure(error):
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
        """A new log, or the one there is of this topic id; in ``directory``, or where the fewest are. Raises KafkaError, OSError.

        Not synced: whoever knows of the topic creates it again if it is lost.
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
        if directory.knows(key):
            # Of a topic of the same name that was deleted: the new log must not be taken for it after a crash.
            for name in reversed(OFFSET_FILES):
                directory.note_offset(name, key, None)
        try:
            return self._open(directory, key, config, topic_id, clean=False, now_ms=now_ms)
        except OSError as error:
            self.directory_error(directory, error)
            raise

    def _emptiest(self) -> DataDirectory:
        counts = self.counts()
        if not counts:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no data directory works")
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
        )
        if self.on_flush_due is not None:
            log.flush_state.on_flush_due = partial(self.on_flush_due, log)
        log.disk_errors.on_error = partial(self.directory_error, directory)
        log.truncation.before = partial(self.checkpoints.lower, directory, key)
        log.flush_found(now_ms)
        self.logs[key] = log
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Take a log out of service, offline or not, and rename its directory: ``removed_logs`` frees the disk later.

        One in a directory that does not work is looked for by the next start. Raises OSError, FileNotFoundError where there is no
        such log.
        """
        key = (topic, partition)
        log = self.logs.pop(key, None)
        self.offline.pop(key, None)
        home = self.offline_homes.pop(key, None) if log is None else self.home_of(log)
        if log is not None:
            log.close(clean=False, now_ms=log.flush_state.last_flush_ms)
        if home is None:
            home = next((other for other in self.directories.online if self.file_system.exists(other.log_path(key))), None)
        if home is None:
            if not self.directories.are_online:
                return
            raise FileNotFoundError(errno.ENOENT, "there is no such log", f"{topic}-{partition}")
        if home.failure:
            return
        deleted = checkpoints.deleted_path(home.log_path(key), self.new_uuid().hex)
        self.removed_logs.rename(home, key, deleted)
        self.removed_logs.remove_later(deleted)

    def set_aside(self, topic: str, partition: int, suffix: str, now_ms: int) -> str:
        """Take a log out of service for good, and rename its directory to end with ``suffix``: its path then. Raises OSError."""
        key = (topic, partition)
        log = self.logs.pop(key, None)
        self.offline.pop(key, None)
        home = self.offline_homes.pop(key, None) if log is None else self.home_of(log)
        if log is not None:
            log.close(clean=True, now_ms=now_ms)
        if home is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such log", f"{topic}-{partition}")
        deleted = checkpoints.deleted_path(home.log_path(key), self.new_uuid().hex)
        path = deleted.removesuffix(checkpoints.DELETED_SUFFIX) + suffix
        self.removed_logs.rename(home, key, path)
        return path

    def replace(self, log: Log, copy: str, target: DataDirectory, unique: str, now_ms: int) -> Log:
        """Let ``copy``, a directory in ``target`` with all that ``log`` has, and synced, be the log; returns it, open.

        Raises KafkaError, OSError: ``log`` is as it was unless it is closed; then it is offline.
        """
        key = (log.topic, log.partition)
        home = self.home_of(log)
        removed = checkpoints.deleted_path(log.directory, unique)
        self.file_system.rename(log.directory, removed)
        try:
            # Not to be found in both directories, whatever a loss of power undoes.
            self.file_system.sync_dir(home.path)
            self.file_system.rename(copy, target.log_path(key))
        except OSError as error:
            try:
                self.file_system.rename(removed, log.directory)
            except OSError:
                self.logs.pop(key).abandon(str(error))
                self.offline[key] = str(error)
            raise
        log.close(clean=False, now_ms=now_ms)
        del self.logs[key]
        try:
            self.file_system.sync_dir(target.path)
            self.removed_logs.remove_later(removed)
            return self._open(target, key, log.config, log.topic_id, clean=True, now_ms=now_ms)
        except (KafkaError, OSError, ValueError) as error:
            self.offline[key] = str(error)
            self.offline_homes[key] = target
            raise

    def directory_error(self, directory: DataDirectory, error: OSError) -> None:
        """Something went wrong in ``directory``: if that says that it does not work, it goes offline."""
        is_gone = isinstance(error, FileNotFoundError) and not self.file_system.exists(directory.file(checkpoints.LOCK_FILE))
        if is_gone or is_directory_failure(error):
            self._fail(directory, str(error))

    def note_error(self, log: Log, error: OSError) -> None:
        """Something went wrong with the files of ``log``."""
        self.directory_error(self.home_of(log), error)

    def _fail(self, directory: DataDirectory, reason: str) -> None:
        if not directory.failure:
            directory.fail(reason)
            if self.on_failure is not None:
                self.on_failure(directory)

    def take_offline(self, directory: DataDirectory) -> list[Partition]:
        """Take the logs of a directory that has failed out of service, with nothing more written; which they were."""
        lost = [key for key, log in self.logs.items() if self.home_of(log) is directory]
        for key in lost:
            log = self.logs.pop(key)
            log.abandon(directory.failure)
            self.offline[key] = directory.failure
        return lost

    def expire_producers(self, now_ms: int) -> int:
        """Forget idle producers in all logs (every ``producer.id.expiration.check.interval.ms``); how many."""
        return sum(log.expire_producers(now_ms) for log in self.logs.values())

    def shutdown(self, now_ms: int, *, for_each: ForEachLog | None = None) -> None:
        """Flush and close every log, mark the stop as clean where that went well, and let go of the directories.

        ``for_each`` calls a function with each log, in threads perhaps: a disk writes many files at once as fast as one.
        """
        # An offline log has to be looked at again by the next start, which a clean one would not do.
        unclean = {directory.path for directory in self.offline_homes.values()}

        def close(log: Log) -> None:
            log.disk_errors.on_error = None
            try:
                log.close(clean=True, now_ms=now_ms)
            except (KafkaError, OSError) as error:
                unclean.add(self.home_of(log).path)
                self._warn("log not flushed", topic=log.topic, partition=log.partition, reason=str(error))

        if for_each is not None:
            for_each(close, self.logs.values())
        else:
            for log in self.logs.values():
                close(log)
        try:
            self.checkpoints.write()
            for directory in self.directories.online:
                if directory.path not in unclean:
                    directory.mark_clean()
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the directories as a crash would: nothing is flushed or marked. Idempotent."""
        self.logs.clear()
        self.directories.release()
