"""The states that a real disk could have, given the operations on it, after a kill of the process and after a loss of power.

Names and contents are separate. A directory's names are those of its last sync and of the operations since; a file's content is
that of its last sync and of the writes since. After a kill everything is there. After a loss of power

- of each directory's operations since its last sync, a first part is there. A journaling file system (ext4, XFS) does them in
  order and each as a whole, so that a rename shows the old name or the new one, never both or neither. There is no order between
  directories, nor between names and contents: a name may be there without the content of its file.
- of each file's content since its last sync, nothing, a part, or all is there: a first part, torn at any byte, or some blocks,
  with zeros in place of the others. Synced bytes stay. If a truncation is lost, later writes may be there nevertheless.
- a sync counts when it ends, and then for what there was when it began: later writes are unsynced.
- a failed sync has synced nothing, and its data may never reach the disk: the system treats it as written.

``states`` chooses the states to check. Left out: old contents of other files in new ones, which a file system in its default
mode does not show; operations of one directory out of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.campaigns.power_loss.disk import Operation

SECTOR_BYTES = 512


class FileSync:
    """A sync of a file that has begun: the ``content`` there was, and the smallest size that the file was cut to since."""

    __slots__ = ("content", "cuts", "number")

    def __init__(self, content: bytes, number: int) -> None:
        self.content = content
        self.cuts: int | None = None
        self.number = number


class FileNode:
    """A file: ``synced`` is the content that survives a loss of power, ``current`` the content that the process sees."""

    __slots__ = ("_begun", "_begun_count", "_synced_number", "current", "cuts", "is_lost", "synced")

    def __init__(self, content: bytes = b"") -> None:
        # Bytes, which cache their hash: states are compared by it.
        self.synced = content
        self.current = content
        # The smallest size that it was truncated to since its last sync; None without a truncation.
        self.cuts: int | None = None
        # Whether a sync has failed. Unsynced content then counts as never written.
        self.is_lost = False
        self._begun: list[FileSync] = []
        self._begun_count = 0
        self._synced_number = 0

    @property
    def is_dirty(self) -> bool:
        """Whether the two contents differ, or may differ on disk."""
        return self.cuts is not None or self.current != self.synced

    @property
    def unsynced_from(self) -> int:
        """The first byte that may be lost."""
        start = min(len(self.synced), len(self.current))
        return start if self.cuts is None else min(start, self.cuts)

    def truncate(self, size: int) -> None:
        self.current = self.current[:size]
        if size < len(self.synced):
            self.cuts = size if self.cuts is None else min(self.cuts, size)
        for sync in self._begun:
            if size < len(sync.content):
                sync.cuts = size if sync.cuts is None else min(sync.cuts, size)

    def begin_sync(self) -> FileSync:
        self._begun_count += 1
        sync = FileSync(self.current, self._begun_count)
        self._begun.append(sync)
        return sync

    def end_sync(self, sync: FileSync, *, is_lost: bool) -> None:
        """Let what there was when ``sync`` began survive, unless a later sync has ended before."""
        self._begun.remove(sync)
        self.is_lost = self.is_lost or is_lost
        if not self.is_lost and sync.number > self._synced_number:
            self._synced_number = sync.number
            self.synced = sync.content
            self.cuts = sync.cuts

    def without_sectors(self, lost: Callable[[int], bool]) -> bytes:
        """The content, with zeros or synced bytes in place of the ``lost`` sectors, by their numbers."""
        content = bytearray(self.current)
        start = self.unsynced_from
        for sector in range(start // SECTOR_BYTES, -(-len(content) // SECTOR_BYTES)):
            if lost(sector):
                first, last = max(start, sector * SECTOR_BYTES), min(len(content), (sector + 1) * SECTOR_BYTES)
                before = self.synced[first:last]
                content[first:last] = before + bytes(last - first - len(before))
        return bytes(content)

    def unsynced_bytes_in(self, sector: int) -> int:
        """The number of unsynced bytes in a sector."""
        first = max(self.unsynced_from, sector * SECTOR_BYTES)
        return min(len(self.current), (sector + 1) * SECTOR_BYTES) - first

    def untruncated(self) -> bytes:
        """The content if the truncation is lost and the later writes are not."""
        return self.current + self.synced[len(self.current) :]

    def sectors(self) -> range:
        """The numbers of the unsynced sectors."""
        return range(self.unsynced_from // SECTOR_BYTES, -(-len(self.current) // SECTOR_BYTES))


class DirectoryNode:
    """A directory's names: ``synced`` and ``current``; ``pending`` has the operations between: (name, new name or node)."""

    __slots__ = ("_synced_count", "current", "pending", "synced")

    def __init__(self) -> None:
        # How many operations are synced, of all there were.
        self._synced_count = 0
        self.synced: dict[str, FileNode | DirectoryNode] = {}
        self.current: dict[str, FileNode | DirectoryNode] = {}
        self.pending: list[tuple[str, str | FileNode | DirectoryNode | None]] = []

    def change(self, name: str, to: str | FileNode | DirectoryNode | None) -> None:
        """Bind a name to a node, rename it, or remove it (None)."""
        self.pending.append((name, to))
        _change(self.current, name, to)

    def begin_sync(self) -> int:
        """The number of operations that a sync covers which begins now."""
        return self._synced_count + len(self.pending)

    def end_sync(self, count: int) -> None:
        """Let the first ``count`` operations survive."""
        newly_synced = max(count - self._synced_count, 0)
        self.synced = self.names(newly_synced)
        del self.pending[:newly_synced]
        self._synced_count += newly_synced

    def names(self, kept: int) -> dict[str, FileNode | DirectoryNode]:
        """The names with the first ``kept`` of the pending operations."""
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
    """The disk after the operations passed to ``apply``; its initial content is synced."""

    def __init__(self, files: Mapping[str, bytes], directories: Iterable[str]) -> None:
        """``files`` by path, numbered as ``RecordingDisk`` numbers them."""
        self.root = DirectoryNode()
        # By number, including removed files: a process may write to an open file.
        self._files: dict[int, FileNode] = {}
        # The syncs that have begun, by the numbers of their operations.
        self._begun: dict[int, tuple[DirectoryNode, int] | tuple[FileNode, FileSync]] = {}
        self._applied = 0
        for path in sorted(directories):
            self._make_directory(path)
        for number, (path, data) in enumerate(files.items()):
            self._make_directory(path.rpartition("/")[0])
            node = self._files[number] = FileNode(data)
            directory, name = self._place(path)
            directory.change(name, node)
        for directory in self.directories():
            directory.end_sync(directory.begin_sync())

    def apply(self, operation: Operation) -> None:
        """Apply a finished operation."""
        kind = operation.kind
        self._applied += 1
        if kind == "sync_begin":
            self._begin(self._applied - 1, operation)
            return
        if kind in ("sync", "sync_lost", "sync_dir"):
            self._end(operation)
            return
        if kind in ("append", "truncate"):
            self._apply_to_file(self._files[operation.file], operation)
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

    def _begin(self, number: int, operation: Operation) -> None:
        if operation.file >= 0:
            file = self._files[operation.file]
            self._begun[number] = file, file.begin_sync()
        else:
            directory = self.directory(operation.path)
            self._begun[number] = directory, directory.begin_sync()

    def _end(self, operation: Operation) -> None:
        if operation.begun not in self._begun:
            self._begin(operation.begun, operation)
        begun = self._begun.pop(operation.begun)
        if isinstance(begun[0], FileNode):
            begun[0].end_sync(begun[1], is_lost=operation.kind == "sync_lost")
        else:
            begun[0].end_sync(begun[1])

    def _apply_to_file(self, node: FileNode, operation: Operation) -> None:
        if operation.kind == "append":
            node.current += operation.data
        else:
            node.truncate(operation.size)

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
        """The state that a process finds after a kill: files by path, None for directories."""
        return self.state(names=lambda node: len(node.pending), content=lambda node: node.current)

    def state(self, *, names: Callable[[DirectoryNode], int], content: Callable[[FileNode], bytes]) -> dict[str, bytes | None]:
        """The state with ``names`` pending operations of each directory, and each file with its ``content``."""
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
