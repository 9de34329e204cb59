"""The sparse offset and time indexes of one segment, in Kafka's format.

    <base offset>.index       entries of  int32 offset - base offset, int32 position in the segment          8 bytes
    <base offset>.timeindex   entries of  int64 timestamp in ms,      int32 offset - base offset            12 bytes

Both ascend. An offset entry has a batch's *last* offset and the position where that batch begins. A time entry says that no
record up to and including its offset is newer than its timestamp.

New entries are held in memory. They are written when there are many, and at roll, flush and close. Until then the index on disk
is shorter, and recovery rebuilds it. Entries on disk are not kept in memory: a look-up takes some twenty small reads, and an
unused index costs nothing. Look-ups never write, so a full disk does not stop readers.

Left out: Kafka's preallocation of an active index to ``segment.index.bytes``; its tools accept the short file.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import ClassVar, Final

from odradek.storage.filesystem import File, FileSystem

_OFFSET_ENTRY: Final = Struct(">II")
_TIME_ENTRY: Final = Struct(">qI")
_MAX_TAIL_ENTRIES: Final = 4096


class _SparseIndex:
    """Entries of a fixed size that ascend by their first field. The first are on disk, the rest in memory."""

    __slots__ = (
        "_base_offset",
        "_file_system",
        "_has_rest",
        "_on_disk",
        "_tail",
        "changes",
        "entry_count",
        "max_entries",
        "path",
        "synced_changes",
    )
    entry: ClassVar[Struct]

    def __init__(self, file_system: FileSystem, path: str, base_offset: int, max_bytes: int, size: int) -> None:
        self._file_system = file_system
        self._base_offset = base_offset
        self._on_disk = size // self.entry.size
        # True if the file may be longer than its valid entries.
        self._has_rest = False
        self._tail = bytearray()
        # The number of changes to the file, and the number of synced changes.
        self.changes = self.synced_changes = 0
        self.path = path
        self.entry_count = self._on_disk
        self.max_entries = max_bytes // self.entry.size

    def _append_entry(self, entry: bytes) -> None:
        tail = self._tail
        tail += entry
        self.entry_count += 1
        if len(tail) >= _MAX_TAIL_ENTRIES * self.entry.size:
            # The batch is in the log already. Entries that cannot be written now are written with the next one.
            with suppress(OSError):
                self.write_out()

    def _last_entry(self) -> tuple[int, int] | None:
        """Return the last entry's fields, from memory or disk."""
        if self._tail:
            return self.entry.unpack_from(self._tail, len(self._tail) - self.entry.size)
        if not self._on_disk:
            return None
        file = self._file_system.open(self.path)
        return self.entry.unpack(file.pread(self.entry.size, (self._on_disk - 1) * self.entry.size))

    def _entries(self) -> Callable[[int], tuple[int, int]]:
        """Return a function that reads the entry with a given number, from memory or disk."""
        size = self.entry.size
        unpack = self.entry.unpack_from
        tail = self._tail
        on_disk = self._on_disk
        file = self._file_system.open(self.path) if on_disk else None

        def read(number: int) -> tuple[int, int]:
            if number >= on_disk or file is None:
                return unpack(tail, (number - on_disk) * size)
            return unpack(file.pread(size, number * size))

        return read

    def _floor_entry(self, key: int) -> tuple[int, int] | None:
        """Return the fields of the last entry whose first field is at most ``key``."""
        size = self.entry.size
        unpack = self.entry.unpack_from
        tail = self._tail
        if tail and unpack(tail, 0)[0] <= key:
            slot = bisect_right(range(len(tail) // size), key, key=lambda number: unpack(tail, number * size)[0])
            return unpack(tail, (slot - 1) * size)
        if not self._on_disk:
            return None
        file = self._file_system.open(self.path)
        slot = bisect_right(range(self._on_disk), key, key=lambda number: unpack(file.pread(size, number * size))[0])
        return unpack(file.pread(size, (slot - 1) * size)) if slot else None

    def write_out(self) -> None:
        """Write the entries held in memory to the end of the file, creating it if needed. Raises OSError."""
        tail = self._tail
        if not tail and not self._has_rest:
            return
        file = self._file_system.open(self.path, create=True)
        if not (self._has_rest and self._is_rest(file, tail)):
            size = self._on_disk * self.entry.size
            if file.size() != size:
                file.truncate(size)
            if tail:
                file.append([tail])
        file.close()
        self.changes += 1
        self._on_disk = self.entry_count
        self._tail = bytearray()
        self._has_rest = False

    def _is_rest(self, file: File, tail: bytearray) -> bool:
        """Return whether the file already ends with ``tail``. Some file systems take milliseconds to shorten a file."""
        size = self._on_disk * self.entry.size
        return file.size() == size + len(tail) and file.pread(len(tail), size) == tail

    def keep_entries(self, count: int) -> None:
        """Drop all but the first ``count`` entries. The next ``write_out`` cuts the file."""
        del self._tail[max(count - self._on_disk, 0) * self.entry.size :]
        self.changes += 1
        self._on_disk = min(count, self._on_disk)
        self.entry_count = count
        self._has_rest = True

    def entries_below(self, offset: int) -> int:
        """Return the number of leading entries that ascend and have offsets below ``offset``."""
        data = self._file_system.read_bytes(self.path)[: self._on_disk * self.entry.size] if self._on_disk else b""
        which = 0 if self.entry is _OFFSET_ENTRY else 1
        count = 0
        previous = (-1, -1)
        for fields in self.entry.iter_unpack(data + self._tail):
            if fields[which] >= offset - self._base_offset or fields[0] <= previous[0] or fields[1] <= previous[1]:
                break
            previous = fields
            count += 1
        return count


class OffsetIndex(_SparseIndex):
    """An index of the positions of offsets."""

    __slots__ = ()
    entry = _OFFSET_ENTRY

    @property
    def is_full(self) -> bool:
        """Return whether ``segment.index.bytes`` leaves no room for another entry."""
        return self.entry_count >= self.max_entries

    def append(self, last_offset: int, position: int) -> None:
        """Add the batch that begins at ``position``; its offset must be above the last entry's."""
        self._append_entry(_OFFSET_ENTRY.pack(last_offset - self._base_offset, position))

    def entries(self, first: int, most: int) -> list[tuple[int, int]]:
        """Return (last offset, position) of at most so many entries, from number ``first`` on."""
        read = self._entries()
        found = map(read, range(first, min(first + most, self.entry_count)))
        return [(offset + self._base_offset, position) for offset, position in found]

    def position_before(self, offset: int) -> int:
        """Return the position of a batch at or before ``offset``: from the last entry not above it, else 0."""
        found = self._floor_entry(offset - self._base_offset)
        return found[1] if found else 0

    def first_from_position(self, position: int) -> tuple[int, int] | None:
        """Return (last offset, position) of the first entry whose batch begins at or after ``position``, or None."""
        read = self._entries()
        slot = bisect_left(range(self.entry_count), position, key=lambda number: read(number)[1])
        if slot == self.entry_count:
            return None
        offset, found = read(slot)
        return offset + self._base_offset, found

    def last(self) -> tuple[int, int]:
        """Return (offset, position) of the last entry; the base offset and 0 without one."""
        found = self._last_entry()
        return (found[0] + self._base_offset, found[1]) if found else (self._base_offset, 0)


class TimeIndex(_SparseIndex):
    """An index of the offsets of timestamps."""

    __slots__ = ("_last_timestamp",)
    entry = _TIME_ENTRY

    def __init__(self, file_system: FileSystem, path: str, base_offset: int, max_bytes: int, size: int) -> None:
        super().__init__(file_system, path, base_offset, max_bytes, size)
        self._last_timestamp: int | None = -1 if size < _TIME_ENTRY.size else None

    @property
    def is_full(self) -> bool:
        """Return whether only one entry has room, which is reserved for the close of the segment."""
        return self.entry_count >= self.max_entries - 1

    def last(self) -> tuple[int, int]:
        """Return (timestamp, offset) of the last entry; (-1, base offset) without one."""
        found = self._last_entry()
        self._last_timestamp = found[0] if found else -1
        return (found[0], found[1] + self._base_offset) if found else (-1, self._base_offset)

    def first(self) -> tuple[int, int]:
        """Return (timestamp, offset) of the first entry; (-1, base offset) without one."""
        if not self.entry_count:
            return -1, self._base_offset
        timestamp, offset = self._entries()(0)
        return timestamp, offset + self._base_offset

    def entries(self, first: int, most: int) -> list[tuple[int, int]]:
        """Return (timestamp, offset) of at most so many entries, from number ``first`` on."""
        read = self._entries()
        found = map(read, range(first, min(first + most, self.entry_count)))
        return [(timestamp, offset + self._base_offset) for timestamp, offset in found]

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if its timestamp is above the last one's."""
        last = self._last_timestamp
        if timestamp_ms > (self.last()[0] if last is None else last):
            self._append_entry(_TIME_ENTRY.pack(timestamp_ms, offset - self._base_offset))
            self._last_timestamp = timestamp_ms

    def keep_entries(self, count: int) -> None:
        """Drop all but the first ``count`` entries. The next ``write_out`` cuts the file."""
        super().keep_entries(count)
        self._last_timestamp = None

    def offset_before(self, timestamp_ms: int) -> int:
        """Return an offset up to which no record has a timestamp above ``timestamp_ms``; the base offset if unknown."""
        found = self._floor_entry(timestamp_ms)
        return (found[1] if found else 0) + self._base_offset
