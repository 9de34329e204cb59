"""Writes the segment of a clean, under names that end in ``.cleaned`` until it is swapped in.

<base offset>.log.cleaned, .index.cleaned, .timeindex.cleaned, .txnindex.cleaned (where aborted transactions are left)
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from odradek.protocol.record_batch import Buffer
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.index import OffsetIndex, TimeIndex
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment import SEGMENT_SUFFIXES, Segment, segment_path
from odradek.storage.log.segment_files import CLEANED_SUFFIX
from odradek.storage.log.transaction_index import AbortedTransaction, TransactionIndex


class CleanedSegment(NamedTuple):
    """A written segment. ``suffixes`` are those of its files, the .log first; ``sizes`` are their sizes in bytes."""

    directory: str
    base_offset: int
    suffixes: tuple[str, ...]
    sizes: tuple[int, ...]

    def rename(self, file_system: FileSystem, kind: str, old: str, new: str) -> None:
        """Rename the file with one of its ``suffixes``: replace the ending ``old`` by ``new``. Raises OSError."""
        path = segment_path(self.directory, self.base_offset, kind)
        file_system.rename(path + old, path + new)

    def open(self, file_system: FileSystem, config: LogConfig, created_ms: int, suffix: str) -> Segment:
        """Return the segment, while its files have ``suffix``. Raises OSError."""
        log, index, time_index = self.sizes[:3]
        segment = Segment(file_system, self.directory, self.base_offset, config, created_ms, (log, index, time_index))
        for kind in self.suffixes[:3]:
            segment.use_name(kind, suffix)
        if len(self.sizes) > 3:
            segment.open_transaction_index(self.sizes[3])
        return segment

    def remove(self, file_system: FileSystem, suffix: str) -> None:
        """Remove the existing files whose names end in ``suffix``."""
        for kind in self.suffixes:
            with suppress(OSError):
                file_system.remove(segment_path(self.directory, self.base_offset, kind) + suffix)


class SegmentWriter:
    """Writes one segment. ``size`` is the size of the .log in bytes. All errors are OSError."""

    __slots__ = (
        "_base_offset",
        "_bytes_since_index_entry",
        "_directory",
        "_file",
        "_file_system",
        "_index_interval_bytes",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_time_index",
        "size",
    )

    def __init__(self, file_system: FileSystem, directory: str, base_offset: int, config: LogConfig) -> None:
        """Create the files, or empty those that another clean left under these names."""
        self._file_system = file_system
        self._directory = directory
        self._base_offset = base_offset
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        self._max_timestamp = -1
        self._offset_of_max_timestamp = base_offset
        self.size = 0
        self._file = file_system.open(self._path(".log"), create=True)
        self._file.truncate(0)
        for suffix in (".index", ".timeindex"):
            file = file_system.open(self._path(suffix), create=True)
            file.truncate(0)
            file.close()
        if file_system.exists(self._path(".txnindex")):
            file_system.remove(self._path(".txnindex"))
        index_bytes = config.segment_index_bytes
        self._offset_index = OffsetIndex(file_system, self._path(".index"), base_offset, index_bytes, 0)
        self._time_index = TimeIndex(file_system, self._path(".timeindex"), base_offset, index_bytes, 0)

    def _path(self, suffix: str) -> str:
        return segment_path(self._directory, self._base_offset, suffix) + CLEANED_SUFFIX

    def append(self, buffers: Sequence[Buffer], batches: Iterable[tuple[int, int, int]]) -> None:
        """Write ``buffers``, which hold ``batches``: (size in bytes, last offset, max timestamp in ms) each."""
        self._file.append(buffers)
        position = self.size
        for size, last_offset, max_timestamp in batches:
            if max_timestamp > self._max_timestamp:
                self._max_timestamp = max_timestamp
                self._offset_of_max_timestamp = last_offset
            if self._bytes_since_index_entry > self._index_interval_bytes:
                if not self._offset_index.is_full:
                    self._offset_index.append(last_offset, position)
                if not self._time_index.is_full:
                    self._time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
                self._bytes_since_index_entry = 0
            self._bytes_since_index_entry += size
            position += size
        self.size = position

    def finish(self, aborted: Sequence[AbortedTransaction], modified_ms: int) -> CleanedSegment:
        """Complete the indexes, and sync all files and their names. ``aborted``: transactions with markers in the segment.

        ``modified_ms`` is when the last of the replaced segments was written: no record is newer.
        """
        self._time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
        self._offset_index.write_out()
        self._time_index.write_out()
        suffixes: tuple[str, ...] = SEGMENT_SUFFIXES[:3]
        if aborted:
            index = TransactionIndex(self._file_system, self._path(".txnindex"), 0)
            for transaction in aborted:
                index.append(transaction)
            index.write_out()
            suffixes = SEGMENT_SUFFIXES
        self._file.sync()
        self._file.close()
        self._file_system.set_modified_ms(self._path(".log"), modified_ms)
        sizes = [self.size]
        for suffix in suffixes[1:]:
            file = self._file_system.open(self._path(suffix))
            file.sync()
            sizes.append(file.size())
            file.close()
        self._file_system.sync_dir(self._directory)
        return CleanedSegment(self._directory, self._base_offset, suffixes, tuple(sizes))

    def discard(self) -> None:
        """Remove all files of the segment."""
        self._file.close()
        everything = CleanedSegment(self._directory, self._base_offset, SEGMENT_SUFFIXES, ())
        everything.remove(self._file_system, CLEANED_SUFFIX)
