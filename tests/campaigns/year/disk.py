"""A disk in memory that knows which of its files somebody has open."""

from weakref import WeakSet

from odradek.storage.memory_filesystem import MemoryFile, MemoryFileSystem


class Handle(MemoryFile):
    """A file that somebody has open, until it is closed or forgotten."""

    __slots__ = ("__weakref__", "_open", "path")

    def __init__(self, path: str, file: MemoryFile, handles: "WeakSet[Handle]") -> None:
        self.data = file.data
        self.path = path
        self._open = handles
        handles.add(self)

    def close(self) -> None:
        """Let go of it."""
        self._open.discard(self)


class WatchedDisk(MemoryFileSystem):
    """``handles`` are the files that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.handles: WeakSet[Handle] = WeakSet()

    def open(self, path: str, *, create: bool = False) -> Handle:
        """A handle of its own for each who opens the file."""
        return Handle(path, super().open(path, create=create), self.handles)
