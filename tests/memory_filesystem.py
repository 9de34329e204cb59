"""A file system in memory: the same port as the real one, for tests and for brokers inside a test process.

Its content lives as long as the object. A broker that is dropped and opened again on the same ``MemoryFileSystem`` finds its
files as a killed process would find them on disk.
"""

from collections.abc import Sequence

from odradek.protocol.record_batch import Buffer


class MemoryFile:
    """A growing file. Tests may read and damage ``data``."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def pread(self, length: int, offset: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``."""
        return bytes(memoryview(self.data)[offset : offset + length])

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Append all of ``buffers``."""
        for buffer in buffers:
            self.data += buffer

    def size(self) -> int:
        """Return the size in bytes."""
        return len(self.data)

    def truncate(self, size: int) -> None:
        """Cut everything after ``size``."""
        del self.data[size:]

    def sync(self) -> None:
        """No-op: memory cannot be made any safer."""

    def close(self) -> None:
        """No-op: there is nothing to close."""

    def fileno(self) -> None:
        """Return None, as there is no descriptor."""


class MemoryLock:
    """A lock, held while its path is in the file system's set of locks."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        """Release the lock. Idempotent."""
        self._held.discard(self._path)


class MemoryFileSystem:
    """Files and directories in two dicts. Tests may read ``files``."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}
        self._directories: set[str] = {"", "/"}
        self._locks: set[str] = set()

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Return the file itself, shared by all who open it."""
        file = self.files.get(path)
        if file is None:
            if not create or _parent(path) not in self._directories:
                raise FileNotFoundError(path)
            file = self.files[path] = MemoryFile()
        return file

    def read_bytes(self, path: str) -> bytes:
        """Return a copy of a file's content."""
        return bytes(self.open(path).data)

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace the file by a new one. Holders of the old file keep it."""
        if _parent(path) not in self._directories:
            raise FileNotFoundError(path)
        file = self.files[path] = MemoryFile()
        file.data += data

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        return path in self.files or path in self._directories

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory."""
        if path not in self._directories:
            raise FileNotFoundError(path)
        prefix = path.rstrip("/") + "/"
        below = [name[len(prefix) :] for name in (*self.files, *self._directories) if name.startswith(prefix)]
        return [name for name in below if name and "/" not in name]

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents."""
        while path not in self._directories:
            self._directories.add(path)
            path = _parent(path)

    def rename(self, source: str, target: str) -> None:
        """Move a file, or a directory with its content."""
        file = self.files.pop(source, None)
        if file is not None:
            self.files[target] = file
            return
        if not self.exists(source):
            raise FileNotFoundError(source)
        for name in [name for name in self.files if _is_within(name, source)]:
            self.files[target + name[len(source) :]] = self.files.pop(name)
        for name in [name for name in self._directories if _is_within(name, source)]:
            self._directories.remove(name)
            self._directories.add(target + name[len(source) :])

    def remove(self, path: str) -> None:
        """Remove a file."""
        if self.files.pop(path, None) is None:
            raise FileNotFoundError(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its content."""
        if path not in self._directories:
            raise FileNotFoundError(path)
        self.files = {name: file for name, file in self.files.items() if not _is_within(name, path)}
        self._directories = {name for name in self._directories if not _is_within(name, path)}

    def sync_dir(self, path: str) -> None:
        """No-op: memory cannot be made any safer."""

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return self.open(path).size()

    def modified_ms(self, path: str) -> int:
        """Return -1, as the time is unknown."""
        return -1

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """No-op: no time is stored."""

    def lock(self, path: str) -> MemoryLock:
        """Take a lock that this object, not the process, holds."""
        if path in self._locks:
            raise BlockingIOError("held by another broker", path)
        self.open(path, create=True)
        self._locks.add(path)
        return MemoryLock(self._locks, path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory + "/")
