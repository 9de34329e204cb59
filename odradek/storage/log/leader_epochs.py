"""The start offset of each leader epoch (KIP-101), kept in ``leader-epoch-checkpoint``.

    0                       version
    2                       number of entries
    0 0                     epoch, start offset
    3 1742

The file is written when an epoch begins, and synced by a flush before the recovery point moves. Past the recovery point, recovery
takes the epochs from the batches.
"""

from typing import Final

from odradek.storage.directories.checkpoints import read_table, write_table
from odradek.storage.filesystem import FileSystem

FILE_NAME: Final = "leader-epoch-checkpoint"
UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochs:
    """The epochs of one log, ascending in both epoch and start offset."""

    __slots__ = ("_directory", "_entries", "_file_system", "_is_synced", "is_held", "latest")

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system = file_system
        self._directory = directory
        self._entries: list[tuple[int, int]] = []
        self._is_synced = True
        # True if changes stay in memory until ``release``.
        self.is_held = False
        self.latest = UNDEFINED_EPOCH

    def load(self) -> bool:
        """Read the file. Return False if it is missing or unreadable; then take the epochs from the log."""
        try:
            rows = read_table(self._file_system, f"{self._directory}/{FILE_NAME}")
            self._set([(int(epoch), int(start)) for epoch, start in rows])
        except (OSError, ValueError):
            return False
        return True

    def _set(self, entries: list[tuple[int, int]]) -> None:
        self._entries = entries
        self.latest = entries[-1][0] if entries else UNDEFINED_EPOCH

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Return pairs of (epoch, start offset)."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add ``epoch``, which begins at ``start_offset``, unless it is the latest. Removes entries that contradict it."""
        if epoch == self.latest or epoch < 0:
            return
        kept = [entry for entry in self._entries if entry[0] < epoch and entry[1] < start_offset]
        self._replace([*kept, (epoch, start_offset)])

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that begin at or after ``end_offset``. Raises OSError."""
        kept = [entry for entry in self._entries if entry[1] < end_offset]
        if len(kept) != len(self._entries):
            self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that end before ``start_offset``; the epoch that contains it now begins there. Raises OSError."""
        passed = [entry for entry in self._entries if entry[1] <= start_offset]
        if passed and passed != [(passed[-1][0], start_offset)]:
            self._replace([(passed[-1][0], start_offset), *self._entries[len(passed) :]])

    def epoch_for(self, offset: int) -> int:
        """Return the epoch in which ``offset`` was written; -1 if unknown."""
        return next((epoch for epoch, start in reversed(self._entries) if start <= offset), UNDEFINED_EPOCH)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (the largest epoch not above ``epoch``, its end offset); (-1, -1) if unknown (OffsetForLeaderEpoch)."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        later = next((entry for entry in self._entries if entry[0] > epoch), None)
        if later is None:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        floor = next((known for known, _ in reversed(self._entries) if known <= epoch), epoch)
        return floor, later[1]

    def _replace(self, entries: list[tuple[int, int]]) -> None:
        """Write the file, then change the entries: after an error both are as before. Raises OSError."""
        self._is_synced = False
        if not self.is_held:
            self._write(entries, durable=False)
        self._set(entries)

    def _write(self, entries: list[tuple[int, int]], *, durable: bool) -> None:
        lines = [f"{epoch} {start}" for epoch, start in entries]
        write_table(self._file_system, f"{self._directory}/{FILE_NAME}", lines, durable=durable)

    def release(self) -> None:
        """Write and sync the held changes. Raises OSError."""
        self._is_synced = False
        self.sync()
        self.is_held = False

    def sync(self) -> None:
        """Sync the file if needed. Raises OSError."""
        if not self._is_synced:
            self._write(self._entries, durable=True)
            self._is_synced = True
