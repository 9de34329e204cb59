"""The codecs of record batches, by their number in a batch's attributes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd (KIP-110).

Two of them have variants. Kafka's snappy has no framing of its own. Java clients split the data into blocks like xerial's
snappy-java, others send one raw block. Readers accept both. xerial's stream is

    0   82 53 4e 41 50 50 59 00     magic
    8   version int32, compatible version int32
    16  blocks: length int32, then that many bytes of raw snappy

``compress`` writes this stream, as every client reads it. An lz4 frame must have independent blocks: Java clients reject linked
ones.

``decompress`` and ``decompressed_view`` limit the size of their result before they allocate memory. cramjam is imported on first
use, and lets other threads run while it works.
"""

import struct
from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.protocol.record_batch import Buffer

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
ZSTD = 4

_GZIP_DEFAULT = -1
# Kafka's lz4 has a fast method, its level 9, and a thorough one for all other levels.
_LZ4_DEFAULT = 9
_LZ4_FAST = 1
_LZ4_LEAST_HIGH = 3

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")
# The largest expansion of a byte, by the format: DEFLATE's longest match in two bits, an lz4 length byte, a zstd block of 128 KiB
# in four bytes, a snappy copy of 64 bytes in three.
_MAX_EXPANSION = {GZIP: 1032, LZ4: 255, ZSTD: 32 * 1024}
_MAX_SNAPPY_EXPANSION = 22
# A raw block of snappy can only be opened as a whole. A block of this size takes a third of a millisecond.
_LARGEST_SNAPPY_HEAD_BYTES = 1024 * 1024
_SMALLEST_ROOM_BYTES = 128 * 1024
# cramjam's error message for a full buffer.
_NO_ROOM = "failed to write whole buffer"


# Kafka's names of the codecs, by number.
CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class TooMuchData(MalformedMessage):
    """The data decompresses to more than the limit. It is unknown whether it is intact."""


def decompress(codec: int, data: "Buffer", limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """Decompress ``data``. Raises MalformedMessage if it is not of ``codec``, TooMuchData if it exceeds ``limit_bytes``."""
    return bytes(decompressed_view(codec, data, limit_bytes))


def decompressed_view(codec: int, data: "Buffer", limit_bytes: int = DEFAULT_LIMIT_BYTES) -> "Buffer":
    """Decompress without the last copy. The result is often a view of pages that are freed together with it."""
    if codec == NONE:
        return data
    if codec == SNAPPY:
        return _decompress_snappy(data, limit_bytes)
    if codec in _MAX_EXPANSION:
        return _decompress_stream(codec, data, limit_bytes)
    raise MalformedMessage(f"compression {codec} does not exist")


def _cramjam() -> Any:  # noqa: ANN401  the package has no types
    """Return the package of the codecs."""
    import cramjam  # 1.5 ms, and 3 MB that a broker whose clients do not compress saves

    return cramjam


def decompressed_head(codec: int, data: "Buffer", most_bytes: int) -> tuple[bytes, bool]:
    """Return the first ``most_bytes`` of the decompressed ``data``, and whether that is all of it.

    The rest is neither decompressed nor checked. A large block of snappy is not opened at all. Raises MalformedMessage.
    """
    if codec == SNAPPY:
        return _snappy_head(data, most_bytes)
    if codec not in _MAX_EXPANSION:
        raise MalformedMessage(f"compression {codec} does not exist")
    cramjam = _cramjam()
    module: Any = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec]
    room = bytearray(most_bytes)
    try:
        size = module.decompress_into(data, room)
    except cramjam.DecompressionError as error:
        if _NO_ROOM in str(error):
            return bytes(room), False
        raise MalformedMessage(f"compression {codec}: {error}") from None
    return bytes(room[:size]), True


def compress(codec: int, data: "Buffer", level: int | None = None) -> bytes:
    """Compress ``data`` as Kafka's clients expect it. Raises ValueError for an unknown codec.

    ``level`` is one of Kafka's levels for this codec (KIP-390); -1 for gzip and 9 for lz4 select the codec's own default.
    """
    if codec == NONE:
        return bytes(data)
    cramjam = _cramjam()
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, level=None if level == _GZIP_DEFAULT else level))
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        if level == _LZ4_DEFAULT:
            level = _LZ4_FAST
        elif level is not None:
            level = max(level, _LZ4_LEAST_HIGH)
        compressor = cramjam.lz4.Compressor(level=level, block_linked=False, content_checksum=False)
        compressor.compress(bytes(data))
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    raise ValueError(f"compression {codec} does not exist")


def _decompress_stream(codec: int, data: "Buffer", limit_bytes: int) -> memoryview:
    """Decompress gzip, lz4 or zstd into a buffer of the allowed size. Its unused pages cost nothing (anonymous mapping)."""
    cramjam = _cramjam()
    module: Any = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec]
    room_bytes = min(limit_bytes, len(data) * _MAX_EXPANSION[codec] + _SMALLEST_ROOM_BYTES)
    import mmap  # 0.4 ms, a shared library

    room = mmap.mmap(-1, room_bytes)
    try:
        size = module.decompress_into(data, room)
    except cramjam.DecompressionError as error:
        kind = TooMuchData if _NO_ROOM in str(error) else MalformedMessage
        raise kind(f"compression {codec}, limit {limit_bytes} bytes: {error}") from None
    return memoryview(room)[:size]


def _decompress_snappy(data: "Buffer", limit_bytes: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_raw_snappy(data, limit_bytes)
    view = memoryview(data)
    blocks: list[bytes] = []
    room_bytes = limit_bytes
    for part in _xerial_blocks(view):
        block = _decompress_raw_snappy(part, room_bytes)
        blocks.append(block)
        room_bytes -= len(block)
    return b"".join(blocks)


def _snappy_head(data: "Buffer", most_bytes: int) -> tuple[bytes, bool]:
    view = memoryview(data)
    parts = _xerial_blocks(view) if bytes(data[: len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC else iter((view,))
    found = b""
    for part in parts:
        if len(found) >= most_bytes:
            return found, False
        try:
            found += _decompress_raw_snappy(part, max(most_bytes, _LARGEST_SNAPPY_HEAD_BYTES))
        except TooMuchData:
            return found, False
    return found, True


def _xerial_blocks(view: memoryview) -> "Iterator[memoryview]":
    """Yield the raw blocks of xerial's stream. Raises MalformedMessage."""
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise MalformedMessage("snappy: the data ends inside xerial's header")
    while position < len(view):
        if len(view) - position < _BLOCK_LENGTH.size:
            raise MalformedMessage("snappy: the data ends inside a block's length")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position += _BLOCK_LENGTH.size
        if not 0 < length <= len(view) - position:
            raise MalformedMessage(f"snappy: a block has {length} bytes, but {len(view) - position} are left")
        yield view[position : position + length]
        position += length


def _decompress_raw_snappy(block: "Buffer", limit_bytes: int) -> bytes:
    """Decompress one raw block, which begins with its decompressed length."""
    cramjam = _cramjam()
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _MAX_SNAPPY_EXPANSION:
            raise MalformedMessage(f"snappy: {len(block)} bytes cannot decompress to {size}")
        if size > limit_bytes:
            raise TooMuchData(f"snappy: {len(block)} bytes decompress to {size}, more than {limit_bytes}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise MalformedMessage(f"snappy: {error}") from None


def _compress_xerial(data: "Buffer") -> bytes:
    cramjam = _cramjam()
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)
