"""Segment files with a second suffix: ``.deleted`` ones of removed segments, ``.cleaned`` and ``.swap`` ones of compacted.

Removal of segments: their files are renamed to ``<name>.deleted`` at once, and removed ``file.delete.delay.ms`` later.

Readers with such a file open continue to read it. A file named ``.deleted`` is not part of a log, and the next start removes
it. The .log is renamed before the indexes, as a start also removes indexes without a .log.

A power loss may undo some renames but not others, which would leave a hole. So segments are renamed only after the log start
offset above them is on disk. If that cannot be written (a full disk), they are renamed one by one, the oldest first, each
rename synced. The names of their .log files then stay until the log start offset is written.

``finish_swaps`` finishes or undoes an interrupted swap of compacted segments, before the log is read.

    <base offset>.log.cleaned, ...   unfinished, or not all renamed to ``.swap``: removed, the old segments are there
    <base offset>.log.swap, ...      complete: the segments it covers are removed, then it gets its final names
    <base offset>.index.swap, ...    the .log has its final name: the old segments are removed already

Kafka does the same, and its interrupted swaps are also finished here. A segment's last batch marks its end. Kafka may have
dropped that batch. Then an old segment without retained records is not covered, and stays. odradek keeps an empty batch at the
end.
"""

from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext, suppress
from itertools import pairwise

from odradek.storage.filesystem import FileSystem
from odradek.storage.log.segment import SEGMENT_SUFFIXES, Segment, iter_headers, offset_of, offsets_of, segment_path
from odradek.storage.recovery.recovery import Warn

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
_LOG_SWAP = ".log" + SWAP_SUFFIX


def finish_swaps(file_system: FileSystem, directory: str, names: set[str], warn: Warn) -> set[str]:
    """Finish or undo swaps. Given the ``names`` in ``directory``, return those left. Raises LogCorrupt, OSError."""
    cleaned = {name for name in names if name.endswith(CLEANED_SUFFIX) and offset_of(name) is not None}
    swapped = {name for name in names if name.endswith(SWAP_SUFFIX) and offset_of(name) is not None}
    if not cleaned and not swapped:
        return names
    first_cleaned = min((_offset_in(name) for name in cleaned), default=None)
    undone = {name for name in swapped if first_cleaned is not None and _offset_in(name) >= first_cleaned}
    finished = swapped - undone
    # The .swap names must be on disk before anything is replaced.
    file_system.sync_dir(directory)
    replaced = {name for swap in finished if swap.endswith(_LOG_SWAP) for name in _covered(file_system, directory, swap, names)}
    if finished:
        warn("interrupted compaction finished", directory=directory, segments=sorted(finished), removed=sorted(replaced))
    # Each .log last, so that after a crash in between the rest is still recognized.
    for name in sorted(undone | cleaned | replaced, key=lambda name: (".log" in name, name)):
        # An abandoned clean of a deleted topic's log may remove its own files while the successor log opens.
        with suppress(FileNotFoundError) if name in cleaned else nullcontext():
            file_system.remove(f"{directory}/{name}")
    renamed = {}
    for name in sorted(finished, key=lambda name: (not name.endswith(_LOG_SWAP), name)):
        renamed[name] = name.removesuffix(SWAP_SUFFIX)
        file_system.rename(f"{directory}/{name}", f"{directory}/{renamed[name]}")
    file_system.sync_dir(directory)
    return (names - undone - cleaned - replaced - finished).union(renamed.values())


def _covered(file_system: FileSystem, directory: str, swap: str, names: set[str]) -> set[str]:
    """Return the files of the segments that ``swap``, a .log.swap, replaces."""
    first = end = _offset_in(swap)
    path = f"{directory}/{swap}"
    with closing(file_system.open(path)) as file:
        for _, header in iter_headers(file, 0, file_system.size(path)):
            end = header.next_offset
    found = set()
    for name in names:
        offset = _segment_of(name)
        if offset is not None and (offset == first or first < offset < end):
            found.add(name)
    return found


