"""One of ``log.dirs``: its identity, whether it is online, and the files at its top.

    .lock                              held while a broker runs
    meta.properties                    cluster id, node id, directory id
    .kafka_cleanshutdown               there if the last stop was clean; gone while a broker runs
    recovery-point-offset-checkpoint   up to where each log is synced
    log-start-offset-checkpoint        where logs start, if not at 0
    cleaner-offset-checkpoint          up to where logs are compacted
    <topic>-<partition>/               a log
    <topic>-<partition>.<uuid>-future/ the unfinished copy of a log that moves here from another directory
    <topic>-<partition>.<uuid>-delete/ a log that was deleted, or has moved away, and waits for its removal

A directory that cannot be read or written goes offline, with all that is in it, until the next start (KIP-112).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from odradek.storage import checkpoints
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.storage.filesystem import FileSystem, Lock
from odradek.storage.recovery import Warn

METADATA_TOPIC = "__cluster_metadata"
_NO_BROKER_EPOCH = b'{"version":0,"brokerEpoch":-1}'
OFFSET_FILES = (checkpoints.RECOVERY_POINT_FILE, checkpoints.LOG_START_FILE, checkpoints.CLEANER_OFFSET_FILE)
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIdentity:
    """What ``meta.properties`` says. A cluster id is usually a UUID in Kafka's base64, but may be any text."""

    cluster_id: str
    node_id: int
    directory_id: UUID


class DataDirectory:
    """``failure`` is the reason why it is offline, empty while it is online. ``begin`` sets ``identity``."""

    def __init__(self, file_system: FileSystem, path: str, warn: Warn) -> None:
        self.path = path
        self.failure = ""
        self.was_clean = False
        self.identity: DirectoryIdentity | None = None
        # What the checkpoint files say, by their names: read at the start, then as last written.
        self._held: dict[str, dict[Partition, int]] = {name: {} for name in OFFSET_FILES}
        self._file_system = file_system
        self._warn = warn
        self._lock: Lock | None = None

    def take(self, node_id: int) -> None:
        """Create the directory if need be, lock it, and read its identity; nothing else is changed.

        Raises DataDirectoryLocked, InconsistentDataDirectory, OSError.
        """
        self._make()
        try:
            self._lock = self._file_system.lock(self.file(checkpoints.LOCK_FILE))
        except BlockingIOError as error:
            raise DataDirectoryLocked(self.path) from error
        self.identity = self._read_identity(node_id)

    def _make(self) -> None:
        """Create the directory if need be, and sync its name: syncs within it rely on that."""
        made = [] if self._file_system.exists(self.file(checkpoints.META_PROPERTIES_FILE)) else [self.path]
        above = self.path.rpartition("/")[0]
        while above and not self._file_system.exists(above):
            made.append(above)
            above = above.rpartition("/")[0]
        self._file_system.make_dirs(self.path)
        for path in made:
            self._file_system.sync_dir(path.rpartition("/")[0] or "/")

    def _read_identity(self, node_id: int) -> DirectoryIdentity | None:
        path = self.file(checkpoints.META_PROPERTIES_FILE)
        try:
            found = checkpoints.read_meta_properties(self._file_system, self.path)
            if found is None:
                return None
            identity = DirectoryIdentity(
                cluster_id=found["cluster.id"],
                node_id=int(found["node.id"]),
                directory_id=checkpoints.parse_uuid(found["directory.id"]),
            )
        except (KeyError, ValueError) as error:
            raise InconsistentDataDirectory(f"{path} cannot be used: {error!r}") from error
        if identity.node_id != node_id:
            raise InconsistentDataDirectory(f"{path}: this is the data of node {identity.node_id}, not {node_id}")
        return identity

    def begin(self, new_identity: Callable[[], DirectoryIdentity]) -> None:
        """Write ``meta.properties`` if there is none, remove the marker of a clean stop, read the checkpoints. Raises OSError."""
        if self.identity is None:
            identity = new_identity()
            properties = (
                ("cluster.id", identity.cluster_id),
                ("directory.id", checkpoints.uuid_text(identity.directory_id)),
                ("node.id", str(identity.node_id)),
                ("version", "1"),
            )
            checkpoints.write_meta_properties(self._file_system, self.path, properties)
            self.identity = identity
        marker = self.file(checkpoints.CLEAN_SHUTDOWN_FILE)
        self.was_clean = self._file_system.exists(marker)
        if self.was_clean:
            self._file_system.remove(marker)
            self._file_system.sync_dir(self.path)
        for name in OFFSET_FILES:
            self._held[name] = self._read_offsets(name)

    def _read_offsets(self, name: str) -> dict[Partition, int]:
        """A checkpoint file; an unreadable one counts as empty, and recovery takes longer."""
        try:
            return checkpoints.read_offsets(self._file_system, self.file(name))
        except ValueError as error:
            self._warn("checkpoint ignored", path=self.file(name), reason=str(error))
            return {}

    def fail(self, reason: str) -> None:
        """Go offline: the directory is not read or written any more. The lock is kept."""
        self.failure = reason
        self._warn("data directory offline", path=self.path, reason=reason)

    def held_offset(self, name: str, key: Partition) -> int | None:
        """A log's offset in the checkpoint file ``name``."""
        return self._held[name].get(key)

    def knows(self, key: Partition) -> bool:
        """Whether any checkpoint file has an offset of a log."""
        return any(key in held for held in self._held.values())

    def held_of(self, name: str, keys: Mapping[Partition, object]) -> dict[Partition, int]:
        """The offsets of ``keys`` in the checkpoint file ``name``, those it has."""
        held = self._held[name]
        return {key: held[key] for key in keys if key in held}

    def write_offsets(self, name: str, offsets: dict[Partition, int]) -> None:
        """Write the checkpoint file ``name``, if it would change. Raises OSError."""
        if offsets != self._held[name]:
            checkpoints.write_offsets(self._file_system, self.file(name), offsets)
            self._held[name] = offsets

    def note_offset(self, name: str, key: Partition, offset: int | None) -> None:
        """Write one log's offset to the checkpoint file ``name``, or remove it. Raises OSError."""
        offsets = {held: value for held, value in self._held[name].items() if held != key}
        if offset is not None:
            offsets[key] = offset
        self.write_offsets(name, offsets)

    def mark_clean(self) -> None:
        """Write the marker of a clean stop. Raises OSError."""
        self._file_system.write_atomic(self.file(checkpoints.CLEAN_SHUTDOWN_FILE), _NO_BROKER_EPOCH)

    def release(self) -> None:
        """Unlock the directory. Idempotent."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def file(self, name: str) -> str:
        """The path of ``name`` in this directory."""
        return f"{self.path}/{name}"

    def log_path(self, key: Partition) -> str:
        """The path that a log has, or would have, in this directory."""
        return f"{self.path}/{key[0]}-{key[1]}"
