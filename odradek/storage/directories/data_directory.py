"""One of ``log.dirs``: its identity, whether it is online, and the files at its top.

    .lock                              held while a broker runs
    meta.properties                    cluster id, node id, directory id
    .kafka_cleanshutdown               exists if the last stop was clean, but not while a broker runs
    recovery-point-offset-checkpoint   the synced offset of each log
    log-start-offset-checkpoint        the start offsets of logs, if not 0
    cleaner-offset-checkpoint          the compacted offsets of logs
    .odradek-reserve                   space for the writes that free space (``Reserve``)
    aborted-transactions-checkpoint    entries and CRCs of the indexes of aborted transactions
    <topic>-<partition>/               a log
    <topic>-<partition>.<uuid>-future/ the unfinished copy of a log that moves here from another directory
    <topic>-<partition>.<uuid>-delete/ a deleted or moved log that awaits its removal

A directory that cannot be read or written goes offline with all its logs, until the next start (KIP-112).

The reserve has bytes without a meaning. On a full disk, DeleteTopics and DeleteRecords must write a record or a checkpoint
before anything is removed. So must a stop and a start. They spend the reserve: its file is removed, the write is repeated
before any other write, and the file is made again, as large as possible. Producers' records never use it.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from odradek.protocol.texts import parse_uuid, uuid_text
from odradek.storage.directories import checkpoints
from odradek.storage.errors import DataDirectoryLocked, DiskErrors, InconsistentDataDirectory
from odradek.storage.filesystem import File, FileSystem, Lock
from odradek.storage.recovery.recovery import Warn

T = TypeVar("T")
RESERVE_FILE: Final = ".odradek-reserve"
RESERVE_BYTES: Final = 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_LEAST_BYTES: Final = 1024
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException | None) -> bool:
    """Return whether ``error``, or an error that it was raised from, is that of a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        # Compiled code sets no cause, and the interpreter sets the context everywhere.
        error = error.__cause__ or error.__context__
    return False


def reserve_bytes_of(file_system: FileSystem) -> int:
    """Return the bytes that a file system reserves on each data directory's disk; 0 for one in memory."""
    found: int = getattr(file_system, "reserve_bytes", 0)
    return found


class Reserve:
    """The reserve of one data directory; there is none if ``size_bytes`` is 0. Loop thread only."""

    def __init__(self, file_system: FileSystem, directory: str, size_bytes: int) -> None:
        self._file_system = file_system
        self._path = f"{directory}/{RESERVE_FILE}"
        self._size_bytes = size_bytes
        # True if the disk was full at the last write, or the reserve is incomplete.
        self.is_wanted = False

    def fill(self) -> None:
        """Make the file as large as configured, or as large as possible."""
        if not self._size_bytes:
            return
        self.is_wanted = True
        with suppress(OSError):
            file = self._open()
            try:
                # Zeros would take no room on a compressing disk.
                chunk_bytes = _CHUNK_BYTES
                while (left := self._size_bytes - file.size()) > 0:
                    try:
                        file.append([os.urandom(min(left, chunk_bytes))])
                    except OSError:
                        if chunk_bytes == _LEAST_BYTES:
                            raise
                        chunk_bytes = _LEAST_BYTES
                self.is_wanted = False
            finally:
                file.close()

    def _open(self) -> File:
        try:
            return self._file_system.open(self._path, create=True)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL):
                raise
        # A link, or something that is not a file, is in its place.
        self._file_system.remove(self._path)
        return self._file_system.open(self._path, create=True)

    def release(self) -> bool:
        """Free the reserve for the next write. Return whether there was any. Raises OSError."""
        try:
            self._file_system.remove(self._path)
        except FileNotFoundError:
            return False
        return True

    def spend(self, write: Callable[[], T]) -> T:
        """Return the result of ``write``, repeated with the reserve if the disk is full.

        ``write`` must leave nothing when it fails.
        """
        try:
            return write()
        except Exception as error:
            if not is_full(error):
                raise
            self.is_wanted = True
            if not self.release():
                raise
        try:
            return write()
        finally:
            self.fill()


METADATA_TOPIC = "__cluster_metadata"
NO_BROKER_EPOCH = -1
OFFSET_FILES = (
    checkpoints.RECOVERY_POINT_FILE,
    checkpoints.LOG_START_FILE,
    checkpoints.CLEANER_OFFSET_FILE,
    checkpoints.HIGH_WATERMARK_FILE,
)
Partition = tuple[str, int]
METADATA_LOG: Partition = (METADATA_TOPIC, 0)
# The versions of meta.properties. A cluster that had ZooKeeper may still have 0.
_VERSIONS = "0", "1"
# The names of nodes' data directories in the directory of `odradek cluster`.
_NODE_NAME = re.compile(r"(broker|controller)-\d+")
_LOG_NAME = re.compile(r".+-\d+")
_BROKER_EPOCH = re.compile(rb'"brokerEpoch":(\d{1,18})\b')


