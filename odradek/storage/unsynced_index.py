"""The sync of an index, which may run in another thread while the event loop goes on writing to the index."""

from dataclasses import dataclass

from odradek.storage.filesystem import File
from odradek.storage.index import OffsetIndex, TimeIndex
from odradek.storage.transaction_index import TransactionIndex


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
