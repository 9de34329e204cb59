"""Scans the data directories at a start: finds logs, directories to remove, and interrupted moves.

An interrupted move is finished or dropped here. odradek.storage.directories.log_manager explains how a log moves.

Directories of deleted or moved logs are renamed at once, to end with ``-delete``. Removing a large log takes long, and may run in
a thread.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from uuid import UUID

from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directories import DataDirectories
from odradek.storage.directories.data_directory import METADATA_TOPIC, DataDirectory, Partition
from odradek.storage.errors import InconsistentDataDirectory
from odradek.storage.filesystem import FileSystem


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
