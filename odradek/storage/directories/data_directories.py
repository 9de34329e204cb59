"""The data directories of one broker: ``log.dirs`` and the metadata log's directory, which may not be one of them.

They belong to one cluster and one node, and each has an id. Any may be offline, except the metadata log's.

Scans the data directories at a start: finds logs, directories to remove, and interrupted moves.

An interrupted move is finished or dropped here. odradek.storage.directories.log_manager explains how a log moves.

Directories of deleted or moved logs are renamed at once, to end with ``-delete``. Removing a large log takes long, and may run
in a thread.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from uuid import UUID

from odradek.protocol.texts import new_uuid_text
from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directory import METADATA_TOPIC, DataDirectory, DirectoryIdentity, Partition
from odradek.storage.errors import InconsistentDataDirectory
from odradek.storage.filesystem import FileSystem
from odradek.storage.recovery.recovery import Warn


class DataDirectories:
    """Iterates over ``log.dirs``, at least one. ``metadata`` is the first of them, unless another is configured."""

    def __init__(
        self, file_system: FileSystem, log_dirs: Sequence[str], metadata_dir: str | None, warn: Warn, *, reserve_bytes: int = 0
    ) -> None:
        self._log_dirs = [DataDirectory(file_system, path, warn, reserve_bytes) for path in log_dirs]
        self.metadata = self._log_dirs[0]
        self.all = list(self._log_dirs)
        if metadata_dir is not None:
            named = next((directory for directory in self._log_dirs if directory.path == metadata_dir), None)
            self.metadata = named or DataDirectory(file_system, metadata_dir, warn, reserve_bytes)
            if named is None:
                self.all.append(self.metadata)
        # True if Apache Kafka has run on these directories: odradek does not write this file.
        self.have_been_kafkas = file_system.exists(self.metadata.file(f"{METADATA_TOPIC}-0/quorum-state"))
        self._by_path = {directory.path: directory for directory in self.all}
        self._file_system = file_system

    def __iter__(self) -> Iterator[DataDirectory]:
        return iter(self._log_dirs)

    @property
    def lack_room(self) -> bool:
        """Return whether the disk of any directory is full."""
        return any(directory.reserve.is_wanted for directory in self.all)

    def fill_reserves(self) -> None:
        """Refill spent reserves, as far as there is room."""
        for directory in self.all:
            if directory.reserve.is_wanted and not directory.failure:
                directory.reserve.fill()

    @property
    def online(self) -> list[DataDirectory]:
        """Return the online directories of ``log.dirs``."""
        return [directory for directory in self._log_dirs if not directory.failure]

    @property
    def online_ids(self) -> list[UUID]:
        """Return the ids of the online directories."""
        return [directory.identity.directory_id for directory in self.online if directory.identity is not None]

    @property
    def are_online(self) -> bool:
        """Return whether all of ``log.dirs`` are online."""
        return not any(directory.failure for directory in self._log_dirs)

    def with_path(self, path: str) -> DataDirectory:
        """Return the directory at ``path``. Raises KeyError."""
        return self._by_path[path]

    def with_id(self, directory_id: UUID) -> DataDirectory | None:
        """Return the directory of ``log.dirs`` with this id; None if unknown, or offline since the start."""
        for directory in self._log_dirs:
            if directory.identity is not None and directory.identity.directory_id == directory_id:
                return directory
        return None

    def start(self, node_id: int, cluster_id: str | None, new_uuid: Callable[[], UUID]) -> DirectoryIdentity:
        """Lock the directories, creating missing ones, and read their top files. A failing directory goes offline.

        Returns the identity of the metadata log's directory. Raises DataDirectoryLocked, InconsistentDataDirectory, or OSError if
        the metadata log's directory or all of ``log.dirs`` fail. Then nothing was changed.
        """
        try:
            self._attempt_each(lambda directory: directory.take(node_id))
            agreed = self._agreed_cluster_id(cluster_id) or new_uuid_text(new_uuid)
            self._ensure_metadata_in_place()
            self._attempt_each(
                lambda directory: directory.begin(
                    lambda: DirectoryIdentity(cluster_id=agreed, node_id=node_id, directory_id=new_uuid())
                )
            )
        except BaseException:
            self.release()
            raise
        identity = self.metadata.identity
        assert identity is not None  # noqa: S101  a failing directory has raised
        return identity

    def release(self) -> None:
        """Unlock all directories. Idempotent."""
        for directory in self.all:
            directory.release()

    def _attempt_each(self, action: Callable[[DataDirectory], None]) -> None:
        for directory in self.all:
            if directory.failure:
                continue
            try:
                action(directory)
            except OSError as error:
                is_last = not any(other is not directory for other in self.online)
                if directory is self.metadata or is_last:
                    raise
                directory.fail(str(error))

    def _agreed_cluster_id(self, wanted: str | None) -> str | None:
        """Return the common cluster id of all directories, None if they have none. Raises InconsistentDataDirectory."""
        agreed = wanted
        ids: dict[UUID, str] = {}
        for directory in self.all:
            identity = directory.identity
            if identity is None:
                continue
            path = directory.file(checkpoints.META_PROPERTIES_FILE)
            if agreed not in (None, identity.cluster_id):
                raise InconsistentDataDirectory(f"{path} has the data of cluster {identity.cluster_id}, not {agreed}")
            agreed = identity.cluster_id
            if identity.directory_id in ids:
                raise InconsistentDataDirectory(f"{path} and {ids[identity.directory_id]} have the same directory.id")
            ids[identity.directory_id] = path
        return agreed

    def _ensure_metadata_in_place(self) -> None:
        """Raise InconsistentDataDirectory if the metadata log is in another directory than configured."""
        name = f"{METADATA_TOPIC}-0"
        if self._file_system.exists(self.metadata.file(name)):
            return
        for directory in self.online:
            if self._file_system.exists(directory.file(name)):
                raise InconsistentDataDirectory(
                    f"the metadata log is in {directory.path}, not in {self.metadata.path}: correct metadata.log.dir"
                )


@dataclass(slots=True)
class Scan:
    """The result of a scan: ``logs`` and their directories, ``removable`` paths, and ``unfinished`` moves (log, target)."""

    logs: dict[Partition, DataDirectory] = field(default_factory=dict)
    removable: list[str] = field(default_factory=list)
    unfinished: list[tuple[Partition, DataDirectory]] = field(default_factory=list)


def scan(
    file_system: FileSystem, directories: Iterable[DataDirectory], topic_ids: Mapping[Partition, UUID], *, are_all: bool
) -> Scan:
    """Scan ``directories``. A failing directory goes offline. ``are_all``: none was offline before.

    Raises InconsistentDataDirectory if a log is in two directories.
    """
    found = Scan()
    futures: list[tuple[DataDirectory, str]] = []
    for directory in directories:
        try:
            names = file_system.list_dir(directory.path)
        except OSError as error:
            directory.fail(str(error))
            are_all = False
            continue
        for name in sorted(names):
            key = parse_log_name(name)
            if key is not None:
                other = found.logs.setdefault(key, directory)
                if other is not directory:
                    raise InconsistentDataDirectory(f"{name} is in {other.path} and in {directory.path}: move one of them away")
            elif name.endswith(checkpoints.DELETED_SUFFIX):
                found.removable.append(directory.file(name))
            elif name.endswith(checkpoints.FUTURE_SUFFIX):
                futures.append((directory, name))
    for directory, name in futures:
        _settle(file_system, found, directory, name, topic_ids, are_all=are_all)
    return found


def _settle(
    file_system: FileSystem,
    found: Scan,
    directory: DataDirectory,
    name: str,
    topic_ids: Mapping[Partition, UUID],
    *,
    are_all: bool,
) -> None:
    """Rename a complete copy to be the log. If the log still exists, drop the copy; the move begins again."""
    path = directory.file(name)
    unique = name.removesuffix(checkpoints.FUTURE_SUFFIX).rpartition(".")[2]
    try:
        key = _key_of(file_system, path, name, topic_ids)
        if key is not None and key not in found.logs and any(_is_removed(other, unique) for other in found.removable):
            file_system.rename(path, directory.log_path(key))
            file_system.sync_dir(directory.path)
            found.logs[key] = directory
            return
    except OSError as error:
        directory.fail(str(error))
        return
    if key in found.logs:
        found.unfinished.append((key, directory))
        found.removable.append(path)
    elif are_all:
        # The copy of a log that was deleted while it moved.
        found.removable.append(path)


def _is_removed(path: str, unique: str) -> bool:
    return path.endswith(f".{unique}{checkpoints.DELETED_SUFFIX}")


def _key_of(file_system: FileSystem, path: str, name: str, topic_ids: Mapping[Partition, UUID]) -> Partition | None:
    """Return the log copied to ``path``. A directory's name cuts long topic names, so a known topic id decides."""
    key = parse_log_name(name.removesuffix(checkpoints.FUTURE_SUFFIX).rpartition(".")[0])
    if key is None or key in topic_ids:
        return key
    try:
        topic_id = checkpoints.read_topic_id(file_system, path)
    except ValueError:
        return key
    return next((known for known, known_id in topic_ids.items() if known_id == topic_id and known[1] == key[1]), key)


