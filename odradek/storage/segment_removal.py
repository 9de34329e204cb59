"""Letting go of segments: their files are renamed to ``<name>.deleted`` at once, and removed ``file.delete.delay.ms`` later.

Who reads in such a file goes on doing so, having it open. Nothing that is named ``.deleted`` is ever part of a log: the next
start removes what a stop has left of it, and with it the indexes of a segment whose .log was renamed when the broker was killed;
so the .log is renamed first.

Power loss may undo some renames and not others. Segments that leave a hole behind are therefore renamed only once the log start
offset above them is on disk; where that cannot be written (a full disk), one by one, the oldest first, each for good.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise

from odradek.storage.filesystem import FileSystem
from odradek.storage.segment import Segment, segment_path

DELETED_SUFFIX = ".deleted"
LOG_SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
_OFFSET_DIGITS = 20


class SegmentRemoval:
    """What becomes of removed segments' files: ``remove_later`` is given them and the delay in ms.

    Without it they stay until the next start.
    """

    __slots__ = ("_file_system", "remove_later")

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self.remove_later: Callable[[list[str], int], None] | None = None

    def set_aside(self, directory: str, segments: Iterable[Segment], *, delay_ms: int, one_by_one: bool = False) -> None:
        """Rename the files of ``segments``, which ascend, and which their log in ``directory`` does not have any more.

        ``one_by_one`` syncs the directory after each. Loop thread only. Raises OSError.
        """
        renamed: list[str] = []
        try:
            for segment in segments:
                # Or its disk space would be held for as long as there are few enough open files.
                segment.release_file()
                for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
                    path = segment_path(directory, segment.base_offset, suffix)
                    if self._file_system.exists(path):
                        self._file_system.rename(path, path + DELETED_SUFFIX)
                        renamed.append(path + DELETED_SUFFIX)
                if one_by_one:
                    self._file_system.sync_dir(directory)
        finally:
            if self.remove_later is not None:
                self.remove_later(renamed, delay_ms)

    def remove_files(self, paths: Iterable[str]) -> None:
        """Remove what was set aside, in any thread. What is not there went with its log's directory. Raises OSError."""
        for path in paths:
            with suppress(FileNotFoundError):
                self._file_system.remove(path)


def remove_leftovers(file_system: FileSystem, directory: str, names: set[str], log_start_offset: int) -> set[str]:
    """At a start, remove what was on its way out; of the ``names`` in ``directory``, those that are still there.

    Gone are then files named ``.deleted``, segments that end below ``log_start_offset``, the last one never, and indexes without
    a .log. Raises OSError.
    """
    stems = sorted(stem for name in names if name.endswith(LOG_SUFFIX) and (stem := _stem(name)) is not None)
    passed = {stem for stem, end in pairwise(stems) if int(end) <= log_start_offset}
    kept = {None, *stems} - passed
    doomed = {name for name in names if name.endswith(DELETED_SUFFIX) or _stem(name) not in kept}
    # The .log files first: without them the rest is known for what it is.
    for name in sorted(doomed, key=lambda name: (LOG_SUFFIX not in name, name)):
        file_system.remove(f"{directory}/{name}")
    return names - doomed


def _stem(name: str) -> str | None:
    """The digits that a segment's file is named by; None for any other name."""
    stem, dot, suffix = name.partition(".")
    is_segment = dot + suffix in (LOG_SUFFIX, *INDEX_SUFFIXES) and len(stem) == _OFFSET_DIGITS and stem.isdecimal()
    return stem if is_segment else None
