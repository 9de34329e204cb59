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
from collections.abc import Callable, Mapping
from uuid import UUID, uuid4

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage import checkpoints
from odradek.storage.data_directory import METADATA_TOPIC, OFFSET_FILES, DataDirectory, DirectoryIdentity, Partition
from odradek.storage.directory_scan import scan
from odradek.storage.errors import InconsistentDataDirectory, is_directory_failure
from odradek.storage.filesystem import FileSystem
from odradek.storage.flush import FlushTask
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig
from odradek.storage.recovery import Warn
from odradek.storage.segment_removal import SegmentRemoval


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
        self.directories = [DataDirectory(file_system, path, warn) for path in log_dirs]
        self.metadata_directory = self.directories[0]
        if metadata_dir is not None:
            found = [directory for directory in self.directories if directory.path == metadata_dir]
            self.metadata_directory = found[0] if found else DataDirectory(file_system, metadata_dir, warn)
        self.removal = SegmentRemoval(file_system)
        # See ``Log.on_flush_due``; to be set before any log is opened.
        self.on_flush_due: Callable[[Log], None] | None = None
        # Called with a directory that has just failed, from within whatever met the error: to have ``take_offline`` called soon.
        self.on_failure: Callable[[DataDirectory], object] | None = None
        # Copies of logs that a stop has interrupted: which log, and where it was to move.
        self.unfinished_moves: list[tuple[Partition, DataDirectory]] = []
        self._by_path = {directory.path: directory for directory in self._all_directories()}
        self._file_system = file_system
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._warn = warn
        self._new_uuid = new_uuid
        self._removable: list[str] = []

    @property
    def was_clean(self) -> bool:
        """Whether the last stop was clean, in all directories."""
        return all(directory.was_clean for directory in self._all_directories())

    @property
    def online(self) -> list[DataDirectory]:
        """Those of ``log.dirs`` that work."""
        return [directory for directory in self.directories if not directory.failure]

    def _all_directories(self) -> list[DataDirectory]:
        extra = self.metadata_directory
        return self.directories if extra in self.directories else [*self.directories, extra]

    def start(self) -> DirectoryIdentity:
        """Take the directories, which are created if need be, and read their top files. To be called before everything else.

        One that fails goes offline; what it returns is the metadata log's. Raises DataDirectoryLocked, InconsistentDataDirectory,
        or OSError where the metadata log's does not work, or none of ``log_dirs``: nothing has been touched then.
        """
        try:
            self._attempt_each(lambda directory: directory.take(self._node_id))
            cluster_id = self._agreed_cluster_id()
            self._ensure_metadata_in_place()
            self._attempt_each(lambda directory: directory.begin(lambda: self._new_identity(cluster_id)))
        except BaseException:
            self.release()
            raise
        identity = self.metadata_directory.identity
        assert identity is not None  # noqa: S101  one that does not work has raised
        return identity

    def _attempt_each(self, action: Callable[[DataDirectory], None]) -> None:
        for directory in self._all_directories():
            if directory.failure:
                continue
            try:
                action(directory)
            except OSError as error:
                is_last = not any(other is not directory for other in self.online)
                if directory is self.metadata_directory or is_last:
                    raise
                directory.fail(str(error))

    def _agreed_cluster_id(self) -> str:
        """The one cluster id of all directories. Raises InconsistentDataDirectory."""
        agreed, said_by = self._cluster_id, "the configuration"
        ids: dict[UUID, str] = {}
        for directory in self._all_directories():
            identity = directory.identity
            if identity is None:
                continue
            path = directory.file(checkpoints.META_PROPERTIES_FILE)
            if agreed not in (None, identity.cluster_id):
                raise InconsistentDataDirectory(
                    f"{path}: this is the data of cluster {identity.cluster_id}, not {agreed} as {said_by} says"
                )
            agreed, said_by = identity.cluster_id, path
            if identity.directory_id in ids:
                raise InconsistentDataDirectory(f"{path} and {ids[identity.directory_id]} have the same directory.id")
            ids[identity.directory_id] = path
        return agreed or checkpoints.uuid_text(self._new_uuid())

    def _ensure_metadata_in_place(self) -> None:
        """The metadata log must not be looked for in the wrong directory. Raises InconsistentDataDirectory."""
        name = f"{METADATA_TOPIC}-0"
        if self._file_system.exists(self.metadata_directory.file(name)):
            return
        for directory in self.online:
            if self._file_system.exists(directory.file(name)):
                raise InconsistentDataDirectory(
                    f"the metadata log is in {directory.path}, and not in {self.metadata_directory.path}: see metadata.log.dir"
                )

    def _new_identity(self, cluster_id: str) -> DirectoryIdentity:
        return DirectoryIdentity(cluster_id=cluster_id, node_id=self._node_id, directory_id=self._new_uuid())

    def directory_of(self, directory_id: UUID) -> DataDirectory | None:
        """The one of ``log.dirs`` with this id; None for one that is not there, or has never worked since the start."""
        for directory in self.directories:
            if directory.identity is not None and directory.identity.directory_id == directory_id:
                return directory
        return None

    def home_of(self, log: Log) -> DataDirectory:
        """The directory that a log is in."""
        return self._by_path[log.directory.rpartition("/")[0]]

    def counts(self) -> dict[UUID, int]:
        """How many logs there are in each directory that works, by its id."""
        homes = [self.home_of(log) for log in self.logs.values()] + list(self.offline_homes.values())
        per_path = Counter(directory.path for directory in homes)
        return {
            directory.identity.directory_id: per_path[directory.path]
            for directory in self.online
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
        are_all = len(self.online) == len(self.directories)
        found = scan(self._file_system, self.online, topic_ids, are_all=are_all)
        self._removable += found.removable
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
        if not self.online:
            raise OSError(self.directories[-1].failure)
        self.remove_deleted()

    def _load(self, directory: DataDirectory, key: Partition, config: LogConfig, topic_id: UUID | None, now_ms: int) -> None:
        try:
            try:
                self._open(directory, key, config, topic_id, clean=directory.was_clean, now_ms=now_ms)
            except ValueError:
                if topic_id is None:
                    raise
                checkpoints.write_topic_id(self._file_system, directory.log_path(key), topic_id)
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
        if log is not None or self._file_system.exists(directory.log_path(key)):
            self.delete(topic, partition)
        if directory.knows(key):
            # Of a topic of the same name that was deleted: the new log must not be taken for it after a crash.
            for name in reversed(OFFSET_FILES):
                directory.note_offset(name, key, None)
        return self._open(directory, key, config, topic_id, clean=False, now_ms=now_ms)

    def _emptiest(self) -> DataDirectory:
        counts = self.counts()
        if not counts:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no data directory works")
        found = self.directory_of(min(counts, key=counts.__getitem__))
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
        log = self.logs[key] = Log.open(
            self._file_system,
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
        log.on_flush_due = self.on_flush_due
        log.on_disk_error = self.note_error
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Take a log out of service, offline or not, and rename its directory: ``remove_deleted`` frees the disk later.

        One in a directory that does not work is looked for by the next start. Raises OSError, FileNotFoundError where there is no
        such log.
        """
        key = (topic, partition)
        log = self.logs.pop(key, None)
        self.offline.pop(key, None)
        home = self.offline_homes.pop(key, None) if log is None else self.home_of(log)
        if log is not None:
            log.close(clean=False, now_ms=log.last_flush_ms)
        if home is None:
            home = next((other for other in self.online if self._file_system.exists(other.log_path(key))), None)
        if home is None:
            if len(self.online) < len(self.directories):
                return
            raise FileNotFoundError(errno.ENOENT, "there is no such log", f"{topic}-{partition}")
        if home.failure:
            return
        deleted = checkpoints.deleted_path(home.log_path(key), self._new_uuid().hex)
        self._file_system.rename(home.log_path(key), deleted)
        self._removable.append(deleted)

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
        deleted = checkpoints.deleted_path(home.log_path(key), self._new_uuid().hex)
        path = deleted.removesuffix(checkpoints.DELETED_SUFFIX) + suffix
        self._file_system.rename(home.log_path(key), path)
        return path

    def note_error(self, log: Log, error: OSError) -> None:
        """Something went wrong with the files of ``log``: if that says that its directory does not work, it goes offline."""
        home = self.home_of(log)
        is_gone = isinstance(error, FileNotFoundError) and not self._file_system.exists(home.file(checkpoints.LOCK_FILE))
        if is_gone or is_directory_failure(error):
            self._fail(home, str(error))

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

    def remove_deleted(self) -> None:
        """Remove the directories of deleted logs. Slow with large ones: it may run in a thread. Raises OSError."""
        while self._removable:
            path = self._removable.pop()
            if not self._by_path[path.rpartition("/")[0]].failure:
                self._file_system.remove_tree(path)

    def flush_tasks(self, now_ms: int) -> list[tuple[Log, FlushTask]]:
        """What is due: logs that ``flush.ms`` says are, and segments that are not written to any more.

        For each, ``run`` the task in any thread, then tell its log by ``flushed`` or ``sync_failed``. A log whose task cannot be
        made is left for the next time, with a warning.
        """
        tasks = []
        for log in self.logs.values():
            is_due = log.recovery_point < log.log_end_offset and now_ms - log.last_flush_ms >= log.config.flush_ms
            if log.has_lost_sync or not (is_due or log.recovery_point < log.segments.active.base_offset):
                continue
            try:
                tasks.append((log, log.flush_task(active=is_due)))
            except OSError as error:
                self._warn("log not flushed", topic=log.topic, partition=log.partition, reason=str(error))
        return tasks

    def flushed(self, log: Log, task: FlushTask, error: OSError | None, now_ms: int) -> None:
        """Tell ``log`` how its task has ended, if it is still one of these: a deleted one is nobody's worry."""
        if self.logs.get((log.topic, log.partition)) is not log:
            return
        if error is None:
            log.flushed(task, now_ms)
        else:
            log.sync_failed(error)
            self._warn("log out of service, it cannot be synced", topic=log.topic, partition=log.partition, reason=str(error))

    def delete_old_segments(self, now_ms: int) -> int:
        """Let go of the segments that retention does not keep; how many. A log for which that fails is left for the next time.

        Their files are removed when their time has come: see ``removal``.
        """
        removed = []
        for log in self.logs.values():
            try:
                segments = log.release_old_segments(now_ms)
            except (KafkaError, OSError) as error:
                self._warn("old segments not deleted", topic=log.topic, partition=log.partition, reason=str(error))
                continue
            if segments:
                removed.append((log, segments))
        if not removed:
            return 0
        try:
            self.write_start_offsets()
            one_by_one = False
        except OSError as error:
            # The disk may be full: all the more reason to go on.
            self._warn("log start offsets not written", reason=str(error))
            one_by_one = True
        for log, segments in removed:
            delay_ms = log.config.file_delete_delay_ms
            try:
                self.removal.set_aside(log.directory, segments, delay_ms=delay_ms, one_by_one=one_by_one)
            except OSError as error:
                self._warn("old segments left to the next start", topic=log.topic, partition=log.partition, reason=str(error))
        return sum(len(segments) for _, segments in removed)

    def write_checkpoints(self) -> None:
        """Write where logs start and where they are synced up to, as far as the files would change. Raises OSError."""
        # In this order: a log may have been synced up to where it starts now.
        self.write_start_offsets()
        self._write_offsets(checkpoints.RECOVERY_POINT_FILE, lambda log: log.recovery_point)

    def write_start_offsets(self) -> None:
        """Write where logs start, as far as the files would change. Raises OSError.

        Kafka leaves out those that start with a segment; here the file is what tells a removed segment from a lost one.
        """
        self._write_offsets(checkpoints.LOG_START_FILE, lambda log: log.log_start_offset or None)

    def write_cleaned_offsets(self) -> None:
        """Write up to where logs are compacted, as far as the files would change. Raises OSError."""
        self._write_offsets(checkpoints.CLEANER_OFFSET_FILE, lambda log: log.cleaned_offset)

    def _write_offsets(self, name: str, offset_of: Callable[[Log], int | None]) -> None:
        # What a checkpoint said of logs that are offline, it goes on saying.
        offsets = {directory.path: directory.held_of(name, self.offline) for directory in self.online}
        for key, log in self.logs.items():
            offset = offset_of(log)
            if offset is not None:
                held = offsets.get(log.directory.rpartition("/")[0])
                if held is not None:
                    held[key] = offset
        failure: OSError | None = None
        for directory in self.online:
            try:
                directory.write_offsets(name, offsets[directory.path])
            except OSError as error:
                failure = error
                if is_directory_failure(error):
                    self._fail(directory, str(error))
        if failure is not None:
            raise failure

    def expire_producers(self, now_ms: int) -> int:
        """Forget idle producers in all logs (every ``producer.id.expiration.check.interval.ms``); how many."""
        return sum(log.expire_producers(now_ms) for log in self.logs.values())

    def shutdown(self, now_ms: int) -> None:
        """Flush and close every log, mark the stop as clean where that went well, and let go of the directories."""
        # An offline log has to be looked at again by the next start, which a clean one would not do.
        unclean = {directory.path for directory in self.offline_homes.values()}
        for (topic, partition), log in self.logs.items():
            try:
                log.close(clean=True, now_ms=now_ms)
            except (KafkaError, OSError) as error:
                unclean.add(self.home_of(log).path)
                self._warn("log not flushed", topic=topic, partition=partition, reason=str(error))
        try:
            self.write_checkpoints()
            for directory in self.online:
                if directory.path not in unclean:
                    directory.mark_clean()
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the directories as a crash would: nothing is flushed or marked. Idempotent."""
        self.logs.clear()
        for directory in self._all_directories():
            directory.release()
