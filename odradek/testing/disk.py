"""A disk in memory that can lose power: it knows which bytes of its files and which names in its directories were synced.

After a loss of power each directory has the names of its last ``sync_dir``, and a prefix of the changes since. Each file has
the bytes of its last ``sync``, and a prefix of the bytes appended since. ``Random`` draws how long the prefix is. Without a
``Random`` it is empty, which is the least that a real disk may keep. A kill of the process leaves everything.

``fork`` makes a disk with the same content. The two share the bytes that exist at the fork: these are never copied.

Not modelled here but explored by tests/campaigns/power_loss: torn sectors, names of several directories surviving in
interleaved order, failing syncs.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from odradek.protocol.record_batch import Buffer

__tracebackhide__ = True


class _File:
    """The content of a file: immutable ``sealed`` parts, which other disks may share, followed by ``data``.

    ``starts`` has the positions of the sealed parts. ``kept`` has the synced bytes from before a truncation.
    """

    __slots__ = ("data", "kept", "sealed", "sealed_bytes", "starts", "synced_bytes")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.sealed: tuple[Buffer, ...] = ()
        self.starts: tuple[int, ...] = ()
        self.sealed_bytes = 0
        self.synced_bytes = len(data)
        self.kept: bytes | None = None

    @property
    def size(self) -> int:
        return self.sealed_bytes + len(self.data)

    def read(self, length: int, offset: int) -> bytes:
        behind = offset - self.sealed_bytes
        if behind >= 0:
            return bytes(memoryview(self.data)[behind : behind + length])
        number = bisect_right(self.starts, offset) - 1
        begin = offset - self.starts[number]
        found = bytes(memoryview(self.sealed[number])[begin : begin + length])
        for part in (*self.sealed[number + 1 :], self.data):
            if len(found) == length:
                break
            found += memoryview(part)[: length - len(found)]
        return found

    def truncate(self, size: int) -> None:
        if size < self.synced_bytes and self.kept is None:
            self.kept = self.read(self.synced_bytes, 0)
        if size >= self.sealed_bytes:
            del self.data[size - self.sealed_bytes :]
            return
        kept = [(start, part) for start, part in zip(self.starts, self.sealed, strict=True) if start < size]
        self.starts = tuple(start for start, _ in kept)
        self.sealed = tuple(memoryview(part)[: size - start] for start, part in kept)
        self.sealed_bytes = size
        self.data = bytearray()

    def sync(self) -> None:
        self.synced_bytes = self.size
        self.kept = None

    def fork(self) -> _File:
        if self.data:
            self.sealed += (self.data,)
            self.starts += (self.sealed_bytes,)
            self.sealed_bytes += len(self.data)
            self.data = bytearray()
        other = _File()
        other.sealed, other.starts = self.sealed, self.starts
        other.sealed_bytes = other.synced_bytes = self.sealed_bytes
        return other

    def surviving(self, random: Random | None) -> _File:
        if self.kept is not None and (random is None or random.random() < 0.5):
            return _File(self.kept)
        start = min(self.synced_bytes, self.size) if self.kept is None else 0
        end = start if random is None else random.randint(start, self.size)
        return _File(self.read(end, 0))


class _Directory:
    """A directory: its names now, its names at the last sync, and the changes in between, in order."""

    __slots__ = ("changes", "names", "synced")

    def __init__(self) -> None:
        self.names: dict[str, _File | _Directory] = {}
        self.synced: dict[str, _File | _Directory] = {}
        self.changes: list[tuple[str, _File | _Directory | None, str]] = []

    def put(self, name: str, node: _File | _Directory, *, instead_of: str = "") -> None:
        """Make ``name`` point to ``node``, and remove the name ``instead_of`` if given."""
        self.changes.append((name, node, instead_of))
        _change(self.names, *self.changes[-1])

    def drop(self, name: str) -> None:
        self.changes.append((name, None, ""))
        _change(self.names, *self.changes[-1])

    def sync(self) -> None:
        self.synced = dict(self.names)
        self.changes.clear()

    def fork(self) -> _Directory:
        other = _Directory()
        other.names = {name: node.fork() for name, node in self.names.copy().items()}
        other.sync()
        return other

    def surviving(self, random: Random | None) -> _Directory:
        names = dict(self.synced)
        for change in self.changes[: 0 if random is None else random.randint(0, len(self.changes))]:
            _change(names, *change)
        found = _Directory()
        for name, node in names.items():
            found.names[name] = node.surviving(random)
        found.sync()
        return found


def _change(names: dict[str, _File | _Directory], name: str, node: _File | _Directory | None, instead_of: str) -> None:
    if instead_of:
        names.pop(instead_of, None)
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


class DiskHandle:
    """An open file. It implements ``File``."""

    __slots__ = ("_file",)

    def __init__(self, file: _File) -> None:
        self._file = file

    def pread(self, length: int, offset: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``."""
        return self._file.read(length, offset)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Append all of ``buffers``."""
        for buffer in buffers:
            self._file.data += buffer

    def size(self) -> int:
        """Return the size in bytes."""
        return self._file.size

    def truncate(self, size: int) -> None:
        """Cut everything after ``size``."""
        self._file.truncate(size)

    def sync(self) -> None:
        """Make the written bytes survive a loss of power."""
        self._file.sync()

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def fileno(self) -> None:
        """Return None: there is no descriptor."""


class _Lock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemoryDisk:
    """A file system in memory. ``after_power_loss`` makes a second one; the old broker keeps writing to the first."""

    def __init__(self) -> None:
        self._root = _Directory()
        # Directories by path, cached.
        self._known: dict[str, _Directory] = {}
        self._locks: set[str] = set()

    def after_power_loss(self, random: Random | None = None) -> MemoryDisk:
        """Return the disk that the next process finds. This disk stays with the old process."""
        disk = MemoryDisk()
        disk._root = self._root.surviving(random)
        return disk

    def fork(self) -> MemoryDisk:
        """Return another disk with the same content, all of it synced. The two then change independently."""
        disk = MemoryDisk()
        disk._root = self._root.fork()
        return disk

    def contents(self) -> dict[str, bytes]:
        """Return the content of every file by path."""
        found = {}
        waiting = [("", self._root)]
        while waiting:
            path, directory = waiting.pop()
            for name, node in directory.names.items():
                if isinstance(node, _Directory):
                    waiting.append((f"{path}/{name}", node))
                else:
                    found[f"{path}/{name}"] = node.read(node.size, 0)
        return dict(sorted(found.items()))

    def open(self, path: str, *, create: bool = False) -> DiskHandle:
        """See FileSystem."""
        directory, name = self._place(path)
        node = directory.names.get(name)
        if node is None and create:
            node = _File()
            directory.put(name, node)
        if not isinstance(node, _File):
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return DiskHandle(node)

    def read_bytes(self, path: str) -> bytes:
        """See FileSystem."""
        file = self.open(path)
        return file.pread(file.size(), 0)

    def write_atomic(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """See FileSystem."""
        directory, name = self._place(path)
        node = _File(data)
        if not durable:
            node.synced_bytes = 0
        directory.put(name, node)
        if durable:
            directory.sync()

    def exists(self, path: str) -> bool:
        """See FileSystem."""
        return self._find(path) is not None

    def list_dir(self, path: str) -> list[str]:
        """See FileSystem."""
        return list(self._directory(path).names)

    def make_dirs(self, path: str) -> None:
        """See FileSystem."""
        directory = self._root
        for name in _parts(path):
            node = directory.names.get(name)
            if node is None:
                node = _Directory()
                directory.put(name, node)
            if not isinstance(node, _Directory):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
            directory = node

    def rename(self, source: str, target: str) -> None:
        """Rename within one directory. Moves between directories are not modelled."""
        directory, name = self._place(source)
        other, new_name = self._place(target)
        node = directory.names.get(name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)
        if other is not directory:
            raise OSError(errno.EXDEV, "renames across directories are not modelled", target)
        directory.put(new_name, node, instead_of=name)
        self._known.clear()

    def remove(self, path: str) -> None:
        """See FileSystem."""
        directory, name = self._place(path)
        if not isinstance(directory.names.get(name), _File):
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        directory.drop(name)

    def remove_tree(self, path: str) -> None:
        """See FileSystem."""
        self._directory(path)
        directory, name = self._place(path)
        directory.drop(name)
        self._known.clear()

    def sync_dir(self, path: str) -> None:
        """See FileSystem."""
        self._directory(path).sync()

    def size(self, path: str) -> int:
        """See FileSystem."""
        return self.open(path).size()

    def modified_ms(self, path: str) -> int:  # noqa: ARG002 - there is no clock
        """Return -1: not known."""
        return -1

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Do nothing: there is no time to set."""

    def lock(self, path: str) -> _Lock:
        """See FileSystem."""
        if path in self._locks:
            raise BlockingIOError(errno.EWOULDBLOCK, "held by another broker", path)
        self.open(path, create=True)
        self._locks.add(path)
        return _Lock(self._locks, path)

    def _find(self, path: str) -> _File | _Directory | None:
        parent, _, last = path.rpartition("/")
        known = self._known.get(parent)
        if known is not None and last:
            return known.names.get(last)
        node: _File | _Directory | None = self._root
        for name in _parts(path):
            node = node.names.get(name) if isinstance(node, _Directory) else None
        return node

    def _directory(self, path: str) -> _Directory:
        found = self._known.get(path)
        if found is None:
            node = self._find(path)
            if not isinstance(node, _Directory):
                raise FileNotFoundError(errno.ENOENT, "No such directory", path)
            found = self._known[path] = node
        return found

    def _place(self, path: str) -> tuple[_Directory, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        return self._directory(parent), name


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]
