"""Records: reads and builds the content of a batch. Code that needs only the header uses ``odradek.protocol.record_batch``.

A record, after decompression of the batch's records (protocol guide, "Record"; KIP-82, KIP-98):

    length            varint      bytes from here on
    attributes        int8        unused
    timestamp delta   varlong     to the batch's base timestamp, ms
    offset delta      varint      to the batch's base offset
    key, value        varint length, then bytes; a negative length is null
    header count      varint
    headers           key: varint length, UTF-8; value: as above

``read_records`` also reads messages of formats v0 and v1. Nothing here builds them.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, TypeVar

from odradek.protocol.compression import DEFAULT_LIMIT_BYTES, NONE, compress, decompress
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.legacy_records import read_legacy_records
from odradek.protocol.record_batch import (
    CONTROL_MASK,
    CREATE_TIME,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    assembled,
    read_header,
    sealed,
)
from odradek.protocol.varint import read_varint, write_varint

# Length, attributes, timestamp, offset, key, value and headers, one byte each.
_MIN_RECORD_BYTES = 7
_MIN_HEADER_BYTES = 2
_MIN_INT64 = -(1 << 63)
_MAX_INT64 = (1 << 63) - 1
_MAX_INT32 = (1 << 31) - 1
# The number of records encoded at a time, in less than a millisecond.
_RECORDS_AT_ONCE = 64

T = TypeVar("T")


class Record(NamedTuple):
    """One record. ``timestamp`` is in ms since the epoch, -1 for none. ``build_batch`` replaces ``offset`` -1 by the next one."""

    offset: int = -1
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_records(buffer: Buffer, position: int = 0, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """Iterate over the records of the batch, or message of format v0 or v1, at ``position``.

    Offsets and timestamps are absolute. The batch is decompressed at once, to at most ``limit_bytes``. The CRC is not checked;
    ``ensure_intact`` does that. Raises MalformedMessage, also in mid-iteration: make a list to get either all records or none.
    """
    header = read_header(buffer, position)
    if position + header.size_bytes > len(buffer):
        raise MalformedMessage(f"a batch has {header.size_bytes} bytes, but {len(buffer) - position} are left")
    if header.magic in (0, 1):
        message = memoryview(buffer)[position : position + header.size_bytes]
        return (Record(*found) for found in read_legacy_records(header, message, limit_bytes=limit_bytes))
    if header.magic != MAGIC:
        raise MalformedMessage(f"magic {header.magic}: not a record batch")
    if not 0 <= header.base_offset <= _MAX_INT64 - _MAX_INT32:
        raise MalformedMessage(f"invalid base offset {header.base_offset}")
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size_bytes]
    data = decompress(header.compression, payload, limit_bytes)
    if not 0 <= header.record_count <= len(data) // _MIN_RECORD_BYTES:
        raise MalformedMessage(f"{header.record_count} records do not fit in {len(data)} bytes")
    return _iterate(header, data)


def _iterate(header: BatchHeader, data: bytes) -> Iterator[Record]:
    position = 0
    for _ in range(header.record_count):
        record, position = _read_record(header, data, position)
        yield record
    if position != len(data):
        raise MalformedMessage(f"{len(data) - position} bytes after the last record")


def _read_record(header: BatchHeader, data: bytes, position: int) -> tuple[Record, int]:
    """Return (the record at ``position``, the position after it)."""
    length, position = read_varint(data, position)
    end = position + length
    if length < _MIN_RECORD_BYTES - 1 or end > len(data):
        raise MalformedMessage(f"a record has {length} bytes, but {len(data) - position} are left")
    timestamp_delta, position = read_varint(data, position + 1, 64)
    offset_delta, position = read_varint(data, position)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    header_count, position = read_varint(data, position)
    headers, position = _read_headers(data, position, end, header_count) if header_count else ((), position)
    if position != end:
        raise MalformedMessage(f"a record ends {end - position} bytes away from the end given by its length")
    timestamp = header.base_timestamp + timestamp_delta
    if header.attributes & TIMESTAMP_TYPE_MASK:
        timestamp = header.max_timestamp
    if offset_delta < 0 or not _MIN_INT64 <= timestamp <= _MAX_INT64:
        raise MalformedMessage(f"a record has the invalid offset delta {offset_delta} or timestamp {timestamp}")
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), end


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    stop = position + length
    if stop > end:
        raise MalformedMessage(f"a field has {length} bytes, but {end - position} are left")
    return data[position:stop], stop


def _read_headers(data: bytes, position: int, end: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if not 0 < count <= (end - position) // _MIN_HEADER_BYTES:
        raise MalformedMessage(f"{count} headers do not fit in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _read_bytes(data, position, end)
        if key is None:
            raise MalformedMessage("a header has no key")
        value, position = _read_bytes(data, position, end)
        try:
            headers.append((key.decode(), value))
        except UnicodeDecodeError:
            raise MalformedMessage("a header key is not UTF-8") from None
    return tuple(headers), position


def build_batch(  # noqa: PLR0913 - a header has as many fields, all by name
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: int = NONE,
    compression_level: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = CREATE_TIME,
) -> bytes:
    """Build a v2 batch of ``records``, at least one.

    Records without an offset follow the previous one. Given offsets are absolute, ascend, and are not below ``base_offset``.
    Raises ValueError if there are no records, if offsets do not ascend, or if the codec is unknown.
    """
    if not records:
        raise ValueError("a batch needs at least one record")
    base_timestamp = records[0].timestamp
    offset_delta = -1
    data = bytearray()
    for record in records:
        delta = offset_delta + 1 if record.offset < 0 else record.offset - base_offset
        if delta <= offset_delta:
            raise ValueError(f"offset {record.offset} comes after {base_offset + offset_delta}")
        offset_delta = delta
        write_record(data, record, offset_delta, record.timestamp - base_timestamp)
    payload = compress(compression, data, compression_level)
    attributes = (
        compression
        | (TIMESTAMP_TYPE_MASK if timestamp_type == LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_MASK if transactional else 0)
        | (CONTROL_MASK if control else 0)
    )
    head = HEADER.pack(
        base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(payload),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        offset_delta,
        base_timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return sealed(head, payload)


def write_record(out: bytearray, record: Record, offset_delta: int, timestamp_delta: int) -> None:
    """Append ``record`` to a batch's records. The deltas are relative to the batch's base offset and base timestamp."""
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for key, value in record.headers:
        _write_bytes(body, key.encode())
        _write_bytes(body, value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)
    else:
        write_varint(out, len(value))
        out += value


def build_sliced_batch(sources: Sequence[T], encode: Callable[[T], bytes], timestamp_ms: int) -> Generator[None, None, bytes]:
    """Build a v2 batch with a record for each of ``sources``, at least one. ``encode`` makes the values.

    A generator that can pause between its records.
    """
    if not sources:
        raise ValueError("a batch needs at least one record")
    # ``assembled`` puts the header in the first one's place.
    chunks = [b""]
    for first in range(0, len(sources), _RECORDS_AT_ONCE):
        if first:
            yield
        data = bytearray()
        for number, source in enumerate(sources[first : first + _RECORDS_AT_ONCE], first):
            write_record(data, Record(value=encode(source)), number, 0)
        chunks.append(bytes(data))
    return assembled(0, -1, 0, len(sources), timestamp_ms, NO_PRODUCER_ID, -1, chunks)
