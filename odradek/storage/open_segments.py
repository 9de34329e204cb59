"""A bound on the segments whose files are open: in a process with thousands of partitions not each may keep one.

The bound is the process's, as the system's limit on descriptors is. The one that has been open longest goes first; who uses it
opens it again, which costs some microseconds, so that nothing has to be noted when a file is merely used. A file is closed when
the last slice of it has been sent.
"""

from typing import Protocol

MAX_OPEN = 4096


class Openable(Protocol):
    """A segment, as it is seen here."""

    def let_go(self) -> None:
        """Use the file no longer; the next use opens it."""
        ...


class OpenSegments:
    """Which segments have their file open, the longest first. Any thread."""

    __slots__ = ("_segments", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._segments: dict[Openable, None] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def opened(self, segment: Openable) -> None:
        """``segment`` has opened its file; another may have to let go."""
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
        """``segment`` has let go by itself, or must keep its file. Idempotent."""
        self._segments.pop(segment, None)


OPEN_SEGMENTS = OpenSegments(MAX_OPEN)


def fit_limit(descriptors: int) -> None:
    """Leave at least half of the ``descriptors`` that the process may have to connections and to all else."""
    OPEN_SEGMENTS.limit = max(1, min(MAX_OPEN, descriptors // 2))
