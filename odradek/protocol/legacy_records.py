"""Records in message formats v0 and v1, which brokers before 0.11 wrote: reads them, and builds what compaction leaves of them.

``odradek.protocol.record_batch`` has the layout of a message. A compressed message is a wrapper: its value holds messages one
behind the other, compressed together. The offsets of these are absolute in v0. In v1 they count from the first, and the wrapper
has the last one's offset (KIP-31). With LogAppendTime all have the wrapper's timestamp (KIP-32). In v0, the header checksum of an
lz4 frame covers the wrong bytes, as in Kafka's first clients.

Messages in a wrapper may be of the other format: brokers of 0.10 compacted some that way (KAFKA-4298). Their timestamps follow
their own format, their offsets the wrapper's. As in Kafka, their checksums are not looked at, and the last one may be cut.

Left out: message sets for old clients. Fetch sends all formats as the log has them.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from odradek.protocol.compression import DEFAULT_LIMIT_BYTES, LZ4, NONE, ZSTD, compress, decompressed_view
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    Buffer,
)

_OFFSET_AND_SIZE: Final = Struct(">qi")
# CRC, magic and attributes; v1 has a timestamp behind them.
_HEAD: Final = Struct(">IbB")
_CHECKED_HEAD: Final = Struct(">bB")
_INT64: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_NULL: Final = b"\xff\xff\xff\xff"
_LEAST_BYTES: Final = (14, 22)
_NO_TIMESTAMP: Final = -1
# An lz4 frame's magic number and its descriptor: flags, block size, the content's size if the flags say so.
_LZ4_MAGIC_BYTES: Final = 4
_LZ4_LEAST_BYTES: Final = 7
_LZ4_HAS_SIZE: Final = 0x08


class LegacyRecord(NamedTuple):
    """A record. ``timestamp`` is in ms since the epoch, -1 in v0; ``magic`` is its own format, not its wrapper's."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    magic: int


def read_legacy_records(
    header: BatchHeader, message: Buffer, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[LegacyRecord]:
    """The records of a message in format v0 or v1: itself or, of a wrapper, those in it, decompressed to ``limit_bytes`` at most.

    ``message`` begins with its offset. Raises MalformedMessage, also in mid-iteration, and TooMuchData.
    """
    view = memoryview(message)
    outer = _read(view, LOG_OVERHEAD, header.size_bytes, header.base_offset, header.compression)
    if header.compression == NONE:
        yield outer
        return
    data = _unwrapped(header, outer.value, limit_bytes)
    places = _places(data)
    base_offset = 0
    if header.magic and header.base_offset:
        # Some producers left the wrapper's offset at 0.
        base_offset = header.base_offset - places[-1][0]
        if base_offset < 0:
            raise MalformedMessage(f"a wrapper of offset {header.base_offset} with offset {places[-1][0]} in it")
    for offset, start, end in places:
        record = _read(data, start, end, base_offset + offset, NONE)
        if record.magic and header.magic and header.timestamp_type == LOG_APPEND_TIME:
            record = record._replace(timestamp=header.max_timestamp)
        yield record


def _unwrapped(header: BatchHeader, value: bytes | None, limit_bytes: int) -> memoryview:
    """The messages in a wrapper."""
    if value is None or header.compression == ZSTD:
        raise MalformedMessage(f"a wrapper in format v{header.magic} of codec {header.compression}: null value or unknown codec")
    if header.compression == LZ4 and not header.magic:
        value = _with_lz4_checksum(value, _LZ4_MAGIC_BYTES)
    return memoryview(decompressed_view(header.compression, value, limit_bytes))


def _places(data: memoryview) -> list[tuple[int, int, int]]:
    """(offset, start, end) of each whole message in ``data``, without offset and size."""
    places = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        offset, size = _OFFSET_AND_SIZE.unpack_from(data, position)
        if size < _LEAST_BYTES[0]:
            raise MalformedMessage(f"a message of {size} bytes in a wrapper")
        position += LOG_OVERHEAD + size
        if position <= len(data):
            places.append((offset, position - size, position))
    if not places:
        raise MalformedMessage("a wrapper without messages")
    return places


def _read(data: memoryview, start: int, end: int, offset: int, compression: int) -> LegacyRecord:
    """The message from ``start``, its CRC, to ``end``; of just this codec."""
    if end > len(data):
        raise MalformedMessage(f"a message of {end - start} bytes in {len(data) - start}")
    _, magic, attributes = _HEAD.unpack_from(data, start)
    if magic not in (0, 1) or end - start < _LEAST_BYTES[magic] or attributes & COMPRESSION_MASK != compression:
        raise MalformedMessage(f"a message of {end - start} bytes, magic {magic}, codec {attributes & COMPRESSION_MASK}")
    at = start + _HEAD.size
    timestamp = _NO_TIMESTAMP
    if magic:
        (timestamp,) = _INT64.unpack_from(data, at)
        at += _INT64.size
    key, at = _read_field(data, at, end)
    value, at = _read_field(data, at, end)
    return LegacyRecord(offset, timestamp, key, value, magic)


def _read_field(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    if at + _LENGTH.size > end:
        raise MalformedMessage("a message ends within a length")
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if at + length > end:
        raise MalformedMessage(f"a key or value of {length} bytes in {end - at}")
    return bytes(data[at : at + length]), at + length


def build_legacy_message(
    magic: int, records: Sequence[LegacyRecord], *, compression: int = NONE, append_time_ms: int | None = None
) -> bytes:
    """One message in format v0 or v1 of ``records``: several only if it is compressed.

    ``append_time_ms`` is the timestamp of all if its type is LogAppendTime.
    """
    if append_time_ms is not None:
        records = [record._replace(timestamp=append_time_ms) for record in records]
    stamp_type = 0 if append_time_ms is None or not magic else TIMESTAMP_TYPE_MASK
    if compression == NONE:
        (record,) = records
        return _built(magic, stamp_type, record, record.offset)
    first_offset = records[0].offset if magic else 0
    data = b"".join(_built(magic, stamp_type, record, record.offset - first_offset) for record in records)
    value = compress(compression, data)
    if compression == LZ4 and not magic:
        value = _with_lz4_checksum(value, 0)
    timestamp = max(record.timestamp for record in records)
    wrapper = LegacyRecord(records[-1].offset, timestamp, None, value, magic)
    return _built(magic, stamp_type | compression, wrapper, wrapper.offset)


def _built(magic: int, attributes: int, record: LegacyRecord, offset: int) -> bytes:
    parts = [_CHECKED_HEAD.pack(magic, attributes)]
    if magic:
        parts.append(_INT64.pack(record.timestamp))
    parts += [_NULL if field is None else _LENGTH.pack(len(field)) + field for field in (record.key, record.value)]
    checked = b"".join(parts)
    return _OFFSET_AND_SIZE.pack(offset, _CRC.size + len(checked)) + _CRC.pack(crc32(checked)) + checked


def _with_lz4_checksum(frame: bytes, start: int) -> bytes:
    """An lz4 frame whose header checksum is computed from ``start`` on: behind the magic number, where it is to be right."""
    if len(frame) < _LZ4_LEAST_BYTES:
        raise MalformedMessage(f"an lz4 frame of {len(frame)} bytes")
    from xxhash import xxh32_intdigest

    place = _LZ4_LEAST_BYTES - 1 + (8 if frame[_LZ4_MAGIC_BYTES] & _LZ4_HAS_SIZE else 0)
    checksum = xxh32_intdigest(frame[start:place]) >> 8 & 0xFF
    return b"".join((frame[:place], bytes((checksum,)), frame[place + 1 :]))
