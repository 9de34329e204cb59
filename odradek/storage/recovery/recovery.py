"""Recovery of a segment after an unclean stop: everything past the recovery point is read and checked.

Batches are checked by length, offset and CRC, and the indexes and leader epochs are rebuilt. A message of format v0 or v1 counts
as a batch. The first bad batch is one of three things:

- a torn tail: an append that was under way. Nothing valid follows it, and it was never acknowledged.
- unsynced data after a power loss: the file ends too early, or one of its blocks was never written and reads as zeros, while
  later blocks and later segments may exist. Records that were acknowledged without a sync are lost.
- damage: a complete but wrong batch that is followed by a valid one, in this segment or a later one; a batch with a valid CRC but
  the wrong offset; a complete batch of an unknown magic in the place of a batch; or anything wrong before the recovery point.
  Cutting would lose valid records, so the log stays as it is, and LogCorrupt is raised.

In the first two cases, the log is cut there, with a warning that gives the number of bytes. Kafka cuts in all three, and fetches
the lost records from another replica, which a single broker does not have.

After a clean stop, and below the recovery point, a start does not read the log (``check_end``). But a segment's last batch must
end where the file ends, and the indexes must describe that file. They do not if a file was cut, emptied, or replaced by another
segment's. Only the batches after the last entry of the offset index are read, ``index.interval.bytes`` of them.

Left out: a check of earlier batches. Readers find damage there by the CRC.
"""

import re
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, Protocol

from odradek.protocol.compression import NONE
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader, ensure_intact, read_header
from odradek.storage.errors import LogCorrupt, unknown_format
from odradek.storage.filesystem import File
from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment import MAX_RELATIVE_OFFSET, Segment, iter_headers


class SegmentEnd(NamedTuple):
    """The end of a segment. ``next_offset`` follows the ``last`` batch, which an empty segment does not have.

    ``misfit`` tells why the indexes do not belong to the .log and must be rebuilt. It is empty if they fit.
    """

    next_offset: int
    last: BatchHeader | None = None
    misfit: str = ""


def check_end(segment: Segment) -> SegmentEnd:
    """Return the end of ``segment``, whose indexes are on disk. Raises LogCorrupt if no batch ends there, OSError."""
    if not segment.size:
        has_entries = segment.offset_index.entry_count or segment.time_index.entry_count
        return SegmentEnd(segment.base_offset, None, "it is empty, but its indexes are not" if has_entries else "")
    offset, position = segment.offset_index.last()
    misplaced = SegmentEnd(segment.base_offset, None, f"no batch with offset {offset} at {position}")
    if position >= segment.size:
        return misplaced
    try:
        headers = [header for _, header in iter_headers(segment.file, position, segment.size)]
    except LogCorrupt as error:
        if position and not _begins_batch(segment, position):
            return misplaced
        raise LogCorrupt(f"{segment.path}, {error.reason}") from error
    if position and headers[0].last_offset != offset:
        return misplaced
    last = headers[-1]
    return SegmentEnd(last.next_offset, last, _timestamp_misfit(segment, headers))


def first_timestamp_misfit(segment: Segment) -> str:
    """Check the time index's first entry against the .log. Return the difference, or "". Raises OSError."""
    timestamp, offset = segment.time_index.first()
    # Kafka fills new indexes with zeros.
    if timestamp <= 0 or not segment.size:
        return ""
    try:
        for _, header in iter_headers(segment.file, 0, segment.size, HEADER_SIZE):
            if header.last_offset >= offset:
                return "" if header.max_timestamp == timestamp else _misnamed(timestamp, offset)
    except LogCorrupt:
        # Recovery will find the problem.
        return ""
    return _misnamed(timestamp, offset)


def last_entries_misfit(segment: Segment) -> str:
    """Check the last entry of both indexes against the .log. Return the difference, or "". Raises OSError."""
    offset, position = segment.offset_index.last()
    if position and not _begins_batch(segment, position):
        return f"no batch with offset {offset} at {position}"
    timestamp, offset = segment.time_index.last()
    if timestamp < 0:
        return ""
    try:
        found = segment.find(offset)
    except (LogCorrupt, MalformedMessage):
        # Recovery reads the records from the last entry of the offset index on.
        return ""
    header = None if found is None else read_header(segment.file.pread(HEADER_SIZE, found[0]))
    return "" if header is not None and header.max_timestamp == timestamp else _misnamed(timestamp, offset)