def parse_log_name(name: str) -> Partition | None:
    """Return topic and partition from a log directory's name; None for other names and the metadata log."""
    topic, _, number = name.rpartition("-")
    return (intern(topic), int(number)) if topic and topic != METADATA_TOPIC and number.isdecimal() else None


class RemovedLogs:
    """The renamed directories of one broker's removed logs."""

    def __init__(self, file_system: FileSystem, directories: DataDirectories) -> None:
        self._file_system = file_system
        self._directories = directories
        self._removable: list[str] = []
        # Data directories with unsynced renames.
        self._renamed_in: set[str] = set()

    def rename(self, home: DataDirectory, key: Partition, path: str) -> None:
        """Rename a log's directory in ``home`` to ``path``. Raises OSError."""
        self._file_system.rename(home.log_path(key), path)
        self._renamed_in.add(home.path)

    def sync(self) -> None:
        """Sync the renames, so that a power loss does not undo them. Raises OSError.

        Call it before a log may be created under a deleted log's name. Otherwise, after a power loss, the new log would hold the
        old records.
        """
        while self._renamed_in:
            path = self._renamed_in.pop()
            if not self._directories.with_path(path).failure:
                self._file_system.sync_dir(path)

    def remove_later(self, path: str) -> None:
        """Schedule the directory at ``path`` for ``remove_all``."""
        self._removable.append(path)

    def remove_all(self) -> None:
        """Remove the scheduled directories. Any thread. Raises OSError."""
        while self._removable:
            path = self._removable.pop()
            if not self._directories.with_path(path.rpartition("/")[0]).failure:
                self._file_system.remove_tree(path)
