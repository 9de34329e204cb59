"""A segment's index of aborted transactions, in Kafka's format.

    <base offset>.txnindex   entries of  int16 version 0, int64 producer id, int64 first offset, int64 last offset,
                             int64 last stable offset                                                        34 bytes

A transaction is in the index of the segment with its abort marker. The marker's offset is the entry's last offset, and entries
ascend by it. The last stable offset is the offset after the marker, and never goes back. There is no file before the first abort.

An entry is written to the file at once. On a full disk it stays in memory, where readers find it, until the next append or flush.
Readers never write. After an unclean stop, a marker may be in the log but its entry not in the file. Then
``odradek.storage.log.producer_restore`` rewrites it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.record_batch import crc32c
from odradek.storage.filesystem import FileSystem

_VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")
_CHUNK_ENTRIES: Final = 1024


class AbortedTransaction(NamedTuple):
    """One aborted transaction. ``last_offset`` is its marker's offset, ``last_stable_offset`` the offset after the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions with markers in one segment. ``last_offset`` is the last marker's, -1 without one."""

    __slots__ = (
        "_file_system",
        "_has_rest",
        "_known_crc",
        "_on_disk",
        "_unwritten",
        "changes",
        "last_offset",
        "path",
        "synced_changes",
    )

    def __init__(self, file_system: FileSystem, path: str, size: int) -> None:
        """Open the index. ``size`` is the file's size, 0 without a file. Raises OSError."""
        self.path = path
        # As in an OffsetIndex.
        self.changes = self.synced_changes = 0
        self._file_system = file_system
        self._on_disk = size // ENTRY.size
        # True if the file may be longer than its valid entries.
        self._has_rest = size % ENTRY.size > 0
        self._unwritten = bytearray()
        # The number of leading entries with a known CRC, and the CRC.
        self._known_crc = (0, 0)
        self.last_offset = self._find_last_offset()

    @property
    def entry_count(self) -> int:
        """Return the number of aborted transactions, on disk and in memory."""
        return self._on_disk + len(self._unwritten) // ENTRY.size

    @property
    def size_bytes(self) -> int:
        """Return the size of the file."""
        return self._on_disk * ENTRY.size

    def fingerprint(self) -> tuple[int, int]:
        """Return the number of entries in the file, and their CRC. Raises OSError."""
        if self._known_crc[0] != self._on_disk:
            self._known_crc = self._on_disk, self.crc_of(self._on_disk)
        return self._known_crc

    def crc_of(self, entries: int) -> int:
        """Return the CRC of the first ``entries`` entries; -1 if there are fewer. Raises OSError."""
        if entries > self._on_disk:
            return -1
        return crc32c(self._entries_on_disk()[: entries * ENTRY.size], 0)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction whose marker has just been written."""
        self._unwritten += ENTRY.pack(_VERSION, *aborted)
        self.last_offset = aborted.last_offset
        # The marker is in the log already. An entry that cannot be written now waits for the next one or a flush.
        with suppress(OSError):
            self.write_out()

    def write_out(self) -> None:
        """Write the entries that are only in memory. Raises OSError."""
        if self._has_rest:
            # The old entries may be synced, and a recovery point may rely on them. So a new file replaces the old one once it is
            # on disk.
            self._file_system.write_atomic(self.path, self._entries_on_disk() + self._unwritten)
        elif self._unwritten:
            file = self._file_system.open(self.path, create=True)
            file.append([self._unwritten])
            file.close()
        else:
            return
        self.changes += 1
        self._on_disk = self.entry_count
        self._has_rest = False
        self._unwritten = bytearray()

    def keep_below(self, offset: int) -> None:
        """Remove transactions with markers at or after ``offset``. Raises OSError."""
        self._keep(self._first_from(offset))

    def _keep(self, count: int) -> None:
        if count < self._on_disk or self._has_rest:
            self._on_disk = min(count, self._on_disk)
            self._known_crc = (0, 0)
            file = self._file_system.open(self.path, create=True)
            file.truncate(self._on_disk * ENTRY.size)
            file.close()
            self.changes += 1
            self._has_rest = False
        del self._unwritten[(count - self._on_disk) * ENTRY.size :]
        self.last_offset = self._find_last_offset()

    def keep_sound_below(self, base_offset: int, offset: int) -> None:
        """Do ``keep_below`` after a power loss: also remove entries that a segment from ``base_offset`` on cannot have.

        Raises OSError.
        """
        count = self._sound_below(base_offset, offset)
        if count < self.entry_count or self._has_rest:
            self._keep(count)

    def rewrite_from(self, base_offset: int, offset: int, aborted: Sequence[AbortedTransaction]) -> None:
        """Do ``keep_sound_below``, then add ``aborted``. Raises OSError.

        A file that already begins with the right entries is left alone. On a full disk, the new entries are only in memory.
        """
        count = self._sound_below(base_offset, offset)
        added = b"".join(ENTRY.pack(_VERSION, *each) for each in aborted)
        entries = self._entries_on_disk() + self._unwritten
        rest = entries[count * ENTRY.size :]
        if rest:
            # A killed process may have written these entries without syncing them.
            self.changes += 1
        if added.startswith(rest) and not self._has_rest:
            self._unwritten += added[len(rest) :]
        else:
            self._on_disk = min(count, self._on_disk)
            self._unwritten = bytearray(entries[self._on_disk * ENTRY.size : count * ENTRY.size] + added)
            self._known_crc = (0, 0)
            self._has_rest = True
        self.last_offset = self._find_last_offset()
        with suppress(OSError):
            self.write_out()

    def _sound_below(self, base_offset: int, offset: int) -> int:
        """Return the number of leading entries that are valid and have markers below ``offset``."""
        count = 0
        previous = base_offset
        entries = self._entries_on_disk() + self._unwritten
        for version, producer_id, first_offset, last_offset, _ in ENTRY.iter_unpack(entries):
            is_sound = version == _VERSION and producer_id >= 0 and 0 <= first_offset < last_offset
            if not is_sound or not previous <= last_offset < offset:
                break
            previous = last_offset + 1
            count += 1
        return count

    def collect(self, fetch_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions with records from ``fetch_offset`` up to ``end_offset``, and whether later segments have none.

        Raises OSError.
        """
        found: list[AbortedTransaction] = []
        if fetch_offset > self.last_offset:
            return found, False
        number = self._first_from(fetch_offset)
        while number < self.entry_count:
            chunk = self._read(number, _CHUNK_ENTRIES)
            for aborted in chunk:
                if aborted.first_offset < end_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= end_offset:
                    return found, True
            number += len(chunk)
        return found, False

    def _find_last_offset(self) -> int:
        count = self.entry_count
        return self._read(count - 1, 1)[0].last_offset if count else -1

    def _first_from(self, offset: int) -> int:
        """Return the number of the first entry whose marker is at or after ``offset``."""
        return bisect_left(range(self.entry_count), offset, key=lambda number: self._read(number, 1)[0].last_offset)

    def _entries_on_disk(self) -> bytes:
        return self._file_system.read_bytes(self.path)[: self._on_disk * ENTRY.size] if self._on_disk else b""

    def _read(self, number: int, most: int) -> list[AbortedTransaction]:
        """Return at most ``most`` entries from ``number`` on, from file or memory; at least one if there is one."""
        start = (number - self._on_disk) * ENTRY.size
        if start >= 0:
            data = bytes(self._unwritten[start : start + most * ENTRY.size])
        else:
            file = self._file_system.open(self.path)
            data = file.pread(min(most, self._on_disk - number) * ENTRY.size, number * ENTRY.size)
            file.close()
        return [AbortedTransaction(*fields[1:]) for fields in ENTRY.iter_unpack(data)]