def _misnamed(timestamp: int, offset: int) -> str:
    return f"its time index has {timestamp} for offset {offset}, but the .log does not"


def _begins_batch(segment: Segment, position: int) -> bool:
    """Return whether the batch of the offset index's last entry is at ``position``."""
    try:
        header = read_header(segment.file.pread(HEADER_SIZE, position))
    except MalformedMessage:
        return False
    return header.last_offset == segment.offset_index.last()[0]


def _timestamp_misfit(segment: Segment, headers: list[BatchHeader]) -> str:
    """Check the time index against a segment that ends with ``headers``. Return the difference, or ""."""
    # This reads the last entry of the time index.
    timestamp, offset = segment.learn_max_timestamp(), segment.offset_of_max_timestamp
    # The cleaner leaves headers without records, whose timestamps do not count.
    latest = max((header.max_timestamp for header in headers if header.record_count), default=-1)
    if latest > timestamp:
        return f"its time index ends with {timestamp}, but it has a record with {latest}"
    if timestamp < 0:
        return ""
    named = next((header for header in headers if header.last_offset >= offset), None)
    if offset < headers[0].base_offset:
        found = segment.find(offset)
        named = None if found is None else read_header(segment.file.pread(HEADER_SIZE, found[0]))
    if named is None or named.max_timestamp != timestamp:
        return _misnamed(timestamp, offset)
    return ""


_CHUNK_BYTES = 1024 * 1024
# Offset, size, CRC and magic of a message; and the smallest message, of format v0.
_UP_TO_MAGIC_BYTES = 17
_LEAST_BYTES = LOG_OVERHEAD + 14
_OFFSET_AND_LENGTH = Struct(">qi")
_LENGTH_POSITION = 8
# The unit of a disk's writes. Then the number of zeros before its end that cannot be a batch's own: no header has that many in a
# row, and only the header of offset 0 begins with as many as the third number.
_SECTOR_BYTES = 512
_TELLING_ZEROS = 18
_TELLING_FIRST_ZEROS = 8


class Warn(Protocol):
    """Takes warnings as the broker's log does: an event and its fields."""

    def __call__(self, event: str, **fields: object) -> object:
        """Report that ``event`` happened."""
        ...


class _BadBatch(Exception):
    """No sound batch with ``offset`` begins at ``position``. ``is_intact``: a batch with a valid CRC does."""

    def __init__(self, position: int, offset: int, reason: str, *, is_intact: bool = False) -> None:
        super().__init__(reason)
        self.position = position
        self.offset = offset
        self.reason = reason
        self.is_intact = is_intact


def recover_segment(
    segment: Segment,
    recovery_point: int,
    config: LogConfig,
    epochs: LeaderEpochs,
    *,
    synced_offset: int,
    is_last: bool,
    may_have_gaps: bool,
    warn: Warn,
) -> int:
    """Check and index ``segment`` past ``recovery_point``, cut a torn tail off, and return the offset after its end.

    ``synced_offset`` is the recovery point even if the indexes are useless and everything must be read. ``is_last``: no later
    segment has data. ``may_have_gaps``: the segment may have been compacted. Raises LogCorrupt for damage.
    """
    start, next_offset = _resume_point(segment, recovery_point, warn)
    end = segment.size
    try:
        for position, header in _checked_batches(segment, start, next_offset, recovery_point, may_have_gaps=may_have_gaps):
            next_offset = header.next_offset
            if not position:
                segment.note_first(header.max_timestamp, next_offset - 1)
            segment.note_batch(position, header.size_bytes, next_offset - 1, header.max_timestamp, config.index_interval_bytes)
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
    except _BadBatch as bad:
        if bad.offset < synced_offset or not _may_be_cut(segment.file, bad, end, is_last=is_last):
            raise LogCorrupt(f"{segment.path}, position {bad.position}, offset {bad.offset}: {bad.reason}") from bad
        segment.truncate(bad.position)
        # After another power loss new records must not be followed by the bytes that were cut.
        segment.file.sync()
        warn(
            "torn tail truncated",
            segment=segment.path,
            truncated_bytes=end - bad.position,
            next_offset=bad.offset,
            reason=bad.reason,
        )
    segment.close_indexes()
    return next_offset


