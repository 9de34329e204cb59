"""The states of the disk that are checked, around each operation of a workload in turn.

After an operation these states are checked: everything is there (a kill); nothing unsynced is there; only the names; only the
contents. Further states separate the operation from the rest. Its file is lost and everything else is there, or the reverse.
Each unsynced block of its file is zeros, and the others are there. Of its directory's operations a first part of each length is
there, with all contents and without. A file that was renamed without a sync is torn at each of its bytes.

Within an append the file is torn at each byte, and everything else is there. Between two steps of the workload each unsynced
file is lost alone, and is there alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.campaigns.power_loss.model import DirectoryNode, FileNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

    from tests.campaigns.power_loss.disk import Operation
    from tests.campaigns.power_loss.model import DiskModel

# A block with fewer lost bytes than this may look like a damaged batch: recovery then refuses the log.
_TELLING_ZEROS = 18


class Left(NamedTuple):
    """A state of the disk. ``is_kill``: only data not yet handed to the system is lost."""

    what: str
    is_kill: bool
    state: Mapping[str, bytes | None]


def _all_names(directory: DirectoryNode) -> int:
    return len(directory.pending)


def _no_names(directory: DirectoryNode) -> int:
    return 0


def _current(file: FileNode) -> bytes:
    return file.current


def _synced(file: FileNode) -> bytes:
    return file.synced


def within(model: DiskModel, operation: Operation, *, every_bytes: int = 1) -> Iterator[Left]:
    """The states during an append that ``model`` does not contain yet: torn at each byte, or at each ``every_bytes``-th."""
    if operation.kind != "append" or len(operation.data) < 2:
        return
    file = model.file(operation.file)
    # The place does not matter for a file whose name is never read.
    lengths = range(1, len(operation.data), every_bytes) if not operation.path.endswith(".tmp") else (len(operation.data) // 2,)
    for length in lengths:
        torn = file.current + operation.data[:length]
        yield Left(
            "torn", True, model.state(names=_all_names, content=lambda node, torn=torn: torn if node is file else node.current)
        )
    half = file.current + operation.data[: len(operation.data) // 2]
    yield Left(
        "torn, and nothing else", False, model.state(names=_all_names, content=lambda node: half if node is file else node.synced)
    )


def after(model: DiskModel, operation: Operation) -> Iterator[Left]:
    """The states after the operation."""
    yield Left("kill", True, model.state(names=_all_names, content=_current))
    yield from without_unsynced(model)
    yield Left("contents only", False, model.state(names=_no_names, content=_current))
    if operation.file >= 0:
        yield from _of_file(model, model.file(operation.file))
    elif operation.kind == "rename":
        node = _renamed(model, operation)
        if isinstance(node, FileNode) and node.is_dirty:
            yield from _torn(model, node)
    if operation.kind in ("create", "rename", "remove", "make_dir", "remove_dir"):
        yield from _of_directory(model, model.directory(operation.path.rpartition("/")[0]))


def without_unsynced(model: DiskModel) -> Iterator[Left]:
    """The states without any unsynced content."""
    yield Left("nothing that is not synced", False, model.state(names=_no_names, content=_synced))
    yield Left("names only", False, model.state(names=_all_names, content=_synced))


def _renamed(model: DiskModel, operation: Operation) -> FileNode | DirectoryNode:
    directory, _, name = operation.target.rpartition("/")
    return model.directory(directory).current[name]


def _of_file(model: DiskModel, file: FileNode) -> Iterator[Left]:
    if not file.is_dirty:
        return
    yield from _alone(model, file)
    for sector in file.sectors():
        if file.unsynced_bytes_in(sector) < _TELLING_ZEROS:
            continue
        holed = file.without_sectors(lambda number, sector=sector: number == sector)
        yield Left(
            "a block",
            False,
            model.state(names=_all_names, content=lambda node, holed=holed: holed if node is file else node.current),
        )
    if file.cuts is not None:
        untruncated = file.untruncated()
        yield Left(
            "a truncation",
            False,
            model.state(names=_all_names, content=lambda node: untruncated if node is file else node.current),
        )


def _alone(model: DiskModel, file: FileNode) -> Iterator[Left]:
    yield Left(
        "a file lost", False, model.state(names=_all_names, content=lambda node: node.synced if node is file else node.current)
    )
    yield Left(
        "a file kept", False, model.state(names=_all_names, content=lambda node: node.current if node is file else node.synced)
    )


def _torn(model: DiskModel, file: FileNode) -> Iterator[Left]:
    for length in range(len(file.current)):
        torn = file.current[:length]
        yield Left(
            "torn, with its name",
            False,
            model.state(names=_all_names, content=lambda node, torn=torn: torn if node is file else node.current),
        )
    zeros = bytes(len(file.current))
    yield Left(
        "zeros, with its name", False, model.state(names=_all_names, content=lambda node: zeros if node is file else node.current)
    )


def _of_directory(model: DiskModel, directory: DirectoryNode) -> Iterator[Left]:
    for kept in range(len(directory.pending)):
        for content in (_current, _synced):
            yield Left(
                "names of a directory",
                False,
                model.state(names=lambda node, kept=kept: kept if node is directory else len(node.pending), content=content),
            )


def between(model: DiskModel) -> Iterator[Left]:
    """The states between two steps of a workload."""
    for file in list(model.files()):
        if file.is_dirty:
            yield from _of_file(model, file)
    for directory in list(model.directories()):
        if directory.pending:
            yield from _of_directory(model, directory)


def drawn(model: DiskModel, rng: Random) -> Left:
    """A random state: each file and each directory is drawn separately."""
    kept = rng.choice((0.0, 0.3, 0.7, 1.0))

    def names(directory: DirectoryNode) -> int:
        return len(directory.pending) if rng.random() < kept else rng.randint(0, len(directory.pending))

    def content(file: FileNode) -> bytes:
        if not file.is_dirty or rng.random() < kept:
            return file.current
        kind = rng.randrange(4)
        if kind == 0:
            return file.synced
        if kind == 1 and file.cuts is not None:
            return file.untruncated()
        if kind <= 2:
            return file.current[: rng.randint(min(file.unsynced_from, len(file.current)), len(file.current))]
        lost = rng.random()
        return file.without_sectors(lambda sector: file.unsynced_bytes_in(sector) >= _TELLING_ZEROS and rng.random() < lost)

    return Left("by chance", False, model.state(names=names, content=content))
