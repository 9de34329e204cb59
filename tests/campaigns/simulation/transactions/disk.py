"""A disk in memory whose writes go wrong on demand: they fail, or the broker dies before, within or after one.

As after ``kill -9``, writes before the kill stay: the process is gone, the machine is not. After a kill nothing can be written
until the disk is used again, since a dead process writes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from tests.memory_filesystem import MemoryFile, MemoryFileSystem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.record_batch import Buffer

_METADATA = "__cluster_metadata"


class Killed(BaseException):
    """Ends the broker's process; the broker's exception handlers must not catch it."""


class Trap(Enum):
    """What happens to a write."""

    FAIL = "fails"
    KILL_BEFORE = "is not begun any more"
    KILL_WITHIN = "is half done"
    KILL_AFTER = "is the last"


class SimulatedDisk(MemoryFileSystem):
    """``arm`` sets a trap; without one the disk is a ``MemoryFileSystem``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_dead = False
        self._trap: Trap | None = None
        self._writes_left = 0

    def arm(self, trap: Trap, writes_left: int) -> None:
        """Spring ``trap`` after ``writes_left`` more writes. Only appends to partitions' logs fail; any write may be killed."""
        self._trap = trap
        self._writes_left = writes_left

    def disarm(self) -> None:
        """Remove the trap; the disk works again."""
        self._trap = None
        self.is_dead = False

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        if path in self.files:
            return self.files[path]
        if create:
            self._ensure_alive()
        super().open(path, create=create)
        file = self.files[path] = SimulatedFile(self, path)
        return file

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Part of FileSystem: the old content or the new, never a part of it."""
        trap = self.next_write(path, may_fail=False)
        if trap in (Trap.KILL_BEFORE, Trap.KILL_WITHIN):
            raise Killed
        super().write_atomic(path, data, durable=durable)
        if trap is not None:
            raise Killed

    def rename(self, source: str, target: str) -> None:
        self._ensure_alive()
        super().rename(source, target)

    def next_write(self, path: str, *, may_fail: bool) -> Trap | None:
        """The trap that springs with this write."""
        self._ensure_alive()
        if self._trap is None:
            return None
        if self._trap is Trap.FAIL and (not may_fail or _METADATA in path or not path.endswith(".log")):
            return None
        if self._writes_left:
            self._writes_left -= 1
            return None
        trap, self._trap = self._trap, None
        self.is_dead = trap is not Trap.FAIL
        return trap

    def _ensure_alive(self) -> None:
        if self.is_dead:
            raise Killed


class SimulatedFile(MemoryFile):
    """A file on it."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: SimulatedDisk, path: str) -> None:
        super().__init__()
        self._disk = disk
        self._path = path

    def append(self, buffers: Sequence[Buffer]) -> None:
        trap = self._disk.next_write(self._path, may_fail=True)
        if trap is Trap.FAIL:
            raise OSError("the disk does not take this")
        if trap is Trap.KILL_BEFORE:
            raise Killed
        if trap is Trap.KILL_WITHIN:
            data = b"".join(buffers)
            super().append([data[: len(data) // 2]])
            raise Killed
        super().append(buffers)
        if trap is Trap.KILL_AFTER:
            raise Killed
