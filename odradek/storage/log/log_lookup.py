"""Finds records by their timestamps, by scanning batches.

No record objects are built. A look-up that takes long raises ``LongLookup``, which the caller runs off the event loop.

A batch with unreadable records is skipped.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, NoReturn

from odradek.protocol.compression import DEFAULT_LIMIT_BYTES, TooMuchData, decompressed_view
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.legacy_records import read_legacy_records
from odradek.protocol.record_batch import HEADER_SIZE, MAGIC, BatchHeader
from odradek.protocol.record_walk import RecordWalk
from odradek.storage.log.segment import Segment, iter_headers

# The most records scanned at once: a millisecond of work. A header may claim a timestamp that no record has.
_SHORT_RECORDS: Final = 1_000
_SHORT_BYTES: Final = 1024 * 1024
_MOST_OPENED: Final = 8
_RECORDS_AT_ONCE: Final = 2_000
# A message in a wrapper of format v0 or v1: offset, size, CRC, magic, attributes, two lengths.
_LEAST_MESSAGE_BYTES: Final = 26


class TimestampOffset(NamedTuple):
    """A record's timestamp in ms, its offset, and the leader epoch of its batch (-1 if it has none)."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: Iterable[Segment], timestamp: int, start_offset: int) -> TimestampOffset | None:
    """Return the first record at or after ``start_offset`` that is not older than ``timestamp``.

    A segment without timestamps, such as one in format v0, counts as of its file's time. If that is not older, nothing is found,
    as in Kafka. Raises LongLookup, LogCorrupt, OSError.
    """
    opened = 0
    for segment in segments:
        if segment.largest_timestamp() < timestamp:
            continue
        if segment.max_timestamp < 0 <= timestamp:
            return None
        near = segment.time_index.offset_before(timestamp)
        position = segment.offset_index.position_before(max(near, start_offset))
        for place, header in iter_headers(segment.file, position, segment.size):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            opened += 1
            found = _find_record(segment, place, header, timestamp, start_offset, at_once=opened <= _MOST_OPENED)
            if found is not None:
                return found
    return None


def first_with_max_timestamp(segments: Iterable[Segment]) -> TimestampOffset | None:
    """Return the first record with the largest timestamp (KIP-734). Raises LongLookup, LogCorrupt, OSError."""
    youngest = max(segments, key=Segment.learn_max_timestamp)
    timestamp = youngest.max_timestamp
    if timestamp < 0:
        return None
    position = youngest.offset_index.position_before(youngest.offset_of_max_timestamp)
    for place, header in iter_headers(youngest.file, position, youngest.size):
        if header.max_timestamp == timestamp:
            found = _find_record(youngest, place, header, timestamp, 0)
            if found is not None:
                return found
    return None


class LongLookup(Exception):
    """A batch whose records take long to scan. It has its own copy of the batch."""

    def __init__(self, batch: bytes, header: BatchHeader, timestamp: int, start_offset: int) -> None:
        super().__init__()
        self._batch = batch
        self._header = header
        self._timestamp = timestamp
        self._start_offset = start_offset
        # The offset to continue at if the batch has no such record.
        self.next_offset = header.next_offset

    def run(self, pause: Callable[[], None]) -> TimestampOffset | None:
        """Return the first record from the start offset on that is not older than the timestamp. Any thread.

        Calls ``pause`` every millisecond or so; it may raise.
        """
        try:
            return _find_in(self._batch, self._header, self._timestamp, self._start_offset, DEFAULT_LIMIT_BYTES, pause)
        except MalformedMessage:
            return None


def _find_record(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int, *, at_once: bool = True
) -> TimestampOffset | None:
    """Return a batch's first record not older than ``timestamp``. Raises LongLookup, always unless ``at_once``."""
    batch = segment.file.pread(header.size_bytes, position)
    try:
        if at_once and header.record_count <= _SHORT_RECORDS:
            return _find_in(batch, header, timestamp, start_offset, _SHORT_BYTES, None)
    except TooMuchData:
        pass
    except MalformedMessage:
        return None
    raise LongLookup(batch, header, timestamp, start_offset)


def _find_in(
    batch: bytes, header: BatchHeader, timestamp: int, start_offset: int, most_bytes: int, pause: Callable[[], None] | None
) -> TimestampOffset | None:
    """Return a batch's first record not older than ``timestamp``, or None. Raises MalformedMessage."""
    if header.magic != MAGIC:
        return _find_in_message(batch, header, timestamp, start_offset, most_bytes, pause)
    data = decompressed_view(header.compression, memoryview(batch)[HEADER_SIZE:], most_bytes)
    pause = pause or _takes_long
    walk = RecordWalk(header, data, latest=timestamp - 1, first_offset_delta=start_offset - header.base_offset, pause=pause)
    walk.go_on(_RECORDS_AT_ONCE)
    while not walk.is_done:
        pause()
        walk.go_on(_RECORDS_AT_ONCE)
    if not walk.refused:
        return None
    _, found_timestamp, _, offset_delta = walk.refused[0]
    return TimestampOffset(found_timestamp, header.base_offset + offset_delta, header.partition_leader_epoch)


def _find_in_message(
    message: bytes, header: BatchHeader, timestamp: int, start_offset: int, most_bytes: int, pause: Callable[[], None] | None
) -> TimestampOffset | None:
    """Do ``_find_in`` for a message of format v0 or v1."""
    if header.compression and pause is None:
        # The message does not tell how many messages it holds.
        most_bytes = min(most_bytes, _SHORT_RECORDS * _LEAST_MESSAGE_BYTES)
    for number, (offset, found, _, _) in enumerate(read_legacy_records(header, message, limit_bytes=most_bytes), start=1):
        if found >= timestamp and offset >= start_offset:
            return TimestampOffset(found, offset, header.partition_leader_epoch)
        if pause is not None and number % _RECORDS_AT_ONCE == 0:
            pause()
    return None


def _takes_long() -> NoReturn:
    """Stand in for ``pause`` on the event loop, which has no time for so many headers."""
    raise TooMuchData("records with thousands of headers")
