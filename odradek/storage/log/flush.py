"""The sync of a log or an index as a task. Another thread can run it while the event loop goes on writing."""

from dataclasses import dataclass
from typing import NamedTuple

from odradek.storage.filesystem import File, FileSystem
from odradek.storage.log.index import OffsetIndex, TimeIndex
from odradek.storage.log.transaction_index import TransactionIndex


@dataclass(frozen=True, slots=True)
class UnsyncedIndex:
    """An index with unsynced changes, and its open ``file``. A sync that begins now covers its first ``changes``.

    The changes count as synced only when the sync has ended. Until then, every other flush syncs them as well.
    """

    index: OffsetIndex | TimeIndex | TransactionIndex
    file: File
    changes: int

    def synced(self) -> None:
        """Note that the sync has ended. Loop thread only."""
        self.index.synced_changes = max(self.index.synced_changes, self.changes)


class FlushTask(NamedTuple):
    """Syncs a log up to ``offset``, and the names of its first ``segments_begun`` segments.

    Unless ``is_whole``, it syncs only records: recovery rebuilds indexes.

    Call ``run`` in any thread, then ``FlushState.flushed`` or ``sync_failed`` on the loop thread.
    """

    file_system: FileSystem
    directories: tuple[str, ...]
    files: tuple[File, ...]
    offset: int
    segments_begun: int
    indexes: tuple[UnsyncedIndex, ...] = ()
    is_whole: bool = True
    # The sync counts only if the log has not been truncated since.
    truncations: int = 0

    def run(self) -> None:
        """Sync files first, then the directories that name them. Raises OSError."""
        for file in self.files:
            file.sync()
        for index in self.indexes:
            index.file.sync()
        for directory in self.directories:
            self.file_system.sync_dir(directory)
