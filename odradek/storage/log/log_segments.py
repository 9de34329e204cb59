"""The segments of one log in order, and reads from them by offset."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from typing import Final

from odradek.protocol.record_batch import HEADER_SIZE, read_header
from odradek.storage.filesystem import File
from odradek.storage.log.segment import Segment
from odradek.storage.log.transaction_index import AbortedTransaction

_MAX_TAIL_POSITIONS: Final = 16


class LogSlice:
    """``length`` bytes of ``file`` from ``position``: batches as stored, the last one perhaps cut. Holds the file open.

    ``len`` returns the number of bytes, so that a response can be encoded before they are read. ``on_error`` is called if reading
    fails.
    """

    __slots__ = ("file", "length", "on_error", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.on_error: Callable[[OSError], object] | None = None

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """Return the bytes. Raises OSError."""
        try:
            return self.file.pread(self.length, self.position)
        except OSError as error:
            if self.on_error is not None:
                self.on_error(error)
            raise

    def first(self, size: int) -> "LogSlice":
        """Return a slice of the first ``size`` bytes."""
        part = LogSlice(self.file, self.position, size)
        part.on_error = self.on_error
        return part

    def without(self, size: int) -> "LogSlice":
        """Return a slice of the rest, after the first ``size`` bytes have been sent."""
        rest = LogSlice(self.file, self.position + size, self.length - size)
        rest.on_error = self.on_error
        return rest


class LogSegments:
    """At least one segment, ascending by base offset. Only the last one, ``active``, grows."""

    __slots__ = ("_base_offsets", "_segments", "_tail_positions", "active")

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        # Positions in the active segment, by the log end offsets at which fetches wait.
        self._tail_positions: dict[int, int] = {}
        self.active = segments[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def first_offset(self) -> int:
        """Return the first segment's base offset, which is at or below the log start offset."""
        return self._base_offsets[0]

    def with_ends(self, end_offset: int) -> Iterator[tuple[Segment, int]]:
        """Yield each segment with its end: the next one's base offset, or ``end_offset``, the log's end."""
        return zip(self._segments, [*self._base_offsets[1:], end_offset], strict=True)

    def add(self, segment: Segment) -> None:
        """Append ``segment``, which becomes the active one."""
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self._tail_positions.clear()
        self.active = segment

    def remove_first(self, count: int) -> list[Segment]:
        """Drop and return the first ``count`` segments, but not all."""
        removed = self._segments[:count]
        del self._segments[:count], self._base_offsets[:count]
        return removed

    def remove_last(self, count: int) -> list[Segment]:
        """Drop and return the last ``count`` segments, but not all. The previous one becomes active."""
        removed = self._segments[-count:]
        del self._segments[-count:], self._base_offsets[-count:]
        self._tail_positions.clear()
        self.active = self._segments[-1]
        return removed

    def reset(self, segment: Segment) -> None:
        """Replace all segments by ``segment``."""
        self._segments[:] = [segment]
        self._base_offsets[:] = [segment.base_offset]
        self._tail_positions.clear()
        self.active = segment

    def forget_tails(self) -> None:
        """Drop the positions of waiting fetches after a truncation."""
        self._tail_positions.clear()

    def has_all(self, segments: Collection[Segment]) -> bool:
        """Return whether all of ``segments`` are among these."""
        return all(segment in self._segments for segment in segments)

    def replace(self, old: Collection[Segment], new: Segment) -> None:
        """Replace ``old``, adjacent inactive segments, by ``new``."""
        first = min(self._segments.index(segment) for segment in old)
        self._segments[first : first + len(old)] = [new]
        self._base_offsets = [segment.base_offset for segment in self._segments]

    def read(self, offset: int, max_bytes: int, upper_offset: int, end_offset: int, *, min_one_batch: bool) -> LogSlice | None:
        """Return the slice for ``Log.read``. ``offset`` < ``upper_offset`` <= ``end_offset``, the log's end."""
        segment = self.active
        first_size = 0
        position = self._tail_positions.get(offset, -1)
        if position < 0:
            found = self._locate(offset)
            if found is None:
                return None
            segment, position, first_size = found
        length = segment.size - position
        if upper_offset < end_offset:
            length = self._end_position(segment, upper_offset) - position
        elif length <= max_bytes and segment is self.active:
            self.remember_tail(end_offset)
        if length > max_bytes:
            if first_size == 0:
                first_size = read_header(segment.file.pread(HEADER_SIZE, position)).size_bytes
            if first_size > max_bytes and not min_one_batch:
                return None
            length = min(length, max(first_size, max_bytes))
        return LogSlice(segment.file, position, length) if length > 0 else None

    def remember_tail(self, end_offset: int) -> None:
        """Note the position for the next fetch after one that has read up to ``end_offset``, to spare it a look-up."""
        if len(self._tail_positions) >= _MAX_TAIL_POSITIONS:
            self._tail_positions.clear()
        self._tail_positions[end_offset] = self.active.size

    def has_aborted_from(self, offset: int) -> bool:
        """Return whether any abort marker lies at or after ``offset``."""
        for segment in reversed(self._segments):
            index = segment.transaction_index
            if index is not None and index.last_offset >= 0:
                return index.last_offset >= offset
        return False

    def aborted_transactions(self, fetch_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records from ``fetch_offset`` up to ``end_offset``. Raises OSError."""
        found: list[AbortedTransaction] = []
        for segment in self._from(fetch_offset):
            if segment.transaction_index is not None:
                more, is_all = segment.transaction_index.collect(fetch_offset, end_offset)
                found += more
                if is_all:
                    break
        return found

    def end_offset_of(self, found: LogSlice, offset: int, upper_offset: int) -> int:
        """Return an offset beyond all records in ``found``, read at ``offset``; at most ``upper_offset``. Raises OSError."""
        held = self._from(offset)
        for number, segment in enumerate(held):
            if segment.file is found.file:
                entry = segment.offset_index.first_from_position(found.position + found.length)
                if entry is not None:
                    return min(entry[0], upper_offset)
                return min(held[number + 1].base_offset, upper_offset) if number + 1 < len(held) else upper_offset
        return upper_offset

    def _from(self, offset: int) -> list[Segment]:
        """Return the segment with ``offset``, and the later ones."""
        return self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0) :]

    def _locate(self, offset: int) -> tuple[Segment, int, int] | None:
        """Return the segment with ``offset``, or the next one after a gap, and the batch's position and size in it."""
        for segment in self._from(offset):
            found = segment.find(offset)
            if found is not None:
                return segment, *found
        return None

    def _end_position(self, segment: Segment, upper_offset: int) -> int:
        """Return the position in ``segment`` after its last offset below ``upper_offset``."""
        located = self._locate(upper_offset)
        if located is None or located[0] is not segment:
            return segment.size
        return located[1]