def _resume_point(segment: Segment, recovery_point: int, warn: Warn) -> tuple[int, int]:
    """Cut the indexes to offsets below ``recovery_point``. Return position and offset to read from."""
    # Entries of a segment that begins at the recovery point were never synced. A power loss may have left a part of them.
    misfit = first_timestamp_misfit(segment) if segment.base_offset < recovery_point else ""
    for index in (segment.offset_index, segment.time_index):
        index.keep_entries(index.entries_below(recovery_point))
    misfit = misfit or last_entries_misfit(segment)
    if misfit:
        warn("indexes do not match their segment, rebuilding them", segment=segment.path, reason=misfit)
    _, position = segment.offset_index.last()
    if position == 0 or misfit:
        segment.offset_index.keep_entries(0)
        segment.time_index.keep_entries(0)
        segment.resume()
        return 0, segment.base_offset
    header = read_header(segment.file.pread(HEADER_SIZE, position))
    segment.resume()
    segment.learn_timestamps_up_to(position)
    return position, header.base_offset


def _checked_batches(
    segment: Segment, position: int, next_offset: int, recovery_point: int, *, may_have_gaps: bool
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch up to the segment's end. Raises _BadBatch at a wrong one; LogCorrupt.

    Compaction leaves gaps between offsets.
    """
    file, end = segment.file, segment.size
    chunk, chunk_start = b"", position
    while position < end:
        if position + HEADER_SIZE > chunk_start + len(chunk):
            chunk, chunk_start = file.pread(min(_CHUNK_BYTES, end - position), position), position
        try:
            header = read_header(chunk, position - chunk_start)
        except MalformedMessage as error:
            raise _BadBatch(position, next_offset, error.reason) from error
        size = header.size_bytes
        if position + size > end:
            raise _BadBatch(position, next_offset, f"a record batch has {size} bytes, but {end - position} are left")
        if not 0 <= header.magic <= MAGIC and 0 <= header.base_offset - next_offset <= MAX_RELATIVE_OFFSET:
            raise unknown_format(f"{segment.path}, position {position}, offset {next_offset}", header.magic)
        misfit = _offset_misfit(header, next_offset, segment, may_have_gaps=may_have_gaps)
        if misfit or header.next_offset > recovery_point:
            if position + size > chunk_start + len(chunk):
                chunk, chunk_start = file.pread(min(max(size, _CHUNK_BYTES), end - position), position), position
            try:
                ensure_intact(header, chunk, position - chunk_start)
            except KafkaError as error:
                raise _BadBatch(position, next_offset, misfit or error.reason) from error
        if misfit:
            raise _BadBatch(position, next_offset, misfit, is_intact=True)
        yield position, header
        position += size
        next_offset = header.next_offset


def _offset_misfit(header: BatchHeader, next_offset: int, segment: Segment, *, may_have_gaps: bool) -> str:
    """Return why a batch cannot be the next one, or ""."""
    base_offset = header.base_offset
    may_begin_later = may_have_gaps or _is_wrapper(header)
    if base_offset < next_offset or (base_offset > next_offset and not may_begin_later) or header.last_offset_delta < 0:
        return f"a record batch begins at offset {base_offset}"
    if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return f"offset {header.last_offset} is outside the segment's range"
    return ""


def _may_be_cut(file: File, bad: _BadBatch, end: int, *, is_last: bool) -> bool:
    """Return whether ``bad`` is a torn tail or the result of a power loss, and not damage."""
    if _is_unwritten(file, bad, end):
        return True
    return not bad.is_intact and (is_last or _is_cut(file, bad, end)) and not _is_followed(file, bad, end)


def _is_cut(file: File, bad: _BadBatch, end: int) -> bool:
    """Return whether the file ends within ``bad``. A batch whose length alone is wrong does not count."""
    batch = bytearray(file.pread(end - bad.position, bad.position))
    try:
        read_header(batch)
    except MalformedMessage:
        return len(batch) < HEADER_SIZE
    if _next_offset_if_cut(file, bad, end) is None:
        return False
    batch[_LENGTH_POSITION : _LENGTH_POSITION + 4] = (len(batch) - LOG_OVERHEAD).to_bytes(4, "big")
    try:
        ensure_intact(read_header(batch), batch)
    except (KafkaError, MalformedMessage):
        return True
    return False


def _is_unwritten(file: File, bad: _BadBatch, end: int) -> bool:
    """Return whether a part of ``bad`` is in an unwritten block: zeros up to the end of a sector or of the file.

    If the CRC is valid, that part can only be the beginning, which no CRC covers.
    """
    start = bad.position
    try:
        size = max(read_header(file.pread(HEADER_SIZE, start)).size_bytes, 1)
    except MalformedMessage:
        size = HEADER_SIZE
    # A length beyond the end of the file is useless: the zeros would be in front of it.
    batch_end = start + size if start + size <= end else min(start + HEADER_SIZE, end)
    last = min(-(-batch_end // _SECTOR_BYTES) * _SECTOR_BYTES, end)
    data = file.pread(last - start, start)
    boundaries = [*range(_SECTOR_BYTES - start % _SECTOR_BYTES, last - start, _SECTOR_BYTES), last - start]
    for boundary in boundaries:
        first = len(data[:boundary].rstrip(b"\0"))
        zeros = boundary - first
        is_telling = zeros >= _TELLING_ZEROS and not bad.is_intact
        if first + start < batch_end and (is_telling or (not first and zeros >= _TELLING_FIRST_ZEROS)):
            return True
    return False


def _is_followed(file: File, bad: _BadBatch, end: int) -> bool:
    """Return whether a valid batch of this log lies anywhere after ``bad``.

    A batch of which only the beginning was written may contain anything, including complete batches of another log. Its header is
    complete, so the next offset is known. Only a batch with exactly that offset counts.
    """
    exactly = _next_offset_if_cut(file, bad, end)
    first = bad.offset + 1 if exactly is None else exactly
    last = bad.offset + MAX_RELATIVE_OFFSET
    looks_like_one = _pattern(first, last)
    start = bad.position + 1
    while start + _LEAST_BYTES <= end:
        window = file.pread(min(_CHUNK_BYTES + _UP_TO_MAGIC_BYTES, end - start), start)
        for found in looks_like_one.finditer(window):
            base_offset, batch_length = _OFFSET_AND_LENGTH.unpack_from(window, found.start())
            size = batch_length + LOG_OVERHEAD
            if first <= base_offset <= last and _is_whole(file, start + found.start(), size, end, exactly):
                return True
        start += _CHUNK_BYTES
    return False


def _pattern(first_offset: int, last_offset: int) -> "re.Pattern[bytes]":
    """Return a pattern for the start of a batch, in any format, with an offset in this range of less than 2^32."""
    prefixes = {re.escape((offset >> 32).to_bytes(4, "big")) for offset in (first_offset, last_offset)}
    # The offset's lower half, the length, which is neither 0 nor negative, the CRC or the leader epoch, and the magic.
    return re.compile(b"(?s)(?=(?:" + b"|".join(prefixes) + rb").{4}(?!\0{4})[\0-\x7f].{7}[\0-\2])")


def _next_offset_if_cut(file: File, bad: _BadBatch, end: int) -> int | None:
    """Return the offset after a batch whose header is complete and says that the file ends within it."""
    try:
        header = read_header(file.pread(HEADER_SIZE, bad.position))
    except MalformedMessage:
        return None
    if bad.position + header.size_bytes <= end:
        return None
    return header.next_offset if header.base_offset == bad.offset or _is_wrapper(header) else None


def _is_whole(file: File, position: int, size: int, end: int, base_offset: int | None) -> bool:
    """Return whether there is a valid batch, which must have ``base_offset`` if given."""
    if size < _LEAST_BYTES or position + size > end:
        return False
    batch = file.pread(size, position)
    try:
        header = read_header(batch)
        ensure_intact(header, batch)
    except (KafkaError, MalformedMessage):
        return False
    return base_offset in (None, header.base_offset) or _is_wrapper(header)


def _is_wrapper(header: BatchHeader) -> bool:
    """Return True for a compressed message of format v0 or v1. Its first offset is known only once it is opened."""
    return header.magic != MAGIC and header.compression != NONE
