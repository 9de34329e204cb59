"""Finishes or undoes an interrupted swap of compacted segments, before the log is read.

    <base offset>.log.cleaned, ...   unfinished, or not all renamed to ``.swap``: removed, the old segments are there
    <base offset>.log.swap, ...      complete: the segments it covers are removed, then it gets its final names
    <base offset>.index.swap, ...    the .log has its final name: the old segments are removed already

Kafka does the same, and its interrupted swaps are also finished here. A segment's last batch marks its end. Kafka may have
dropped that batch. Then an old segment without retained records is not covered, and stays. odradek keeps an empty batch at the
end.
"""

from contextlib import nullcontext, suppress

from odradek.storage.filesystem import FileSystem
from odradek.storage.log.segment import iter_headers
from odradek.storage.recovery.recovery import Warn

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
_LOG_SWAP = ".log" + SWAP_SUFFIX
_SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
_OFFSET_DIGITS = 20


def finish_swaps(file_system: FileSystem, directory: str, names: set[str], warn: Warn) -> set[str]:
    """Finish or undo swaps. Given the ``names`` in ``directory``, return those left. Raises LogCorrupt, OSError."""
    cleaned = {name for name in names if name.endswith(CLEANED_SUFFIX) and _offset_of(name) is not None}
    swapped = {name for name in names if name.endswith(SWAP_SUFFIX) and _offset_of(name) is not None}
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
    file = file_system.open(path)
    for _, header in iter_headers(file, 0, file_system.size(path)):
        end = header.next_offset
    file.close()
    found = set()
    for name in names:
        _, dot, suffix = name.partition(".")
        offset = _offset_of(name)
        if offset is not None and (offset == first or first < offset < end) and dot + suffix in _SEGMENT_SUFFIXES:
            found.add(name)
    return found


def _offset_of(name: str) -> int | None:
    """Return the base offset in a file's name; None for other names."""
    stem = name.partition(".")[0]
    return int(stem) if len(stem) == _OFFSET_DIGITS and stem.isdecimal() else None


def _offset_in(name: str) -> int:
    return int(name[:_OFFSET_DIGITS])
