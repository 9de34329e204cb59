"""The sync of a log as a task, which another thread can run while the event loop goes on."""

from typing import NamedTuple

from odradek.storage.filesystem import File, FileSystem
from odradek.storage.unsynced_index import UnsyncedIndex


class FlushTask(NamedTuple):
    """Syncs a log up to ``offset``, and the names of its ``segments_begun`` segments.

    Unless ``is_whole``, it syncs records alone: recovery rebuilds indexes.

    ``run`` may be called in any thread, then ``FlushState.flushed`` or ``sync_failed`` on the loop's.
    """

    file_system: FileSystem
    directories: tuple[str, ...]
    files: tuple[File, ...]
    offset: int
    segments_begun: int
    indexes: tuple[UnsyncedIndex, ...] = ()
    is_whole: bool = True
    # What it has synced counts only while the log's end has not been cut off since.
    truncations: int = 0

    def run(self) -> None:
        """Sync files first, then the directories that name them. Raises OSError."""
        for file in self.files:
            file.sync()
        for index in self.indexes:
            index.file.sync()
        for directory in self.directories:
            self.file_system.sync_dir(directory)
