"""A file system in memory: the same port as the real one, for tests and for brokers that live inside a test process.

What is in it lives as long as the object: a broker that is dropped and opened again on the same ``MemoryFileSystem`` finds its
files as a killed process would find them on disk.
"""

from collections.abc import Sequence

from odradek.protocol.record_batch import Buffer


class MemoryFile:
    """A growing file. ``data`` may be looked at and damaged by tests."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def pread(self, length: int, offset: int) -> bytes:
        """At most ``length`` bytes from ``offset``."""
        return bytes(memoryview(self.data)[offset : offset + length])

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Add all of ``buffers``."""
        for buffer in buffers:
            self.data += buffer

    def size(self) -> int:
        """In bytes."""
        return len(self.data)

    def truncate(self, size: int) -> None:
        """Cut everything behind ``size``."""
        del self.data[size:]

    def sync(self) -> None:
        """All of a file in memory is as safe as it will ever be."""

    def close(self) -> None:
        """Nothing is held."""

    def fileno(self) -> None:
        """None: there is no descriptor."""


class MemoryLock:
    """Held while its path is in the file system's set of locks."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        """Idempotent."""
        self._held.discard(self._path)


class MemoryFileSystem:
    """Files and directories in two dicts. ``files`` may be looked at by tests."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}
        self._directories: set[str] = {"", "/"}
        self._locks: set[str] = set()

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """The file itself: all who open it share it."""
        file = self.files.get(path)
        if file is None:
            if not create or _parent(path) not in self._directories:
                raise FileNotFoundError(path)
            file = self.files[path] = MemoryFile()
        return file

    def read_bytes(self, path: str) -> bytes:
        """A copy of a file."""
        return bytes(self.open(path).data)

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:  # noqa: ARG002 - all is durable
        """Put a new file in the place of the old, which those who have it open keep."""
        if _parent(path) not in self._directories:
            raise FileNotFoundError(path)
        file = self.files[path] = MemoryFile()
        file.data += data

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        return path in self.files or path in self._directories

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory."""
        if path not in self._directories:
            raise FileNotFoundError(path)
        prefix = path.rstrip("/") + "/"
        below = [name[len(prefix) :] for name in (*self.files, *self._directories) if name.startswith(prefix)]
        return [name for name in below if name and "/" not in name]

    def make_dirs(self, path: str) -> None:
        """Create a directory and those above it."""
        while path not in self._directories:
            self._directories.add(path)
            path = _parent(path)

    def rename(self, source: str, target: str) -> None:
        """Move a file, or a directory with all that is in it."""
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
        """Remove a directory and all that is in it."""
        if path not in self._directories:
            raise FileNotFoundError(path)
        self.files = {name: file for name, file in self.files.items() if not _is_within(name, path)}
        self._directories = {name for name in self._directories if not _is_within(name, path)}

    def sync_dir(self, path: str) -> None:
        """All of a directory in memory is as safe as it will ever be."""

    def size(self, path: str) -> int:
        """A file's size in bytes."""
        return self.open(path).size()

    def modified_ms(self, path: str) -> int:  # noqa: ARG002 - there is no clock
        """Not known."""
        return -1

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Nothing to set."""

    def lock(self, path: str) -> MemoryLock:
        """Take a lock that the object, not the process, knows of."""
        if path in self._locks:
            raise BlockingIOError("held by another broker", path)
        self.open(path, create=True)
        self._locks.add(path)
        return MemoryLock(self._locks, path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory + "/")
