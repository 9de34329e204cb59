"""What the makes have read of one partition, compared line by line: every make reads every line, and the same.

Each make reads on where it has stopped, so that a run may have millions of lines. Digests of all lines remain, and the last
reader, which begins at the first offset, must come to the same.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from tests.campaigns.soak.books import Violation, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.campaigns.soak.readers import Line

LINES_A_DIGEST = 1_000


class Digests:
    """A running checksum over a partition's offsets and values, and what it was after each thousand lines."""

    def __init__(self) -> None:
        self.lines = 0
        # (offset of the last line, checksum); the last one is not of a whole thousand.
        self.marks: list[tuple[int, int]] = [(-1, 0)]

    def add(self, line: Line) -> None:
        checksum = zlib.crc32(line.value, zlib.crc32(line.offset.to_bytes(8), self.marks[-1][1]))
        self.lines += 1
        if self.lines % LINES_A_DIGEST == 1:
            self.marks.append((line.offset, checksum))
        else:
            self.marks[-1] = line.offset, checksum

    def require_same(self, other: Digests, what: str) -> None:
        """Raises Violation that names the first thousand lines that differ."""
        for index, (mine, its) in enumerate(zip(self.marks, other.marks, strict=False)):
            since = self.marks[max(index - 1, 0)][0]
            require(mine == its, f"{what}: behind offset {since}, (last offset, checksum) are {mine} and {its}")
        require(self.lines == other.lines, f"{what}: {self.lines} lines and {other.lines}")


class Tape:
    """The lines of one partition that not all makes have read."""

    def __init__(self, makes: Sequence[str]) -> None:
        self.digests = Digests()
        # Where each make reads on, and up to where any make has read.
        self.positions = dict.fromkeys(makes, 0)
        self._frontier = 0
        self._lines: list[Line] = []
        self._next = dict.fromkeys(makes, 0)

    def take(self, make: str, line: Line) -> bool:
        """A line that ``make`` has read; whether it is the first to read it."""
        index = self._next[make]
        is_first = index == len(self._lines)
        if is_first:
            if line.offset < self._frontier:
                raise Violation(f"{make} reads a line that others did not: {line}")
            self._lines.append(line)
            self.digests.add(line)
        elif self._lines[index] != line:
            raise Violation(f"{make} reads {line}, and others have read {self._lines[index]}")
        self._next[make] = index + 1
        self.positions[make] = line.offset + 1
        return is_first

    def pass_by(self, make: str, end: int) -> None:
        """``make`` has read all that is below ``end``."""
        index = self._next[make]
        if index < len(self._lines) and self._lines[index].offset < end:
            raise Violation(f"{make} does not read a line that others have read: {self._lines[index]}")
        self.positions[make] = max(self.positions[make], end)
        self._frontier = max(self._frontier, self.positions[make])
        done = min(self._next.values())
        del self._lines[:done]
        for each in self._next:
            self._next[each] -= done
