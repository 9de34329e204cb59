"""What a real disk could have of the operations done to it, at a kill of the process and at a loss of power.

Names and contents are told apart. A directory's names are those of its last sync, and the operations on them since; a file's
content is that of its last sync, and what was written since. At a kill all of it is there. When the power goes

- of each directory's operations since its last sync a beginning is there: a journaling file system (ext4, XFS) does them in
  order and each as a whole, so that a rename has the old name or the new, never both or neither. Between directories nothing is
  in order, nor between names and contents: a name may be there without the content of its file.
- of each file's content since its last sync nothing, a part, or all is there: a beginning, torn at any byte, or blocks of it with
  zeros in the place of others. Synced bytes stay. Where a truncation is lost, what was written since may be there all the same.
- a sync that failed has synced nothing, and what it should have may never get to the disk: the system takes it for written.

``states`` chooses which of these states are looked at. Left out: old contents of other files in new ones, which a file system in
its default mode does not show; names of one directory out of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.campaigns.power_loss.disk import Operation

SECTOR_BYTES = 512


class FileNode:
    """A file: ``synced`` is its content that outlives the machine for sure, ``current`` what the process sees."""

    __slots__ = ("current", "cuts", "is_lost", "synced")

    def __init__(self, content: bytes = b"") -> None:
        # Bytes, which know their hash: states are compared by it.
        self.synced = content
        self.current = content
        # The smallest size that it was truncated to since it was synced; None where it was not.
        self.cuts: int | None = None
        # Whether a sync has failed, after which what was not synced then counts as never written.
        self.is_lost = False

    @property
    def is_dirty(self) -> bool:
        """Whether the two differ, or may on disk."""
        return self.cuts is not None or self.current != self.synced

    @property
    def unsynced_from(self) -> int:
        """The first byte that may not be there."""
        start = min(len(self.synced), len(self.current))
        return start if self.cuts is None else min(start, self.cuts)

    def sync(self) -> None:
        if not self.is_lost:
            self.synced = self.current
            self.cuts = None

    def without_sectors(self, lost: Callable[[int], bool]) -> bytes:
        """The content with zeros, or what was synced, in the place of the sectors that are ``lost``, by their numbers."""
        content = bytearray(self.current)
        start = self.unsynced_from
        for sector in range(start // SECTOR_BYTES, -(-len(content) // SECTOR_BYTES)):
            if lost(sector):
                first, last = max(start, sector * SECTOR_BYTES), min(len(content), (sector + 1) * SECTOR_BYTES)
                before = self.synced[first:last]
                content[first:last] = before + bytes(last - first - len(before))
        return bytes(content)

    def unsynced_bytes_in(self, sector: int) -> int:
        """How many of a sector's."""
        first = max(self.unsynced_from, sector * SECTOR_BYTES)
        return min(len(self.current), (sector + 1) * SECTOR_BYTES) - first

    def untruncated(self) -> bytes:
        """What was written since a truncation, in what was there before it."""
        return self.current + self.synced[len(self.current) :]

    def sectors(self) -> range:
        """The numbers of those that are not synced."""
        return range(self.unsynced_from // SECTOR_BYTES, -(-len(self.current) // SECTOR_BYTES))


class DirectoryNode:
    """A directory: ``synced`` and ``current`` have its names, ``pending`` what lies between: (name, new name or node)."""

    __slots__ = ("current", "pending", "synced")

    def __init__(self) -> None:
        self.synced: dict[str, FileNode | DirectoryNode] = {}
        self.current: dict[str, FileNode | DirectoryNode] = {}
        self.pending: list[tuple[str, str | FileNode | DirectoryNode | None]] = []

    def change(self, name: str, to: str | FileNode | DirectoryNode | None) -> None:
        """A name comes to stand for a node, is renamed, or goes (None)."""
        self.pending.append((name, to))
        _change(self.current, name, to)

    def sync(self) -> None:
        self.synced = dict(self.current)
        self.pending.clear()

    def names(self, kept: int) -> dict[str, FileNode | DirectoryNode]:
        """With the first ``kept`` of the pending operations."""
        names = dict(self.synced)
        for name, to in self.pending[:kept]:
            _change(names, name, to)
        return names


def _change(names: dict[str, FileNode | DirectoryNode], name: str, to: str | FileNode | DirectoryNode | None) -> None:
    if to is None:
        del names[name]
    elif isinstance(to, str):
        names[to] = names.pop(name)
    else:
        names[name] = to


class DiskModel:
    """The disk as of the operations that it was told of by ``apply``; what it begins with is synced."""

    def __init__(self, files: Mapping[str, bytes], directories: Iterable[str]) -> None:
        """Files by path, numbered as ``RecordingDisk`` numbers them."""
        self.root = DirectoryNode()
        # By number, those that are removed as well: who has one open may write to it.
        self._files: dict[int, FileNode] = {}
        for path in sorted(directories):
            self._make_directory(path)
        for number, (path, data) in enumerate(files.items()):
            self._make_directory(path.rpartition("/")[0])
            node = self._files[number] = FileNode(data)
            directory, name = self._place(path)
            directory.change(name, node)
        for directory in self.directories():
            directory.sync()

    def apply(self, operation: Operation) -> None:
        """It has been done."""
        kind = operation.kind
        if kind in ("append", "truncate", "sync", "sync_lost"):
            self._apply_to_file(self._files[operation.file], operation)
            return
        if kind == "sync_dir":
            self.directory(operation.path).sync()
            return
        directory, name = self._place(operation.path)
        if kind == "create":
            node = self._files[operation.file] = FileNode()
            directory.change(name, node)
        elif kind == "make_dir":
            directory.change(name, DirectoryNode())
        elif kind == "rename":
            target, new_name = self._place(operation.target)
            if target is not directory:
                raise ValueError("a rename across directories is not modelled")
            directory.change(name, new_name)
        else:
            directory.change(name, None)

    def _apply_to_file(self, node: FileNode, operation: Operation) -> None:
        if operation.kind == "append":
            node.current += operation.data
        elif operation.kind == "truncate":
            node.current = node.current[: operation.size]
            if operation.size < len(node.synced):
                node.cuts = operation.size if node.cuts is None else min(node.cuts, operation.size)
        elif operation.kind == "sync":
            node.sync()
        else:
            node.is_lost = True

    def directories(self, within: DirectoryNode | None = None) -> Iterator[DirectoryNode]:
        """All of them, as they are named now."""
        within = within or self.root
        yield within
        for node in list(within.current.values()):
            if isinstance(node, DirectoryNode):
                yield from self.directories(node)

    def files(self) -> Iterator[FileNode]:
        """All that have a name now."""
        for directory in self.directories():
            for node in directory.current.values():
                if isinstance(node, FileNode):
                    yield node

    def file(self, number: int) -> FileNode:
        """By its number."""
        return self._files[number]

    def directory(self, path: str) -> DirectoryNode:
        """By its path."""
        node = self.root
        for name in path.strip("/").split("/") if path.strip("/") else []:
            found = node.current[name]
            if not isinstance(found, DirectoryNode):
                raise NotADirectoryError(path)
            node = found
        return node

    def _place(self, path: str) -> tuple[DirectoryNode, str]:
        parent, _, name = path.rpartition("/")
        return (self.directory(parent) if parent else self.root), name

    def _make_directory(self, path: str) -> None:
        node = self.root
        for name in path.strip("/").split("/") if path.strip("/") else []:
            node.current.setdefault(name, DirectoryNode())
            found = node.current[name]
            if not isinstance(found, DirectoryNode):
                raise NotADirectoryError(path)
            node.synced = dict(node.current)
            node = found

    def killed(self) -> dict[str, bytes | None]:
        """What a process that comes after a kill finds: files by path, None for directories."""
        return self.state(names=lambda node: len(node.pending), content=lambda node: node.current)

    def state(self, *, names: Callable[[DirectoryNode], int], content: Callable[[FileNode], bytes]) -> dict[str, bytes | None]:
        """What is found where of each directory so many pending operations are there, and each file has that content."""
        found: dict[str, bytes | None] = {}
        waiting = [("", self.root)]
        while waiting:
            path, directory = waiting.pop()
            for name, node in directory.names(names(directory)).items():
                below = f"{path}/{name}"
                if isinstance(node, DirectoryNode):
                    found[below] = None
                    waiting.append((below, node))
                else:
                    found[below] = content(node)
        return found
