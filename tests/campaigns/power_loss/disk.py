"""A disk in memory that records each operation, and on which each operation can be made to fail.

It takes the same steps as the real file system: replacing a file consists of creating, writing, perhaps syncing and renaming a
file, and perhaps of syncing its directory; removing a directory consists of removing its content. Each step is an ``Operation``
in ``operations``. From these, ``tests.campaigns.power_loss.model`` derives the states that a real disk could have after a loss
of power.

``fault`` is called before each step, and returns the error that the step is to have, if any. ``pause`` is called before each
step, and between the beginning of a sync and its end: threads and the loop take turns there.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tests.memory_filesystem import MemoryFileSystem, MemoryLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.protocol.record_batch import Buffer

MESSAGES = {errno.EIO: "Input/output error", errno.ENOSPC: "No space left on device"}


class Operation(NamedTuple):
    """One step. ``file`` is the number of its file, which a rename does not change; ``target`` is that of a rename.

    ``kind``: create, append, truncate, sync, sync_lost (a sync that failed), make_dir, rename, remove, remove_dir, sync_dir,
    sync_begin. ``begun`` is the number of the operation by which a sync began.
    """

    kind: str
    path: str
    file: int = -1
    data: bytes = b""
    size: int = 0
    target: str = ""
    begun: int = -1


class Fault(NamedTuple):
    """The failure of a step: its error, after ``written_bytes`` of an append."""

    errno: int
    written_bytes: int = 0


class RecordingFile:
    """A file on the disk. ``data`` is its content, ``size()`` the size known to be written completely, as in RealFile."""

    __slots__ = ("_disk", "_has_rest", "_size", "data", "number", "path")

    def __init__(self, disk: RecordingDisk, path: str, number: int, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.path = path
        self.number = number
        self._disk = disk
        self._size = len(data)
        self._has_rest = False

    def pread(self, length: int, offset: int) -> bytes:
        return bytes(memoryview(self.data)[offset : offset + length])

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.let_others_go_on()
        data = b"".join(buffers)
        operation = Operation("append", self.path, self.number, data)
        fault = self._disk.ask(operation)
        if fault is None:
            self._put(operation)
            self._size += len(data)
            return
        if fault.written_bytes:
            self._put(operation._replace(data=data[: fault.written_bytes]))
        # RealFile then removes the partial write, or retries at the next sync.
        self._has_rest = True
        with suppress(OSError):
            self.truncate(self._size)
        raise _error(fault, self.path)

    def _put(self, operation: Operation) -> None:
        # A real file overwrites the remains of a failed append.
        if len(self.data) > self._size:
            self._disk.note(Operation("truncate", self.path, self.number, size=self._size))
            del self.data[self._size :]
        self._disk.note(operation)
        self.data += operation.data

    def size(self) -> int:
        return self._size

    def truncate(self, size: int) -> None:
        self._disk.let_others_go_on()
        self._disk.do(Operation("truncate", self.path, self.number, size=size))
        del self.data[size:]
        self._size = size
        self._has_rest = False

    def sync(self) -> None:
        if self._has_rest:
            self.truncate(self._size)
        begun = self._disk.begin_sync(self.path, self.number)
        operation = Operation("sync", self.path, self.number, begun=begun)
        fault = self._disk.ask(operation)
        self._disk.note(operation if fault is None else operation._replace(kind="sync_lost"))
        if fault is not None:
            raise _error(fault, self.path)

    def close(self) -> None:
        """Nothing is held."""

    def fileno(self) -> None:
        """None: there is no descriptor."""


class RecordingDisk(MemoryFileSystem):
    """A FileSystem. ``operations`` are those that were done, in order; ``directory`` is there from the start."""

    def __init__(self, files: Mapping[str, bytes] | None = None, directories: Iterable[str] = ()) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.fault: Callable[[Operation], Fault | None] | None = None
        self.pause: Callable[[], None] | None = None
        self._next_number = 0
        for directory in directories:
            super().make_dirs(directory)
        for path, data in (files or {}).items():
            super().make_dirs(path.rpartition("/")[0])
            self.files[path] = self._make(path, data)  # type: ignore[assignment]

    def _make(self, path: str, data: bytes = b"") -> RecordingFile:
        self._next_number += 1
        return RecordingFile(self, path, self._next_number - 1, data)

    @property
    def directories(self) -> set[str]:
        """All that there are."""
        return self._directories

    def ask(self, operation: Operation) -> Fault | None:
        """The fault of a step that is about to begin, if any."""
        return self.fault(operation) if self.fault is not None else None

    def let_others_go_on(self) -> None:
        """Let threads and the loop take turns."""
        if self.pause is not None:
            self.pause()

    def begin_sync(self, path: str, number: int = -1) -> int:
        """Begin the sync of a file or a directory; returns the number of the operation."""
        begun = len(self.operations)
        self.note(Operation("sync_begin", path, number))
        self.let_others_go_on()
        return begun

    def note(self, operation: Operation) -> None:
        """Record a finished step."""
        self.operations.append(operation)

    def do(self, operation: Operation) -> None:
        """Do a step that succeeds or fails as a whole."""
        fault = self.ask(operation)
        if fault is not None:
            raise _error(fault, operation.path)
        self.note(operation)

    def open(self, path: str, *, create: bool = False) -> RecordingFile:  # type: ignore[override]
        file = self.files.get(path)
        if file is None and create:
            self.let_others_go_on()
            file = self.files.get(path)
        if file is None:
            if not create or path.rpartition("/")[0] not in self._directories:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            made = self._make(path)
            self.do(Operation("create", path, made.number))
            file = self.files[path] = made  # type: ignore[assignment]
        return file  # type: ignore[return-value]

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        if file.data:
            file.truncate(0)
        self.let_others_go_on()
        operation = Operation("append", temporary, file.number, data)
        fault = self.ask(operation)
        if fault is not None:
            self.note(operation._replace(data=data[: fault.written_bytes]))
            file.data += data[: fault.written_bytes]
            raise _error(fault, temporary)
        self.note(operation)
        file.data += data
        file._size = len(file.data)
        if durable:
            file.sync()
        self.rename(temporary, path)
        if durable:
            self.sync_dir(path.rpartition("/")[0])

    def make_dirs(self, path: str) -> None:
        missing = []
        self.let_others_go_on()
        while path not in self._directories:
            missing.append(path)
            path = path.rpartition("/")[0]
        for directory in reversed(missing):
            self.do(Operation("make_dir", directory))
            super().make_dirs(directory)

    def list_dir(self, path: str) -> list[str]:
        # The port promises no order, and that of a set differs between processes.
        return sorted(super().list_dir(path))

    def rename(self, source: str, target: str) -> None:
        self.let_others_go_on()
        if not self.exists(source):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)
        self.do(Operation("rename", source, target=target))
        super().rename(source, target)
        for path, file in self.files.items():
            file.path = path  # type: ignore[attr-defined]

    def remove(self, path: str) -> None:
        self.let_others_go_on()
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        self.do(Operation("remove", path))
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        for name in self.list_dir(path):
            below = f"{path}/{name}"
            if below in self.files:
                self.remove(below)
            else:
                self.remove_tree(below)
        self.let_others_go_on()
        if self.list_dir(path):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        self.do(Operation("remove_dir", path))
        super().remove_tree(path)

    def sync_dir(self, path: str) -> None:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        begun = self.begin_sync(path)
        self.do(Operation("sync_dir", path, begun=begun))

    def lock(self, path: str) -> MemoryLock:
        if path in self._locks:
            raise BlockingIOError(errno.EWOULDBLOCK, "held by another broker", path)
        self.open(path, create=True)
        self._locks.add(path)
        return MemoryLock(self._locks, path)

    def let_go(self) -> None:
        """The process has ended, and with it its locks; the disk works again."""
        self._locks.clear()
        self.fault = self.pause = None


def _error(fault: Fault, path: str) -> OSError:
    return OSError(fault.errno, MESSAGES[fault.errno], path)
