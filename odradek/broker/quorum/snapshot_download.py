"""A snapshot on its way from the leader (KIP-630): chunks are appended to ``<name>.checkpoint.part``.

A part that a stop has left is removed by the next start, and fetched from its beginning. Before a part gets its name it is read
once, which checks every batch, and that the last one is the footer.
"""

from contextlib import suppress

from odradek.broker.metadata.snapshot_files import PART_SUFFIX, SnapshotFiles, SnapshotId
from odradek.protocol.record_batch import Buffer
from odradek.storage.filesystem import FileSystem


class SnapshotDownload:
    """One snapshot that is being fetched into ``files``. Raises OSError."""

    def __init__(self, file_system: FileSystem, files: SnapshotFiles, snapshot: SnapshotId) -> None:
        self.snapshot = snapshot
        self._file_system = file_system
        self._part = files.path(snapshot) + PART_SUFFIX
        self._remove()
        self._file = file_system.open(self._part, create=True)

    @property
    def position(self) -> int:
        """How many bytes there are."""
        return self._file.size()

    def append(self, chunk: Buffer) -> None:
        """The bytes from ``position`` on."""
        self._file.append([chunk])

    def sync(self) -> None:
        """Sync the part, which is whole."""
        self._file.sync()
        self._file.close()

    def discard(self) -> None:
        """Give it up, and remove the part."""
        self._file.close()
        self._remove()

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            self._file_system.remove(self._part)
