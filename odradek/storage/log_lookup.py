"""Finding records by their timestamps, which takes a scan of batches."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import BatchHeader
from odradek.protocol.records import Record, read_records
from odradek.storage.batch_scan import iter_headers
from odradek.storage.errors import LogCorrupt
from odradek.storage.segment import Segment


class TimestampOffset(NamedTuple):
    """A record's timestamp in ms, its offset, and the leader epoch of its batch (-1 if it has none)."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: Iterable[Segment], timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record from ``start_offset`` on that is not older than ``timestamp``."""
    for segment in segments:
        if segment.learn_max_timestamp() < timestamp:
            continue
        near = segment.time_index.offset_before(timestamp)
        position = segment.offset_index.position_before(max(near, start_offset))
        for place, header in iter_headers(segment.file, position, segment.size):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            found = _find_record(
                segment, place, header, lambda record: record.timestamp >= timestamp and record.offset >= start_offset
            )
            if found is not None:
                return found
    return None


def first_with_max_timestamp(segments: Iterable[Segment]) -> TimestampOffset | None:
    """The first record with the largest timestamp of all (KIP-734)."""
    youngest = max(segments, key=Segment.learn_max_timestamp)
    timestamp = youngest.max_timestamp
    if timestamp < 0:
        return None
    position = youngest.offset_index.position_before(youngest.offset_of_max_timestamp)
    for place, header in iter_headers(youngest.file, position, youngest.size):
        if header.max_timestamp == timestamp:
            return _find_record(youngest, place, header, lambda record: record.timestamp == timestamp)
    return None


def _find_record(
    segment: Segment, position: int, header: BatchHeader, accept: Callable[[Record], bool]
) -> TimestampOffset | None:
    try:
        for record in read_records(segment.file.pread(header.size_bytes, position)):
            if accept(record):
                return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    except MalformedMessage as error:
        raise LogCorrupt(f"{segment.path}, position {position}: {error.reason}") from error
    return None