def _offset_in(name: str) -> int:
    return int(name.partition(".")[0])


DELETED_SUFFIX = ".deleted"
LOG_SUFFIX = ".log"
TIME_INDEX_SUFFIX = ".timeindex"


class SegmentRemoval:
    """Renames the files of removed segments, and calls ``remove_later`` with their paths and the delay in ms.

    Without ``remove_later`` the files stay until the next start.
    """

    __slots__ = ("_file_system", "remove_later")

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self.remove_later: Callable[[list[str], int], None] | None = None

    def set_aside(
        self, directory: str, segments: Iterable[Segment], *, delay_ms: int, one_by_one: bool = False, swapped_in: int = -1
    ) -> None:
        """Rename the files of ``segments``, in this order. They are no longer part of their log in ``directory``.

        ``swapped_in`` is the base offset of a segment named ``.swap``, which stays. ``one_by_one`` syncs the directory after each
        segment. Loop thread only. Raises OSError.
        """
        renamed: list[str] = []
        try:
            for segment in segments:
                # An open file would keep its disk space.
                segment.release_file()
                for suffix in SEGMENT_SUFFIXES:
                    path = segment_path(directory, segment.base_offset, suffix)
                    # A failed disk may have left the segment under its ``.swap`` name.
                    for name in (path, path + SWAP_SUFFIX):
                        if (name == path or segment.base_offset != swapped_in) and self._file_system.exists(name):
                            self._file_system.rename(name, path + DELETED_SUFFIX)
                            renamed.append(path + DELETED_SUFFIX)
                if one_by_one:
                    self._file_system.sync_dir(directory)
        finally:
            if self.remove_later is not None:
                self.remove_later(renamed, delay_ms)

    def remove_files(self, paths: Iterable[str]) -> None:
        """Remove renamed files. Any thread. A missing file was removed with its log's directory. Raises OSError."""
        for path in paths:
            with suppress(FileNotFoundError):
                self._file_system.remove(path)

    def keep_names(self, paths: Iterable[str]) -> None:
        """Free the space of renamed files, but keep the name of each .log: it shows that the segment was removed, not lost.

        A time index replaces its .log: a full disk has no room for a new file, and a reader may still have the .log open. Any
        thread. Raises OSError.
        """
        for path in paths:
            name = path.removesuffix(LOG_SUFFIX + DELETED_SUFFIX)
            with suppress(FileNotFoundError):
                if name != path:
                    self._file_system.rename(name + TIME_INDEX_SUFFIX + DELETED_SUFFIX, path)
                elif not path.endswith(TIME_INDEX_SUFFIX + DELETED_SUFFIX):
                    self._file_system.remove(path)


def remove_leftovers(file_system: FileSystem, directory: str, names: set[str], log_start_offset: int) -> set[str]:
    """Finish interrupted removals at a start. Return the ``names`` in ``directory`` that are left.

    Removes files named ``.deleted``, indexes without a .log, and segments that end at or below ``log_start_offset``, except the
    last. Raises OSError.
    """
    offsets = offsets_of(names, LOG_SUFFIX)
    passed = {offset for offset, end in pairwise(offsets) if end <= log_start_offset}
    kept = {None, *offsets} - passed
    doomed = {name for name in names if name.endswith(DELETED_SUFFIX) or _segment_of(name) not in kept}
    # The .log files first: after a crash in between, indexes without a .log are removed by the next start.
    for name in sorted(doomed, key=lambda name: (LOG_SUFFIX not in name, name)):
        file_system.remove(f"{directory}/{name}")
    return names - doomed


def _segment_of(name: str) -> int | None:
    """Return the base offset in the name of a segment's file; None for any other name."""
    _, dot, suffix = name.partition(".")
    return offset_of(name) if dot + suffix in SEGMENT_SUFFIXES else None
