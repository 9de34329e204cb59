"""The records of a batch as spans of its bytes: what compaction asks of each, and where it begins and ends.

A record that stays is copied as it is, so its value and headers are not looked into. (odradek.protocol.records has the layout.)
Records of message formats v0 and v1 are read whole: they are put into a batch.
"""

from collections.abc import Iterable
from typing import NamedTuple

from odradek.protocol.compression import decompress
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.legacy_records import LegacyRecord
from odradek.protocol.record_batch import HEADER_SIZE, BatchHeader
from odradek.protocol.varint import read_varint

# Length, attributes, timestamp, offset, key, value and headers, a byte each.
_SHORTEST_RECORD_BYTES = 7
_new_tuple = tuple.__new__


class RecordSpan(NamedTuple):
    """One record: ``data[start:end]`` of its batch's records, its timestamp's delta at ``timestamp_at``.

    ``has_value`` is false for a tombstone.
    """

    offset_delta: int
    key: bytes | None
    has_value: bool
    start: int
    timestamp_at: int
    end: int


def legacy_spans(header: BatchHeader, records: Iterable[LegacyRecord]) -> list[RecordSpan]:
    """The records of a message in format v0 or v1, by offset, key and value only: they have no place in a batch."""
    base_offset = header.base_offset
    return [RecordSpan(offset - base_offset, key, value is not None, 0, 0, 0) for offset, _, key, value in records]


def payload(header: BatchHeader, batch: bytes | memoryview) -> bytes:
    """The bytes of a batch's records, decompressed. ``batch`` is all of it. Raises MalformedMessage."""
    data = memoryview(batch)[HEADER_SIZE:]
    return decompress(header.compression, data) if header.compression else bytes(data)


def spans(header: BatchHeader, data: bytes) -> list[RecordSpan]:
    """The records in ``data``, which is ``payload``'s. Raises MalformedMessage."""
    count = header.record_count
    if not 0 <= count <= len(data) // _SHORTEST_RECORD_BYTES:
        raise MalformedMessage(f"{count} records in {len(data)} bytes")
    found: list[RecordSpan] = []
    append = found.append
    end = 0
    try:
        for _ in range(count):
            start = end
            # A varint of one byte is what nearly all are: read here, without a call.
            size = data[start]
            if size < 0x80:
                size, timestamp_at = size >> 1, start + 2
            else:
                size, at = read_varint(data, start)
                timestamp_at = at + 1
            end = timestamp_at - 1 + size
            at = timestamp_at
            while data[at] > 0x7F:
                at += 1
            offset_delta = data[at + 1]
            if offset_delta < 0x80:
                offset_delta, at = offset_delta >> 1, at + 2
            else:
                offset_delta, at = read_varint(data, at + 1)
            key_size = data[at]
            if key_size < 0x80:
                key_size, at = (key_size >> 1) ^ -(key_size & 1), at + 1
            else:
                key_size, at = read_varint(data, at)
            key = None
            if key_size >= 0:
                key = data[at : at + key_size]
                at += key_size
            # The lowest bit of a zigzag varint's first byte is the sign: a negative length is null.
            has_value = not data[at] & 1
            if at >= end or end > len(data):
                raise MalformedMessage(f"a record's fields go beyond its {end - start} bytes")
            append(_new_tuple(RecordSpan, (offset_delta, key, has_value, start, timestamp_at, end)))
    except IndexError:
        raise MalformedMessage("the data ends within a record") from None
    if end != len(data):
        raise MalformedMessage(f"{len(data) - end} bytes behind the last record")
    return found
