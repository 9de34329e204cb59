"""A limit on the segments with open files, as a process may have thousands of partitions.

The limit is per process, like the system's limit on descriptors. The file opened first is closed first. Its next use opens it
again, which takes some microseconds, so uses need not be tracked. A file in use stays open until its last slice has been sent.
"""

from typing import Protocol

MAX_OPEN = 4096


class Openable(Protocol):
    """A segment, as far as this module knows it."""

    def let_go(self) -> None:
        """Close the file; the next use opens it."""
        ...


class OpenSegments:
    """The segments with an open file, in the order of opening. Any thread."""

    __slots__ = ("_segments", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._segments: dict[Openable, None] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def opened(self, segment: Openable) -> None:
        """Note that ``segment`` has opened its file. Another segment may have to close its own."""
        self._segments[segment] = None
        while len(self._segments) > self.limit:
            try:
                oldest = next(iter(self._segments))
                del self._segments[oldest]
            except (KeyError, RuntimeError, StopIteration):
                # Another thread was faster.
                continue
            oldest.let_go()

    def forget(self, segment: Openable) -> None:
        """Note that ``segment`` has closed its file, or must keep it open. Idempotent."""
        self._segments.pop(segment, None)


OPEN_SEGMENTS = OpenSegments(MAX_OPEN)


def fit_limit(descriptors: int) -> None:
    """Limit the open segments to half of the process's ``descriptors``. The rest is for connections."""
    OPEN_SEGMENTS.limit = max(1, min(MAX_OPEN, descriptors // 2))
