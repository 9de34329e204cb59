"""Batches of the broker's own records, built and read faster than by ``protocol.records``.

The records have no headers, and one timestamp for all. The batches are valid for any reader of Kafka's format. The reader accepts
any batch, and messages of formats v0 and v1, but returns only the offset, key and value of each record.

    batch header (protocol.record_batch) | records, compressed together if the header says so
    record: varint length | attributes 0 | timestamp delta 0 | varint offset delta | varint key length | key |
            varint value length, -1 for null | value | header count 0
"""

from collections.abc import Iterator, Sequence
from typing import Final

from odradek.protocol.compression import DEFAULT_LIMIT_BYTES, NONE, compress, decompress
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.legacy_records import read_legacy_records
from odradek.protocol.record_batch import HEADER_SIZE, MAGIC, NO_PRODUCER_ID, TRANSACTIONAL_MASK, Buffer, assembled
from odradek.protocol.record_batch import read_header as read_batch_header
from odradek.protocol.varint import read_varint, write_varint

_NULL: Final = b"\1"
_MIN_RECORD_BYTES: Final = 7


def _varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


# The lengths and deltas of nearly all records.
_VARINTS: Final = tuple(_varint(value) for value in range(1024))
_KNOWN_VARINTS: Final = len(_VARINTS)


def build_batch(
    records: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    *,
    compression: int = NONE,
    producer: tuple[int, int] | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int = 0,
) -> bytes:
    """Build a batch of at least one (key, value) record, with one timestamp (ms since the epoch).

    With a ``producer`` (id and epoch), the batch is part of the producer's transaction. ``attributes`` are further attribute
    bits.
    """
    # The first chunk becomes the header.
    chunks = [b""]
    for delta, (key, value) in enumerate(records):
        key_size = len(key)
        delta_varint = _VARINTS[delta] if delta < _KNOWN_VARINTS else _varint(delta)
        key_varint = _VARINTS[key_size] if key_size < _KNOWN_VARINTS else _varint(key_size)
        value_size = 0 if value is None else len(value)
        value_varint = _NULL if value is None else _VARINTS[value_size] if value_size < _KNOWN_VARINTS else _varint(value_size)
        # Two bytes before the delta, and the count of headers after the value.
        size = 3 + len(delta_varint) + len(key_varint) + key_size + len(value_varint) + value_size
        size_varint = _VARINTS[size] if size < _KNOWN_VARINTS else _varint(size)
        chunks += (size_varint, b"\0\0", delta_varint, key_varint, key, value_varint, value or b"", b"\0")
    if compression != NONE:
        chunks = [b"", compress(compression, b"".join(chunks))]
        attributes |= compression
    producer_id = NO_PRODUCER_ID
    producer_epoch = -1
    if producer is not None:
        attributes |= TRANSACTIONAL_MASK
        producer_id, producer_epoch = producer
    return assembled(base_offset, leader_epoch, attributes, len(records), timestamp_ms, producer_id, producer_epoch, chunks)


def uncompressed_size(records: Sequence[tuple[bytes, bytes | None]]) -> int:
    """Return the size of (key, value) records in a batch of their own, in bytes, without compression and the batch's header."""
    size_bytes = 0
    for delta, (key, value) in enumerate(records):
        body = 3 + _varint_size(delta) + _varint_size(len(key)) + len(key)
        body += len(_NULL) if value is None else _varint_size(len(value)) + len(value)
        size_bytes += _varint_size(body) + body
    return size_bytes


def _varint_size(value: int) -> int:
    return len(_VARINTS[value] if value < _KNOWN_VARINTS else _varint(value))


def read_batch(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Yield (offset, key, value) of each record of the batch at ``position``. The caller has checked its size and CRC.

    Raises MalformedMessage, also in mid-iteration.
    """
    header = read_batch_header(buffer, position)
    if header.magic != MAGIC:
        message = memoryview(buffer)[position : position + header.size_bytes]
        for offset, _, key, value in read_legacy_records(header, message):
            yield offset, key, value
        return
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size_bytes]
    data = bytes(payload) if header.compression == NONE else decompress(header.compression, payload, DEFAULT_LIMIT_BYTES)
    if not 0 <= header.record_count <= len(data) // _MIN_RECORD_BYTES:
        raise MalformedMessage(f"{header.record_count} records do not fit in {len(data)} bytes")
    base_offset = header.base_offset
    at = 0
    for _ in range(header.record_count):
        size, at = read_varint(data, at)
        end = at + size
        if size < _MIN_RECORD_BYTES - 1 or end > len(data):
            raise MalformedMessage(f"a record has {size} bytes, but {len(data) - at} are left")
        # One byte of attributes, then the timestamp delta, which is skipped.
        at += 1
        while at < end and data[at] > 0x7F:
            at += 1
        delta, at = read_varint(data, at + 1)
        size, at = read_varint(data, at)
        key = None if size < 0 else data[at : at + size]
        at += max(size, 0)
        size, at = read_varint(data, at)
        value = None if size < 0 else data[at : at + size]
        # Headers, if any, are between this position and the end.
        if at + max(size, 0) >= end:
            raise MalformedMessage(f"a record's fields go beyond its {end} bytes")
        at = end
        yield base_offset + delta, key, value
    if at != len(data):
        raise MalformedMessage(f"{len(data) - at} bytes after the last record")
