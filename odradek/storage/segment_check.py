"""Checking a segment that a start does not recover, by its last batches and the last entries of its indexes.

After a clean stop, and below the recovery point, a start does not read a log. But the last batch of a segment must end where the
file ends, and indexes must describe that file: they do not if a file was cut, emptied, or replaced by another segment's. Read are
the batches behind the last entry of the offset index, ``index.interval.bytes`` of them.

Left out: batches in front of these. A reader finds damage there by the CRC.
"""

from typing import NamedTuple

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, BatchHeader, read_header
from odradek.storage.batch_scan import iter_headers
from odradek.storage.errors import LogCorrupt
from odradek.storage.segment import Segment


class SegmentEnd(NamedTuple):
    """``next_offset`` follows the ``last`` batch, which an empty segment does not have.

    ``misfit`` tells why the indexes are not those of the .log, and must be rebuilt; if they are, it is empty.
    """

    next_offset: int
    last: BatchHeader | None = None
    misfit: str = ""


def check_end(segment: Segment) -> SegmentEnd:
    """The end of ``segment``, whose indexes are on disk. Raises LogCorrupt if no batch ends there, OSError."""
    if not segment.size:
        has_entries = segment.offset_index.entry_count or segment.time_index.entry_count
        return SegmentEnd(segment.base_offset, None, "it is empty, and its indexes are not" if has_entries else "")
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
    """Why the time index's first entry, which the first append writes, is not of this .log; else empty. Raises OSError."""
    timestamp, offset = segment.time_index.first()
    # Kafka fills new indexes with zeros.
    if timestamp <= 0 or not segment.size:
        return ""
    try:
        for _, header in iter_headers(segment.file, 0, segment.size, HEADER_SIZE):
            if header.last_offset >= offset:
                return "" if header.max_timestamp == timestamp else _misnamed(timestamp, offset)
    except LogCorrupt:
        # Recovery finds out what is wrong there.
        return ""
    return _misnamed(timestamp, offset)


def last_entries_misfit(segment: Segment) -> str:
    """Why the last entry of either index is not of this .log; else empty. Raises OSError."""
    position = segment.offset_index.last_position()
    if position and not _begins_batch(segment, position):
        return f"no batch with offset {segment.offset_index.last_offset()} at {position}"
    timestamp, offset = segment.time_index.last()
    if timestamp < 0:
        return ""
    try:
        found = segment.find(offset)
    except (LogCorrupt, MalformedMessage):
        # The records from the last entry of the offset index on are read by recovery.
        return ""
    header = None if found is None else read_header(segment.file.pread(HEADER_SIZE, found[0]))
    return "" if header is not None and header.max_timestamp == timestamp else _misnamed(timestamp, offset)


def _misnamed(timestamp: int, offset: int) -> str:
    return f"its time index has {timestamp} for offset {offset}, and the .log has not"


def _begins_batch(segment: Segment, position: int) -> bool:
    """Whether the batch of the offset index's last entry is at ``position``."""
    try:
        header = read_header(segment.file.pread(HEADER_SIZE, position))
    except MalformedMessage:
        return False
    return header.last_offset == segment.offset_index.last_offset()


def _timestamp_misfit(segment: Segment, headers: list[BatchHeader]) -> str:
    """Why the time index cannot be that of a segment that ends with ``headers``."""
    # Which reads the last entry of the time index.
    timestamp, offset = segment.learn_max_timestamp(), segment.offset_of_max_timestamp
    # The cleaner leaves headers without records, whose timestamps do not count.
    latest = max((header.max_timestamp for header in headers if header.record_count), default=-1)
    if latest > timestamp:
        return f"its time index ends with {timestamp}, and it has a record of {latest}"
    if timestamp < 0:
        return ""
    named = next((header for header in headers if header.last_offset >= offset), None)
    if offset < headers[0].base_offset:
        found = segment.find(offset)
        named = None if found is None else read_header(segment.file.pread(HEADER_SIZE, found[0]))
    if named is None or named.max_timestamp != timestamp:
        return _misnamed(timestamp, offset)
    return ""
