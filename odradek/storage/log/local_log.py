"""The files of one partition's log: its segments in order, reads from them by offset, and the range of offsets.

Kafka's LocalLog, without its flushes, which are in ``flush_state``. The log start offset and the leader epochs, in UnifiedLog
in Kafka, are here because every part of a log needs them.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from typing import Final

from odradek.protocol.record_batch import HEADER_SIZE, read_header
from odradek.storage.filesystem import File
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment import Segment
from odradek.storage.log.transaction_index import AbortedTransaction
from odradek.storage.recovery.load_checks import LoadRequest
from odradek.storage.recovery.log_loader import LoadedLog

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


class LocalLog:
    """One log on disk, shared by the parts of an odradek.storage.log.log.Log. Loop thread only.

    ``log_start_offset`` is the first offset that may be read; ``log_end_offset`` is the next record's.
    """

    __slots__ = (
        "directory",
        "file_system",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "segments",
        "segments_begun",
        "topic_partition",
        "truncations",
    )

    def __init__(self, request: LoadRequest, loaded: LoadedLog) -> None:
        self.file_system = request.file_system
        self.directory = request.directory
        self.topic_partition = request.topic_partition
        self.segments = LogSegments(loaded.segments)
        self.leader_epochs = loaded.leader_epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        # The number of segments created since the log was opened; those found at opening count as one. Names are synced up to
        # such a count.
        self.segments_begun = 1
        # The number of truncations. Work that another thread began before a truncation is void.
        self.truncations = 0

    def begin_segment(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Create the new active segment. Raises OSError."""
        active = Segment.create(self.file_system, self.directory, base_offset, config, now_ms)
        self.segments.add(active)
        self.segments_begun += 1
        return active

    def replace_all(self, base_offset: int, config: LogConfig, now_ms: int) -> None:
        """Replace all segments by an empty one. Raises OSError."""
        self.segments.reset(Segment.create(self.file_system, self.directory, base_offset, config, now_ms))
        self.segments_begun += 1


# Larger than any count or timestamp, but still a small integer in compiled code.
_NEVER_REACHED: Final = 2**62 - 1


class LogSettings:
    """One log's configuration, shared by its parts. ``use`` replaces it."""

    __slots__ = (
        "config",
        "flush_messages",
        "index_interval_bytes",
        "inspects_all",
        "latest_in_ms",
        "max_message_bytes",
        "max_segment_ms",
        "segment_bytes",
        "stamps_append_time",
    )

    def __init__(self, config: LogConfig) -> None:
        self.use(config)

    def use(self, config: LogConfig) -> None:
        """Set the topic's configuration."""
        self.config = config
        self.segment_bytes = config.segment_bytes
        self.max_segment_ms = config.max_segment_ms
        self.max_message_bytes = config.max_message_bytes
        self.index_interval_bytes = config.index_interval_bytes
        self.flush_messages = min(config.flush_messages, _NEVER_REACHED)
        self.stamps_append_time = config.stamps_append_time
        # The limit on how far a record's timestamp may be ahead of the clock.
        self.latest_in_ms = _NEVER_REACHED if config.stamps_append_time else config.message_timestamp_after_max_ms
        # True if every batch has to be opened (odradek.storage.log.validation).
        limits_age = config.limits_old_timestamps and not config.stamps_append_time
        self.inspects_all = config.is_compacted or limits_age or config.target_codec is not None