def clean_marker(broker_epoch: int = NO_BROKER_EPOCH) -> bytes:
    """Return the marker of a clean stop, with the broker epoch of the stopped incarnation (KIP-966)."""
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def _epoch_of(marker: bytes) -> int:
    """Return the marker's epoch; NO_BROKER_EPOCH for a marker from before KIP-966."""
    found = _BROKER_EPOCH.search(marker)
    return NO_BROKER_EPOCH if found is None else int(found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIdentity:
    """The content of ``meta.properties``. A cluster id is usually a UUID in Kafka's base64, but may be any text."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def _identity(path: str, found: Mapping[str, str]) -> DirectoryIdentity:
    """Return the identity from ``meta.properties`` at ``path``. Raises InconsistentDataDirectory."""
    for name in ("cluster.id", "node.id", "directory.id", "version"):
        if not found.get(name):
            raise InconsistentDataDirectory(f"{path} cannot be used: it has no {name}")
    if found["version"].strip() not in _VERSIONS:
        raise InconsistentDataDirectory(
            f"{path} cannot be used: its version is {found['version']}, but only versions {' and '.join(_VERSIONS)} are supported"
        )
    try:
        return DirectoryIdentity(
            cluster_id=found["cluster.id"],
            node_id=int(found["node.id"]),
            directory_id=parse_uuid(found["directory.id"]),
        )
    except ValueError as error:
        raise InconsistentDataDirectory(f"{path} cannot be used: {error}") from error


class DataDirectory:
    """A data directory. ``failure`` is the reason why it is offline, empty while online. ``begin`` sets ``identity``."""

    def __init__(self, file_system: FileSystem, path: str, warn: Warn, reserve_bytes: int = 0) -> None:
        self.path = path
        self.reserve = Reserve(file_system, path, reserve_bytes)
        self.failure = ""
        self.was_clean = False
        # The epoch of the broker that stopped cleanly.
        self.previous_broker_epoch = NO_BROKER_EPOCH
        self.identity: DirectoryIdentity | None = None
        # Shared by the logs in this directory.
        self.disk_errors = DiskErrors()
        # The contents of the checkpoint files, by name: as read at the start, then as last written. Entries and CRC of the
        # indexes of aborted transactions, by log and base offset.
        self.aborted: checkpoints.Aborted = {}
        self._held: dict[str, dict[Partition, int]] = {name: {} for name in OFFSET_FILES}
        self._file_system = file_system
        self._warn = warn
        self._lock: Lock | None = None

    def take(self, node_id: int) -> None:
        """Create the directory if needed, lock it, and read its identity. Changes nothing else.

        Raises DataDirectoryLocked, InconsistentDataDirectory, OSError.
        """
        self._make()
        try:
            self._lock = self._file_system.lock(self.file(checkpoints.LOCK_FILE))
        except BlockingIOError as error:
            raise DataDirectoryLocked(self.path) from error
        self._ensure_no_cluster()
        self.identity = self._read_identity(node_id)

    def _make(self) -> None:
        """Create the directory if needed, and sync its name: syncs within it rely on that."""
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
        except ValueError as error:
            raise InconsistentDataDirectory(f"{path} cannot be used: {error}") from error
        if found is None:
            self._ensure_new()
            return None
        identity = _identity(path, found)
        if identity.node_id != node_id:
            raise InconsistentDataDirectory(f"{path} has the data of node {identity.node_id}, not {node_id}")
        return identity

    def _ensure_no_cluster(self) -> None:
        """Raise InconsistentDataDirectory if this directory contains data directories of a cluster's nodes."""
        names = [name for name in self._file_system.list_dir(self.path) if _NODE_NAME.fullmatch(name)]
        nodes = [name for name in names if self._file_system.exists(f"{self.file(name)}/{checkpoints.META_PROPERTIES_FILE}")]
        if nodes:
            raise InconsistentDataDirectory(
                f"{self.path} has the data of a cluster ({', '.join(sorted(nodes))}): "
                f"run odradek cluster --data-dir {self.path}, or choose another directory"
            )

    def _ensure_new(self) -> None:
        """Raise InconsistentDataDirectory if a directory without ``meta.properties`` has logs."""
        names = [name for name in self._file_system.list_dir(self.path) if _LOG_NAME.fullmatch(name)]
        logs = [name for name in names if self._file_system.list_dir(self.file(name))]
        if logs:
            raise InconsistentDataDirectory(
                f"{self.file(checkpoints.META_PROPERTIES_FILE)} is missing, but {self.path} has {min(logs)}: restore the file, "
                "or write a new one with the lines cluster.id=..., directory.id=..., node.id=... and version=1"
            )

    def begin(self, new_identity: Callable[[], DirectoryIdentity]) -> None:
        """Write ``meta.properties`` if there is none, remove the marker of a clean stop, read the checkpoints. Raises OSError."""
        if self.identity is None:
            identity = new_identity()
            properties = (
                ("cluster.id", identity.cluster_id),
                ("directory.id", uuid_text(identity.directory_id)),
                ("node.id", str(identity.node_id)),
                ("version", "1"),
            )
            checkpoints.write_meta_properties(self._file_system, self.path, properties)
            self.identity = identity
        marker = self.file(checkpoints.CLEAN_SHUTDOWN_FILE)
        self.was_clean = self._file_system.exists(marker)
        if self.was_clean:
            self.previous_broker_epoch = _epoch_of(self._file_system.read_bytes(marker))
            self._file_system.remove(marker)
            self._file_system.sync_dir(self.path)
        for name in OFFSET_FILES:
            self._held[name] = self._read_offsets(name)
        path = self.file(checkpoints.ABORTED_FILE)
        try:
            self.aborted = checkpoints.read_aborted(self._file_system, path)
        except ValueError as error:
            self._warn("checkpoint ignored", path=path, reason=str(error))

    def _read_offsets(self, name: str) -> dict[Partition, int]:
        """Return a checkpoint file's offsets. An unreadable file counts as empty, and recovery takes longer.

        Kafka creates an empty cleaner-offset-checkpoint, and writes it with the first clean.
        """
        path = self.file(name)
        try:
            return checkpoints.read_offsets(self._file_system, path)
        except ValueError as error:
            if name != checkpoints.CLEANER_OFFSET_FILE or self._file_system.size(path):
                self._warn("checkpoint ignored", path=path, reason=str(error))
            return {}

    @property
    def is_gone(self) -> bool:
        """Return whether the directory was removed or replaced."""
        return not any(
            self._file_system.exists(self.file(name)) for name in (checkpoints.LOCK_FILE, checkpoints.META_PROPERTIES_FILE)
        )

    def fail(self, reason: str) -> None:
        """Go offline: the directory is no longer read or written. The lock is kept."""
        self.failure = reason
        self._warn("data directory offline", path=self.path, reason=reason)

    def held_offset(self, name: str, key: Partition) -> int | None:
        """Return a log's offset in the checkpoint file ``name``."""
        return self._held[name].get(key)

    def held_of(self, name: str, keys: Mapping[Partition, object]) -> dict[Partition, int]:
        """Return the offsets of ``keys`` in the checkpoint file ``name``, as far as it has them."""
        held = self._held[name]
        return {key: held[key] for key in keys if key in held}

    def write_offsets(self, name: str, offsets: dict[Partition, int]) -> None:
        """Write the checkpoint file ``name`` if it would change. Raises OSError."""
        if offsets != self._held[name]:
            self.reserve.spend(lambda: checkpoints.write_offsets(self._file_system, self.file(name), offsets))
            self._held[name] = offsets

    def write_aborted(self, aborted: checkpoints.Aborted) -> None:
        """Write entries and CRCs of the indexes of aborted transactions, if changed. Raises OSError."""
        if aborted != self.aborted:
            self.reserve.spend(lambda: checkpoints.write_aborted(self._file_system, self.file(checkpoints.ABORTED_FILE), aborted))
            self.aborted = aborted

    def note_offset(self, name: str, key: Partition, offset: int | None) -> None:
        """Write one log's offset to the checkpoint file ``name``, or remove it. Raises OSError."""
        offsets = {held: value for held, value in self._held[name].items() if held != key}
        if offset is not None:
            offsets[key] = offset
        self.write_offsets(name, offsets)

    def forget_offsets(self, keys: Iterable[Partition]) -> None:
        """Remove deleted logs from the checkpoint files. Raises OSError."""
        gone = set(keys)
        for name in reversed(OFFSET_FILES):
            held = self._held[name]
            if not held.keys().isdisjoint(gone):
                self.write_offsets(name, {key: offset for key, offset in held.items() if key not in gone})

    def recorded(self) -> set[Partition]:
        """Return the logs with an offset in a checkpoint file."""
        return {key for held in self._held.values() for key in held}

    def records_of(self, key: Partition) -> int:
        """Return the offset below which a log has had records, by the checkpoint files; 0 if it has had none."""
        return max(held.get(key, 0) for held in self._held.values())

    def mark_clean(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Write the marker of a clean stop. Raises OSError."""
        path = self.file(checkpoints.CLEAN_SHUTDOWN_FILE)
        self.reserve.spend(lambda: self._file_system.write_atomic(path, clean_marker(broker_epoch)))

    def release(self) -> None:
        """Unlock the directory. Idempotent."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def file(self, name: str) -> str:
        """Return the path of ``name`` in this directory."""
        return f"{self.path}/{name}"

    def log_path(self, key: Partition) -> str:
        """Return the path that a log has, or would have, in this directory."""
        return f"{self.path}/{key[0]}-{key[1]}"
