"""Records in message formats v0 and v1, which brokers before 0.11 wrote, and Kafka still serves.

``odradek.protocol.record_batch`` has the layout of a message. A compressed message is a wrapper: its value holds consecutive
messages, compressed together. Their offsets are absolute in v0. In v1 they are relative to the first message, and the wrapper has
the last one's offset (KIP-31). With LogAppendTime, all have the wrapper's timestamp (KIP-32). In v0, the header checksum of an
lz4 frame covers the wrong bytes, as in Kafka's first clients.

Messages in a wrapper may be of the other format: brokers of 0.10 compacted some that way (KAFKA-4298). Their timestamps follow
their own format, their offsets the wrapper's. As in Kafka, their checksums are not checked, and the last message may be cut.

Left out: writing them. Producers may not send them, Fetch sends the log's bytes unchanged, and compaction writes v2.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, TypeAlias

from odradek.protocol.compression import DEFAULT_LIMIT_BYTES, LZ4, NONE, ZSTD, decompressed_view
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import COMPRESSION_MASK, LOG_APPEND_TIME, LOG_OVERHEAD, BatchHeader, Buffer

_OFFSET_AND_SIZE: Final = Struct(">qi")
# CRC, magic and attributes; v1 has a timestamp after them.
_HEAD: Final = Struct(">IbB")
_MAGIC_AT: Final = 4
_INT64: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_LEAST_BYTES: Final = (14, 22)
_NO_TIMESTAMP: Final = -1
# An lz4 frame's magic number and its descriptor: flags, block size, the content's size if the flags say so.
_LZ4_MAGIC_BYTES: Final = 4
_LZ4_LEAST_BYTES: Final = 7
_LZ4_HAS_SIZE: Final = 0x08


# Offset, timestamp in ms since the epoch (-1 in v0), key, value.
LegacyRecord: TypeAlias = tuple[int, int, bytes | None, bytes | None]


def read_legacy_records(
    header: BatchHeader, message: Buffer, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[LegacyRecord]:
    """Yield the records of a message in format v0 or v1: itself or, for a wrapper, the messages in it.

    ``message`` begins with its offset. A wrapper is decompressed to at most ``limit_bytes``. Raises MalformedMessage, also in
    mid-iteration, and TooMuchData.
    """
    view = memoryview(message)
    timestamp, key, value = _read(view, LOG_OVERHEAD, header.size_bytes, header.compression)
    if header.compression == NONE:
        yield header.base_offset, timestamp, key, value
        return
    data = _unwrapped(header, value, limit_bytes)
    places = _places(data)
    base_offset = 0
    if header.magic and header.base_offset:
        # Some producers left the wrapper's offset at 0.
        base_offset = header.base_offset - places[-1][0]
        if base_offset < 0:
            raise MalformedMessage(f"a wrapper has offset {header.base_offset}, but contains offset {places[-1][0]}")
    for offset, start, end in places:
        timestamp, key, value = _read(data, start, end, NONE)
        if header.timestamp_type == LOG_APPEND_TIME and data[start + _MAGIC_AT]:
            timestamp = header.max_timestamp
        yield base_offset + offset, timestamp, key, value


def _unwrapped(header: BatchHeader, value: bytes | None, limit_bytes: int) -> memoryview:
    """Return the messages in a wrapper."""
    if value is None or header.compression == ZSTD:
        raise MalformedMessage(
            f"a wrapper in format v{header.magic} with codec {header.compression} has a null value or an unknown codec"
        )
    if header.compression == LZ4 and not header.magic:
        value = _with_lz4_checksum(value)
    return memoryview(decompressed_view(header.compression, value, limit_bytes))


def _places(data: memoryview) -> list[tuple[int, int, int]]:
    """Return (offset, start, end) of each complete message in ``data``, without offset and size."""
    places = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        offset, size = _OFFSET_AND_SIZE.unpack_from(data, position)
        if size < _LEAST_BYTES[0]:
            raise MalformedMessage(f"a message in a wrapper has {size} bytes")
        position += LOG_OVERHEAD + size
        if position <= len(data):
            places.append((offset, position - size, position))
    if not places:
        raise MalformedMessage("a wrapper has no messages")
    return places


def _read(data: memoryview, start: int, end: int, compression: int) -> tuple[int, bytes | None, bytes | None]:
    """Return (timestamp, key, value) of the message from ``start``, its CRC, to ``end``. It must be of this codec."""
    if end > len(data):
        raise MalformedMessage(f"a message has {end - start} bytes, but {len(data) - start} are left")
    _, magic, attributes = _HEAD.unpack_from(data, start)
    if magic not in (0, 1) or end - start < _LEAST_BYTES[magic] or attributes & COMPRESSION_MASK != compression:
        raise MalformedMessage(f"invalid message: {end - start} bytes, magic {magic}, codec {attributes & COMPRESSION_MASK}")
    at = start + _HEAD.size
    timestamp = _NO_TIMESTAMP
    if magic:
        (timestamp,) = _INT64.unpack_from(data, at)
        at += _INT64.size
    key, at = _read_field(data, at, end)
    value, at = _read_field(data, at, end)
    return timestamp, key, value


def _read_field(data: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    if at + _LENGTH.size > end:
        raise MalformedMessage("a message ends inside a length")
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if at + length > end:
        raise MalformedMessage(f"a key or value has {length} bytes, but {end - at} are left")
    return bytes(data[at : at + length]), at + length


def _with_lz4_checksum(frame: bytes) -> bytes:
    """Return an lz4 frame with the correct header checksum: over its descriptor, without the magic number."""
    if len(frame) < _LZ4_LEAST_BYTES:
        raise MalformedMessage(f"an lz4 frame has only {len(frame)} bytes")
    from xxhash import xxh32_intdigest  # 1 ms, and few clients are that old

    place = _LZ4_LEAST_BYTES - 1 + (8 if frame[_LZ4_MAGIC_BYTES] & _LZ4_HAS_SIZE else 0)
    checksum = xxh32_intdigest(frame[_LZ4_MAGIC_BYTES:place]) >> 8 & 0xFF
    return b"".join((frame[:place], bytes((checksum,)), frame[place + 1 :]))
