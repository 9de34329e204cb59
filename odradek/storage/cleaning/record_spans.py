"""The records of a batch as spans of its bytes: their positions, and the fields that compaction needs.

A retained record is copied unchanged, so its value and headers are not parsed. (odradek.protocol.records has the layout.) Records
of message formats v0 and v1 are read completely, as they are put into a batch.

A clean keeps the last offset of each key, for its part of the log, in a dict with bounded memory. Kafka keeps MD5 digests in a
table of 24 bytes an entry. Here short keys are stored as they are, long ones as a digest that no short key can equal. So two
short keys are never confused. An entry costs more, about 200 bytes with keys of 24: 128 MiB, nine tenths full, hold some 600,000
keys, where Kafka has room for five million. Keys that do not fit are left to the next clean.
"""

from collections.abc import Iterable
from hashlib import blake2b
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
    """Return the records of a message in format v0 or v1, with offset, key and value only, as they are not in a batch."""
    base_offset = header.base_offset
    return [RecordSpan(offset - base_offset, key, value is not None, 0, 0, 0) for offset, _, key, value in records]


def payload(header: BatchHeader, batch: bytes | memoryview) -> bytes:
    """Return the bytes of a batch's records, decompressed. ``batch`` is the whole batch. Raises MalformedMessage."""
    data = memoryview(batch)[HEADER_SIZE:]
    return decompress(header.compression, data) if header.compression else bytes(data)


def spans(header: BatchHeader, data: bytes) -> list[RecordSpan]:
    """Return the records in ``data``, the result of ``payload``. Raises MalformedMessage."""
    count = header.record_count
    if not 0 <= count <= len(data) // _SHORTEST_RECORD_BYTES:
        raise MalformedMessage(f"{count} records do not fit in {len(data)} bytes")
    found: list[RecordSpan] = []
    append = found.append
    end = 0
    try:
        for _ in range(count):
            start = end
            # Nearly all lengths are varints of one byte: read them here, without a call.
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
                raise MalformedMessage(f"a record's fields go past its {end - start} bytes")
            append(_new_tuple(RecordSpan, (offset_delta, key, has_value, start, timestamp_at, end)))
    except IndexError:
        raise MalformedMessage("the data ends inside a record") from None
    if end != len(data):
        raise MalformedMessage(f"{len(data) - end} bytes after the last record")
    return found


_LONGEST_PLAIN_KEY_BYTES = 63
_DIGEST_BYTES = 64
_BYTES_HEAD = 33
# The size of an int of more than 30 bits, and a key's share of the dict's table just after growing, with the old table.
_ENTRY_BYTES = 32 + 112


class OffsetMap:
    """Key -> last offset. The log has been scanned up to ``latest_offset``, -1 before anything."""

    __slots__ = ("_budget_bytes", "_offsets", "_used_bytes", "latest_offset")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """Use at most ``load_factor`` of ``memory_bytes`` (``log.cleaner.dedupe.buffer.size``). One key always fits."""
        self._budget_bytes = int(memory_bytes * load_factor)
        self._used_bytes = 0
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def utilization(self) -> float:
        """Return the used part of the memory budget, from 0.0 to 1.0."""
        return self._used_bytes / self._budget_bytes if self._budget_bytes else 1.0

    def put_all(self, base_offset: int, records: Iterable[RecordSpan], from_offset: int) -> bool:
        """Note the keys of a batch's ``records`` from ``from_offset`` on. Return False if not all had room."""
        offsets = self._offsets
        used_bytes, budget_bytes = self._used_bytes, self._budget_bytes
        offset = self.latest_offset
        has_room = True
        for delta, key, *_ in records:
            if key is None or base_offset + delta < from_offset:
                continue
            if used_bytes >= budget_bytes and offsets:
                has_room = False
                break
            offset = base_offset + delta
            held = key if len(key) <= _LONGEST_PLAIN_KEY_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
            if held not in offsets:
                used_bytes += _ENTRY_BYTES + (_BYTES_HEAD + len(held) + 15 & ~15)
            offsets[held] = offset
        self._used_bytes = used_bytes
        self.latest_offset = offset
        return has_room

    def get(self, key: bytes) -> int:
        """Return the key's last offset; -1 if the map has none."""
        if len(key) > _LONGEST_PLAIN_KEY_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)
