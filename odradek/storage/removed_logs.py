"""Directories of logs that were deleted, or have moved away: renamed at once, removed later.

A renamed directory ends with ``-delete``. Its removal takes long for a large log, and may run in a thread.
"""

from odradek.storage.data_directories import DataDirectories
from odradek.storage.data_directory import DataDirectory, Partition
from odradek.storage.filesystem import FileSystem


class RemovedLogs:
    """The renamed directories of one broker."""

    def __init__(self, file_system: FileSystem, directories: DataDirectories) -> None:
        self._file_system = file_system
        self._directories = directories
        self._removable: list[str] = []
        # Data directories with renames that are not synced.
        self._renamed_in: set[str] = set()

    def rename(self, home: DataDirectory, key: Partition, path: str) -> None:
        """Rename a log's directory in ``home`` to ``path``. Raises OSError."""
        self._file_system.rename(home.log_path(key), path)
        self._renamed_in.add(home.path)

    def sync(self) -> None:
        """Sync the renames, so that a power loss does not undo them. Raises OSError.

        To be called before a log may be created under a deleted log's name: after a power loss it would hold the old records.
        """
        while self._renamed_in:
            path = self._renamed_in.pop()
            if not self._directories.with_path(path).failure:
                self._file_system.sync_dir(path)

    def remove_later(self, path: str) -> None:
        """Let ``remove_all`` remove the directory at ``path``."""
        self._removable.append(path)

    def remove_all(self) -> None:
        """Remove the directories that wait for it. Any thread. Raises OSError."""
        while self._removable:
            path = self._removable.pop()
            if not self._directories.with_path(path.rpartition("/")[0]).failure:
                self._file_system.remove_tree(path)
