"""A file system that can be cut off from a killed broker, so that late callbacks cannot write."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from odradek.storage.directories.data_directory import reserve_bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.protocol.record_batch import Buffer
    from odradek.storage.filesystem import File, FileSystem, Lock

__tracebackhide__ = True


class _Closable(Protocol):
    def close(self) -> None: ...


class Watch(Protocol):
    """A wrapper around the appends and syncs of all files."""

    def around(self, operation: str, path: str, buffers: Sequence[Buffer], do: Callable[[Sequence[Buffer]], None]) -> None:
        """Perform the operation, "append" or "sync", by calling ``do`` with these buffers. Raises OSError."""


class _SeverableFile:
    __slots__ = ("__weakref__", "_file", "_owner", "_path")

    def __init__(self, owner: SeverableFileSystem, path: str, file: File) -> None:
        self._owner = owner
        self._path = path
        self._file = file

    def pread(self, length: int, offset: int) -> bytes:
        self._owner.check()
        return self._file.pread(length, offset)

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._owner.check()
        watch = self._owner.watch
        if watch is None:
            self._file.append(buffers)
        else:
            watch.around("append", self._path, buffers, self._file.append)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        self._owner.check()
        self._file.truncate(size)

    def sync(self) -> None:
        self._owner.check()
        watch = self._owner.watch
        if watch is None:
            self._file.sync()
        else:
            watch.around("sync", self._path, (), lambda _: self._file.sync())

    def close(self) -> None:
        self._file.close()

    def fileno(self) -> int | None:
        return self._file.fileno()


class _SeverableLock:
    __slots__ = ("__weakref__", "_lock")

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def release(self) -> None:
        self._lock.release()

    close = release


class SeverableFileSystem:
    """A wrapped file system until ``sever`` is called. Then all open files and locks are closed, and every call is an OSError.

    ``watch`` wraps appends and syncs.
    """

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self._is_severed = False
        self.watch: Watch | None = None
        self._open: WeakSet[_Closable] = WeakSet()

    @property
    def reserve_bytes(self) -> int:
        """Return the reserve of the wrapped file system."""
        return reserve_bytes_of(self._file_system)

    def sever(self) -> None:
        """Close all open files and locks, and let nothing through any more."""
        self._is_severed = True
        for each in list(self._open):
            each.close()

    def check(self) -> None:
        """Raise OSError if severed."""
        if self._is_severed:
            raise OSError(errno.EIO, "the broker process of this file system has ended")

    def open(self, path: str, *, create: bool = False) -> _SeverableFile:
        """See FileSystem."""
        self.check()
        file = _SeverableFile(self, path, self._file_system.open(path, create=create))
        self._open.add(file)
        return file

    def lock(self, path: str) -> _SeverableLock:
        """See FileSystem."""
        self.check()
        lock = _SeverableLock(self._file_system.lock(path))
        self._open.add(lock)
        return lock

    def read_bytes(self, path: str) -> bytes:
        """See FileSystem."""
        self.check()
        return self._file_system.read_bytes(path)

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.write_atomic(path, data, durable=durable)

    def exists(self, path: str) -> bool:
        """See FileSystem."""
        self.check()
        return self._file_system.exists(path)

    def list_dir(self, path: str) -> list[str]:
        """See FileSystem."""
        self.check()
        return self._file_system.list_dir(path)

    def make_dirs(self, path: str) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.rename(source, target)

    def remove(self, path: str) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.remove(path)

    def remove_tree(self, path: str) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.remove_tree(path)

    def sync_dir(self, path: str) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.sync_dir(path)

    def size(self, path: str) -> int:
        """See FileSystem."""
        self.check()
        return self._file_system.size(path)

    def modified_ms(self, path: str) -> int:
        """See FileSystem."""
        self.check()
        return self._file_system.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """See FileSystem."""
        self.check()
        self._file_system.set_modified_ms(path, modified_ms)
