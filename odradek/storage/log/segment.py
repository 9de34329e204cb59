"""One segment of a log: a file of consecutive record batches, and its two sparse indexes.

    <base offset, 20 digits>.log         record batches (odradek.protocol.record_batch has their layout)
    <base offset, 20 digits>.index       positions of offsets (odradek.storage.log.index)
    <base offset, 20 digits>.timeindex   offsets of timestamps
    <base offset, 20 digits>.txnindex    aborted transactions, if there are any (odradek.storage.log.transaction_index)

Only the last segment of a log, the active one, is written to. A segment opens its file on first use, so that unused partitions
take no descriptor.

Batches are scanned by their headers (``iter_headers``). A message of format v0 or v1 counts as a batch. Reads are in chunks: a
chunk has many headers if batches are small; large batches are skipped between their headers. Bytes that are not a batch raise
LogCorrupt, and so does an end within a batch: callers pass the end of the last complete write.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final
from zlib import crc32

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, MAGIC, BatchHeader, Buffer, read_header
from odradek.storage.errors import LogCorrupt, unknown_format
from odradek.storage.filesystem import File, FileSystem
from odradek.storage.log.flush import UnsyncedIndex
from odradek.storage.log.index import OffsetIndex, TimeIndex
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.open_segments import OPEN_SEGMENTS
from odradek.storage.log.transaction_index import AbortedTransaction, TransactionIndex

_CHUNK_BYTES: Final = 64 * 1024


def iter_headers(file: File, position: int, end: int, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch between ``position`` and ``end``, both batch boundaries."""
    chunk = b""
    chunk_start = position
    while position < end:
        if position + HEADER_SIZE > chunk_start + len(chunk):
            chunk = file.pread(min(chunk_bytes, end - position), position)
            chunk_start = position
        try:
            header = read_header(chunk, position - chunk_start)
        except MalformedMessage as error:
            raise LogCorrupt(f"at position {position}: {error.reason}") from error
        size = header.size_bytes
        if not 0 <= header.magic <= MAGIC:
            raise unknown_format(f"at position {position}", header.magic)
        if position + size > end:
            raise LogCorrupt(f"at position {position}: a batch has {size} bytes, but the log ends at {end}")
        yield position, header
        position += size


MAX_RELATIVE_OFFSET: Final = 2**31 - 1
_NOT_READ: Final = -2
_SMALL_CHUNK_BYTES: Final = 4096 + HEADER_SIZE
# Base offset, batch length, magic, last offset delta: the fields needed to find an offset.
_PLACE: Final = Struct(">qi4xb6xi")


SEGMENT_SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
INDEX_SUFFIXES: Final = SEGMENT_SUFFIXES[1:]
_OFFSET_DIGITS: Final = 20


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """Return the path of one of a segment's files; ``suffix`` is one of SEGMENT_SUFFIXES."""
    return f"{directory}/{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """Return the offset that a file's name begins with, up to the first dot; None for other names."""
    stem = name.partition(".")[0]
    return int(stem) if len(stem) == _OFFSET_DIGITS and stem.isdecimal() else None


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """Return the offsets, ascending, of those ``names`` that are an offset and ``suffix``."""
    stems = [name.removesuffix(suffix) for name in names if name.endswith(suffix)]
    return sorted(int(stem) for stem in stems if len(stem) == _OFFSET_DIGITS and stem.isdecimal())


