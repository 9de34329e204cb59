"""Primitive fields of coordinator records, read with bounds checked (protocol guide, "Protocol Primitive Types").

    string, bytes                    int16 or int32 length (-1: null), then that many bytes
    compact string, bytes, array     unsigned varint length + 1 (0: null)
    tagged fields                    unsigned varint count, then per field unsigned varint tag and size, and the value

Each ``read_`` takes (data, position) and returns (value, position after it). All raise MalformedMessage.
"""

from collections.abc import Callable
from struct import Struct
from typing import TypeVar

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.varint import read_uvarint

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")

T = TypeVar("T")
Read = Callable[[bytes, int], tuple[T, int]]


def take(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    """Return the next ``size`` bytes and the position after them."""
    end = position + size
    if size < 0 or end > len(data):
        raise MalformedMessage(f"a field has {size} bytes, but {len(data) - position} are left")
    return data[position:end], end


def read_int16(data: bytes, position: int) -> tuple[int, int]:
    """Read two bytes, signed."""
    raw, end = take(data, position, 2)
    return _INT16.unpack(raw)[0], end


def read_int32(data: bytes, position: int) -> tuple[int, int]:
    """Read four bytes, signed."""
    raw, end = take(data, position, 4)
    return _INT32.unpack(raw)[0], end


def read_int64(data: bytes, position: int) -> tuple[int, int]:
    """Read eight bytes, signed."""
    raw, end = take(data, position, 8)
    return _INT64.unpack(raw)[0], end


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedMessage("a string is not UTF-8") from None


def read_nullable_string(data: bytes, position: int) -> tuple[str | None, int]:
    """Read a string, or None for null."""
    size, position = read_int16(data, position)
    if size == -1:
        return None, position
    raw, position = take(data, position, size)
    return _text(raw), position


def read_nullable_compact_string(data: bytes, position: int) -> tuple[str | None, int]:
    """Read a compact string, or None for null."""
    size, position = read_uvarint(data, position)
    if size == 0:
        return None, position
    raw, position = take(data, position, size - 1)
    return _text(raw), position


def read_compact_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    """Read compact bytes; null is malformed."""
    size, position = read_uvarint(data, position)
    return take(data, position, size - 1)


def required(text: str | None) -> str:
    """Return ``text``; None is malformed."""
    if text is None:
        raise MalformedMessage("a required string is null")
    return text


def read_tagged_fields(data: bytes, position: int) -> tuple[dict[int, bytes], int]:
    """Read the raw values by tag."""
    count, position = read_uvarint(data, position)
    fields: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        fields[tag], position = take(data, position, size)
    return fields, position


def ensure_end(data: bytes, position: int) -> None:
    """Raise unless all of ``data`` has been read."""
    if position != len(data):
        raise MalformedMessage(f"{len(data) - position} bytes after the last field")
