"""All logs of one data directory, and the files at its top: who it belongs to, and up to where each log is safe.

    .lock                              held while a broker runs
    meta.properties                    cluster id, node id, directory id
    .kafka_cleanshutdown               there if the last stop was clean; gone while a broker runs
    recovery-point-offset-checkpoint   up to where each log is synced
    log-start-offset-checkpoint        where logs start, if not at 0
    cleaner-offset-checkpoint          up to where logs are compacted
    <topic>-<partition>/               a log
    <topic>-<partition>.<uuid>-delete/ a deleted log that is still to be removed

Left out: several data directories, moving logs between them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

from odradek.protocol.errors import KafkaError
from odradek.storage import checkpoints
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.storage.filesystem import FileSystem, Lock
from odradek.storage.flush import FlushTask
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig
from odradek.storage.recovery import Warn
from odradek.storage.segment_removal import SegmentRemoval

METADATA_TOPIC = "__cluster_metadata"
_NO_BROKER_EPOCH = b'{"version":0,"brokerEpoch":-1}'
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIdentity:
    """What ``meta.properties`` says. A cluster id is usually a UUID in Kafka's base64, but may be any text."""

    cluster_id: str
    node_id: int
    directory_id: UUID


class LogManager:
    """The logs of ``log_dir``. ``logs`` are those that serve; ``offline`` tells of each other one why it does not."""

    def __init__(
        self,
        file_system: FileSystem,
        log_dir: str,
        *,
        node_id: int,
        warn: Warn,
        cluster_id: str | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        """``cluster_id`` must be the directory's, if it has one; one that has none gets it, or else one that is drawn."""
        self.logs: dict[Partition, Log] = {}
        self.offline: dict[Partition, str] = {}
        self.log_dir = log_dir
        self.was_clean = False
        self.removal = SegmentRemoval(file_system)
        # See ``Log.on_flush_due``; to be set before any log is opened.
        self.on_flush_due: Callable[[Log], None] | None = None
        self._file_system = file_system
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._warn = warn
        self._new_uuid = new_uuid
        self._lock: Lock | None = None
        # What the checkpoint files say: read at the start, then as last written.
        self._recovery_points: dict[Partition, int] = {}
        self._start_offsets: dict[Partition, int] = {}
        self._cleaned_offsets: dict[Partition, int] = {}
        self._removable: list[str] = []

    def start(self) -> DirectoryIdentity:
        """Take the directory, which is created if need be, and read its top files. To be called before everything else.

        Raises DataDirectoryLocked, InconsistentDataDirectory, OSError; nothing has been touched then.
        """
        self._file_system.make_dirs(self.log_dir)
        try:
            self._lock = self._file_system.lock(self._path(checkpoints.LOCK_FILE))
        except BlockingIOError as error:
            raise DataDirectoryLocked(self.log_dir) from error
        try:
            identity = self._identify()
        except BaseException:
            self.release()
            raise
        marker = self._path(checkpoints.CLEAN_SHUTDOWN_FILE)
        self.was_clean = self._file_system.exists(marker)
        if self.was_clean:
            self._file_system.remove(marker)
            self._file_system.sync_dir(self.log_dir)
        self._recovery_points = self._read_offsets(checkpoints.RECOVERY_POINT_FILE)
        self._start_offsets = self._read_offsets(checkpoints.LOG_START_FILE)
        self._cleaned_offsets = self._read_offsets(checkpoints.CLEANER_OFFSET_FILE)
        return identity

    def _identify(self) -> DirectoryIdentity:
        """Read ``meta.properties``, or write it into a new directory. Raises InconsistentDataDirectory."""
        path = self._path(checkpoints.META_PROPERTIES_FILE)
        found = checkpoints.read_meta_properties(self._file_system, self.log_dir)
        if found is None:
            return self._write_identity()
        try:
            identity = DirectoryIdentity(
                cluster_id=found["cluster.id"],
                node_id=int(found["node.id"]),
                directory_id=checkpoints.parse_uuid(found["directory.id"]),
            )
        except (KeyError, ValueError) as error:
            raise InconsistentDataDirectory(f"{path} cannot be used: {error!r}") from error
        if identity.node_id != self._node_id:
            raise InconsistentDataDirectory(f"{path}: this is the data of node {identity.node_id}, not {self._node_id}")
        if self._cluster_id not in (None, identity.cluster_id):
            raise InconsistentDataDirectory(f"{path}: this is the data of cluster {identity.cluster_id}, not {self._cluster_id}")
        return identity

    def _write_identity(self) -> DirectoryIdentity:
        identity = DirectoryIdentity(
            cluster_id=self._cluster_id or checkpoints.uuid_text(self._new_uuid()),
            node_id=self._node_id,
            directory_id=self._new_uuid(),
        )
        properties = (
            ("cluster.id", identity.cluster_id),
            ("directory.id", checkpoints.uuid_text(identity.directory_id)),
            ("node.id", str(identity.node_id)),
            ("version", "1"),
        )
        checkpoints.write_meta_properties(self._file_system, self.log_dir, properties)
        return identity

    def load_all(self, config_for_topic: Callable[[str], LogConfig], now_ms: int) -> None:
        """Open every log but that of the metadata, which is its controller's. Those that cannot be opened go offline."""
        for name in sorted(self._file_system.list_dir(self.log_dir)):
            if name.endswith(checkpoints.DELETED_SUFFIX):
                self._removable.append(self._path(name))
                continue
            topic, _, number = name.rpartition("-")
            if not topic or topic == METADATA_TOPIC or not number.isdecimal():
                continue
            try:
                self._open(topic, int(number), config_for_topic(topic), None, clean=self.was_clean, now_ms=now_ms)
            except (KafkaError, OSError, ValueError) as error:
                self.offline[topic, int(number)] = str(error)
                self._warn("partition offline", topic=topic, partition=int(number), reason=str(error))
        self.remove_deleted()

    def create(self, topic: str, partition: int, topic_id: UUID, config: LogConfig, *, now_ms: int) -> Log:
        """A new log, or the one there is of this topic id. Raises KafkaError, OSError.

        Not synced: whoever knows of the topic creates it again if it is lost.
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is not None and log.topic_id == topic_id:
            return log
        if log is not None or self._file_system.exists(self._path(f"{topic}-{partition}")):
            self.delete(topic, partition)
        if key in self._recovery_points or key in self._start_offsets:
            # Of a topic of the same name that was deleted: the new log must not be taken for it after a crash.
            self.write_checkpoints()
        if key in self._cleaned_offsets:
            self.write_cleaned_offsets()
        return self._open(topic, partition, config, topic_id, clean=False, now_ms=now_ms)

    def _open(self, topic: str, partition: int, config: LogConfig, topic_id: UUID | None, *, clean: bool, now_ms: int) -> Log:
        key = (topic, partition)
        log = self.logs[key] = Log.open(
            self._file_system,
            self._path(f"{topic}-{partition}"),
            topic,
            partition,
            config,
            recovery_point=self._recovery_points.get(key, 0),
            log_start_offset=self._start_offsets.get(key, 0),
            cleaned_offset=self._cleaned_offsets.get(key),
            clean=clean,
            now_ms=now_ms,
            warn=self._warn,
            topic_id=topic_id,
            removal=self.removal,
        )
        log.on_flush_due = self.on_flush_due
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Take a log out of service, offline or not, and rename its directory: ``remove_deleted`` frees the disk later.

        Raises OSError, FileNotFoundError where there is no such log.
        """
        log = self.logs.pop((topic, partition), None)
        self.offline.pop((topic, partition), None)
        if log is not None:
            log.close(clean=False, now_ms=log.last_flush_ms)
        directory = self._path(f"{topic}-{partition}")
        deleted = checkpoints.deleted_path(directory, self._new_uuid().hex)
        self._file_system.rename(directory, deleted)
        self._removable.append(deleted)

    def remove_deleted(self) -> None:
        """Remove the directories of deleted logs. Slow with large ones: it may run in a thread. Raises OSError."""
        while self._removable:
            self._file_system.remove_tree(self._removable.pop())

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
        """Write where logs start and where they are synced up to, if either file would change. Raises OSError."""
        # In this order: a log may have been synced up to where it starts now.
        self.write_start_offsets()
        recovery_points = {key: log.recovery_point for key, log in self.logs.items()}
        self._keep_offline(self._recovery_points, recovery_points)
        if recovery_points != self._recovery_points:
            self._write_offsets(checkpoints.RECOVERY_POINT_FILE, recovery_points)
            self._recovery_points = recovery_points

    def write_start_offsets(self) -> None:
        """Write where logs start, if the file would change. Raises OSError.

        Kafka leaves out those that start with a segment; here the file is what tells a removed segment from a lost one.
        """
        start_offsets = {key: log.log_start_offset for key, log in self.logs.items() if log.log_start_offset}
        self._keep_offline(self._start_offsets, start_offsets)
        if start_offsets != self._start_offsets:
            self._write_offsets(checkpoints.LOG_START_FILE, start_offsets)
            self._start_offsets = start_offsets

    def write_cleaned_offsets(self) -> None:
        """Write up to where logs are compacted, if the file would change. Raises OSError."""
        cleaned_offsets = {key: log.cleaned_offset for key, log in self.logs.items() if log.cleaned_offset is not None}
        self._keep_offline(self._cleaned_offsets, cleaned_offsets)
        if cleaned_offsets != self._cleaned_offsets:
            self._write_offsets(checkpoints.CLEANER_OFFSET_FILE, cleaned_offsets)
            self._cleaned_offsets = cleaned_offsets

    def _keep_offline(self, held: dict[Partition, int], kept: dict[Partition, int]) -> None:
        """What a checkpoint said of logs that are offline, it goes on saying."""
        for key in self.offline:
            if key in held:
                kept[key] = held[key]

    def expire_producers(self, now_ms: int) -> int:
        """Forget idle producers in all logs (every ``producer.id.expiration.check.interval.ms``); how many."""
        return sum(log.expire_producers(now_ms) for log in self.logs.values())

    def shutdown(self, now_ms: int) -> None:
        """Flush and close every log, mark the stop as clean if that went well, and let go of the directory."""
        is_clean = True
        for (topic, partition), log in self.logs.items():
            try:
                log.close(clean=True, now_ms=now_ms)
            except (KafkaError, OSError) as error:
                is_clean = False
                self._warn("log not flushed", topic=topic, partition=partition, reason=str(error))
        try:
            self.write_checkpoints()
            # An offline log has to be looked at again by the next start, which a clean one would not do.
            if is_clean and not self.offline:
                self._file_system.write_atomic(self._path(checkpoints.CLEAN_SHUTDOWN_FILE), _NO_BROKER_EPOCH)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the directory as a crash would: nothing is flushed or marked. Idempotent."""
        self.logs.clear()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _read_offsets(self, name: str) -> dict[Partition, int]:
        """A checkpoint file; one that cannot be read counts as empty, which costs a longer recovery."""
        try:
            return checkpoints.read_offsets(self._file_system, self._path(name))
        except ValueError as error:
            self._warn("checkpoint ignored", path=self._path(name), reason=str(error))
            return {}

    def _write_offsets(self, name: str, offsets: dict[Partition, int]) -> None:
        checkpoints.write_offsets(self._file_system, self._path(name), offsets)

    def _path(self, name: str) -> str:
        return f"{self.log_dir}/{name}"