class Segment:
    """One segment. ``size`` is the number of completely written bytes. Positions are byte positions in the .log file."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_file",
        "_file_system",
        "_first_timestamp",
        "_knows_timestamps",
        "base_offset",
        "created_ms",
        "max_timestamp",
        "offset_index",
        "offset_of_max_timestamp",
        "path",
        "roll_jitter_ms",
        "size",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        file_system: FileSystem,
        directory: str,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        sizes: tuple[int, int, int],
    ) -> None:
        """Take the ``sizes`` of the .log, .index and .timeindex in ``directory``, 0 for a new segment."""
        self._file_system = file_system
        self.path = segment_path(directory, base_offset, ".log")
        self._file: File | None = None
        self._bytes_since_index_entry = 0
        self._first_timestamp = _NOT_READ
        self._knows_timestamps = sizes[0] == 0
        self.base_offset = base_offset
        self.size = sizes[0]
        self.created_ms = now_ms
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        index_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(
            file_system, segment_path(directory, base_offset, ".index"), base_offset, index_bytes, sizes[1]
        )
        self.time_index = TimeIndex(
            file_system, segment_path(directory, base_offset, ".timeindex"), base_offset, index_bytes, sizes[2]
        )
        # None while no transaction is aborted in this segment.
        self.transaction_index: TransactionIndex | None = None
        # Kafka draws the jitter at random. Deriving it from the path spreads segments too, and survives a restart.
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        self.roll_jitter_ms = crc32(self.path.encode()) % jitter_ms if jitter_ms else 0

    @classmethod
    def create(cls, file_system: FileSystem, directory: str, base_offset: int, config: LogConfig, now_ms: int) -> "Segment":
        """Create a segment with an empty .log. The first append creates the index files, which many partitions never need.

        Removes files that a crash left under these names. Raises OSError.
        """
        for suffix in INDEX_SUFFIXES:
            path = segment_path(directory, base_offset, suffix)
            if file_system.exists(path):
                file_system.remove(path)
        file = file_system.open(segment_path(directory, base_offset, ".log"), create=True)
        if file.size():
            file.truncate(0)
        file.close()
        return cls(file_system, directory, base_offset, config, now_ms, (0, 0, 0))

    @property
    def file(self) -> File:
        """Return the .log file, opened if needed."""
        file = self._file
        if file is None:
            file = self._file = self._file_system.open(self.path)
            OPEN_SEGMENTS.opened(self)
        return file

    def append(
        self, buffers: Sequence[Buffer], size: int, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Write ``size`` bytes of batches that end with ``last_offset``. After an OSError, none of them is in the segment."""
        position = self.size
        if position == 0:
            for index in (self.offset_index, self.time_index):
                self._file_system.open(index.path, create=True).close()
            self._first_timestamp = max_timestamp
        try:
            (self._file or self.file).append(buffers)
        except OSError:
            # Keep this file open: only it knows where to cut off a partial write.
            OPEN_SEGMENTS.forget(self)
            raise
        self.size = position + size
        self.note_batch(position, size, last_offset, max_timestamp, index_interval_bytes)
        if position == 0:
            self.note_first(max_timestamp, last_offset)
            with suppress(OSError):
                self.time_index.write_out()

    def note_first(self, max_timestamp: int, last_offset: int) -> None:
        """Add the first batch to the time index. A start uses this entry to check that the indexes belong to this .log."""
        self.time_index.maybe_append(max_timestamp, last_offset)

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Update indexes and largest timestamp for the batches at ``position``."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self._bytes_since_index_entry > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Add a transaction whose abort marker lies in this segment to its index."""
        index = self.transaction_index or self.open_transaction_index(0)
        index.append(aborted)

    def forget_aborted_from(self, offset: int, *, is_sound: bool) -> None:
        """Remove aborted transactions with markers at or after ``offset`` from the index.

        Unless ``is_sound`` (after a power loss), invalid entries are also removed. Raises OSError.
        """
        if self.transaction_index is None:
            return
        if not is_sound:
            self.transaction_index.keep_sound_below(self.base_offset, offset)
        elif self.transaction_index.last_offset >= offset:
            self.transaction_index.keep_below(offset)

    def open_transaction_index(self, size: int) -> TransactionIndex:
        """Open the index of aborted transactions, which has ``size`` bytes on disk. Raises OSError."""
        stem, _, suffix = self.path.rpartition(".log")
        index = TransactionIndex(self._file_system, f"{stem}.txnindex{suffix}", size)
        self.transaction_index = index
        return index

    def should_roll(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, segment_bytes: int, max_segment_ms: int
    ) -> bool:
        """Return whether a batch of ``size`` bytes, with this offset and timestamp, begins a new segment."""
        if not self.size:
            return False
        if self.size + size > segment_bytes:
            return True
        first_timestamp = self._first_timestamp
        waited_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else self._waited_ms(max_timestamp, now_ms)
        if waited_ms > max_segment_ms - self.roll_jitter_ms:
            return True
        return self.offset_index.is_full or self.time_index.is_full or last_offset - self.base_offset > MAX_RELATIVE_OFFSET

    def _waited_ms(self, max_timestamp: int, now_ms: int) -> int:
        """Return the segment's age: by its records' timestamps if they have any, else by the clock."""
        first_timestamp = self.learn_first_timestamp()
        return max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - self.created_ms

    def find(self, offset: int) -> tuple[int, int] | None:
        """Return (position, size) of the batch with ``offset`` or, in a gap, of the next one; None after the last batch."""
        return self.find_from(self.offset_index.position_before(offset), offset)

    def find_from(self, position: int, offset: int) -> tuple[int, int] | None:
        """Do ``find``, beginning with the batch at ``position``."""
        file = self.file
        end = self.size
        chunk_start = position
        chunk = file.pread(min(_SMALL_CHUNK_BYTES, end - position), position)
        limit = chunk_start + len(chunk) - HEADER_SIZE
        while position < end:
            if position > limit:
                chunk_start = position
                chunk = file.pread(min(_SMALL_CHUNK_BYTES, end - position), position)
                limit = chunk_start + len(chunk) - HEADER_SIZE
                if position > limit:
                    return self._find_in_rest(position, offset)
            base_offset, batch_length, magic, last_offset_delta = _PLACE.unpack_from(chunk, position - chunk_start)
            size = batch_length + 12
            if magic != MAGIC and magic in (0, 1):
                return self._find_in_rest(position, offset)
            if size < HEADER_SIZE or position + size > end:
                break
            if base_offset + last_offset_delta >= offset:
                return position, size
            position += size
        if position != end:
            raise LogCorrupt(f"{self.path}: no record batch at position {position}")
        return None

    def _find_in_rest(self, position: int, offset: int) -> tuple[int, int] | None:
        """Do ``find_from`` for all formats, from a message of format v0 or v1 on."""
        try:
            for place, header in iter_headers(self.file, position, self.size, _SMALL_CHUNK_BYTES):
                if header.last_offset >= offset:
                    return place, header.size_bytes
        except LogCorrupt as error:
            raise LogCorrupt(f"{self.path}, {error.reason}") from error
        return None

    def learn_max_timestamp(self) -> int:
        """Return the largest timestamp, read from the time index if needed; -1 if no record has one."""
        if not self._knows_timestamps:
            self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last()
            self._knows_timestamps = True
        return self.max_timestamp

    def largest_timestamp(self) -> int:
        """Return the largest timestamp or, if no record has one, the time of the last write; -1 if unknown. Raises OSError."""
        timestamp = self.learn_max_timestamp()
        return timestamp if timestamp >= 0 else self._file_system.modified_ms(self.path)

    def learn_first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, read if needed; -1 if there is none."""
        if self._first_timestamp == _NOT_READ:
            if not self.size:
                return -1
            _, header = next(iter_headers(self.file, 0, self.size, HEADER_SIZE))
            self._first_timestamp = header.max_timestamp
        return self._first_timestamp

    def next_offset(self) -> int:
        """Return the offset after the last batch, by scanning from the last index entry."""
        next_offset = self.base_offset
        for _, header in iter_headers(self.file, self.offset_index.last()[1], self.size):
            next_offset = header.next_offset
        return next_offset

    def resume(self) -> None:
        """Prepare ``note_batch`` to begin with the batch of the last index entry, after the indexes were cut."""
        self._bytes_since_index_entry = 0
        self._knows_timestamps = False
        self.learn_max_timestamp()

    def learn_timestamps_up_to(self, position: int) -> None:
        """Find the largest timestamp before ``position``, which the time index may lack. Raises OSError, LogCorrupt."""
        _, known_up_to = self.time_index.last()
        for _, header in iter_headers(self.file, self.offset_index.position_before(known_up_to), position):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.offset_of_max_timestamp = header.last_offset

    def truncate(self, size: int) -> None:
        """Cut the .log at ``size`` bytes. Raises OSError."""
        self.file.truncate(size)
        self.size = size

    def cut(self, end_offset: int, position: int, index_interval_bytes: int) -> None:
        """Truncate the segment at ``position``, after the batch that ends with ``end_offset - 1``. Raises OSError.

        The .log and the index of aborted transactions are cut on disk, the other indexes in memory.
        """
        if self.transaction_index is not None and self.transaction_index.last_offset >= end_offset:
            self.transaction_index.keep_below(end_offset)
        for index in (self.offset_index, self.time_index):
            index.keep_entries(index.entries_below(end_offset))
        self.truncate(position)
        self.resume()
        _, start = self.offset_index.last()
        self.learn_timestamps_up_to(start)
        for place, header in iter_headers(self.file, start, position):
            self.note_batch(place, header.size_bytes, header.last_offset, header.max_timestamp, index_interval_bytes)

    def close_indexes(self) -> None:
        """Write both indexes, with a last time entry that tells a clean start the largest timestamp."""
        if self._knows_timestamps:
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.write_out()
        self.time_index.write_out()

    @property
    def has_unsynced_index(self) -> bool:
        """Return whether an index was written since its last sync, as happens when the segment is closed."""
        return any(index.changes != index.synced_changes for index in self._indexes())

    def _indexes(self) -> list[OffsetIndex | TimeIndex | TransactionIndex]:
        indexes: list[OffsetIndex | TimeIndex | TransactionIndex] = [self.offset_index, self.time_index]
        if self.transaction_index is not None:
            indexes.append(self.transaction_index)
        return indexes

    def unsynced_indexes(self) -> list[UnsyncedIndex]:
        """Return the indexes with unsynced changes, after writing their entries in memory. Raises OSError."""
        found = []
        for index in self._indexes():
            index.write_out()
            if index.changes != index.synced_changes:
                found.append(UnsyncedIndex(index, self._file_system.open(index.path), index.changes))
        return found

    def sync(self) -> None:
        """Sync the .log and the indexes with unsynced changes. Raises OSError."""
        self.file.sync()
        for unsynced in self.unsynced_indexes():
            unsynced.file.sync()
            unsynced.synced()

    def use_name(self, kind: str, suffix: str) -> None:
        """Set the name of one file to its usual name and ``suffix``. ``kind`` is one of SEGMENT_SUFFIXES."""
        path = f"{self.path.rpartition('.log')[0]}{kind}{suffix}"
        if kind == ".log":
            self.path = path
        elif kind == ".index":
            self.offset_index.path = path
        elif kind == ".timeindex":
            self.time_index.path = path
        elif self.transaction_index is not None:
            self.transaction_index.path = path

    def release_file(self) -> None:
        """Close the .log file once no slice of it is in use. The next use opens it again."""
        OPEN_SEGMENTS.forget(self)
        self._file = None

    def let_go(self) -> None:
        """Close the file on behalf of OPEN_SEGMENTS."""
        self._file = None
