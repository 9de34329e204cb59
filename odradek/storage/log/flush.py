"""The sync of a log or an index as a task, which another thread can run while the event loop goes on writing."""

from dataclasses import dataclass
from typing import NamedTuple

from odradek.storage.filesystem import File, FileSystem
from odradek.storage.log.index import OffsetIndex, TimeIndex
from odradek.storage.log.transaction_index import TransactionIndex


@dataclass(frozen=True, slots=True)
class UnsyncedIndex:
    """An index with unsynced changes, and its open ``file``. A sync of the file that begins now syncs its first ``changes``.

    They count as synced when the sync has ended, not before: until then every other flush syncs them, too.
    """

    index: OffsetIndex | TimeIndex | TransactionIndex
    file: File
    changes: int

    def synced(self) -> None:
        """Note that the sync has ended. Loop thread only."""
        self.index.synced_changes = max(self.index.synced_changes, self.changes)


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
