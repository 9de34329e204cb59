"""The wire format of Protocol Buffers, as far as a reader needs it: a message as a sequence of fields.

    message    fields, one after the other
    field      key varint = number << 3 | wire type, then the value
    0 VARINT   up to ten bytes of seven bits, the lowest first
    1 I64      eight bytes, little-endian
    2 LEN      length varint, then as many bytes: a message, a text, bytes, or packed numbers
    5 I32      four bytes, little-endian

Wire types 3 and 4 (groups) are of proto2, and malformed here. What a field means is its message's to say; a reader ignores the
numbers that it does not know. Source: protobuf.dev, "Encoding".
"""

import struct
from collections.abc import Iterator
from typing import Final

from odradek.protocol.errors import MalformedMessage

VARINT: Final = 0
I64: Final = 1
LEN: Final = 2
I32: Final = 5

_UINT64_MASK: Final = (1 << 64) - 1
_MOST_BITS: Final = 64
# What a byte of a varint has that no other one follows.
_MOST_OF_A_BYTE: Final = 0x7F
_MOST_NUMBER: Final = (1 << 29) - 1
_DOUBLE: Final = struct.Struct("<d")
_FIXED64: Final = struct.Struct("<Q")
_SFIXED64: Final = struct.Struct("<q")

# A varint as an unsigned integer, or the bytes of the others.
Value = int | bytes


def fields(message: bytes) -> Iterator[tuple[int, int, Value]]:
    """(number, wire type, value) of each field in order. Raises MalformedMessage."""
    position, end = 0, len(message)
    while position < end:
        key = message[position]
        position += 1
        # Nearly all keys and lengths are a single byte.
        if key > _MOST_OF_A_BYTE:
            key, position = _varint(message, position - 1)
        number, wire_type = key >> 3, key & 7
        if not 0 < number <= _MOST_NUMBER:
            raise MalformedMessage(f"protobuf: field number {number}")
        if wire_type == LEN:
            if position < end and message[position] <= _MOST_OF_A_BYTE:
                size = message[position]
                position += 1
            else:
                size, position = _varint(message, position)
        elif wire_type == I64:
            size = 8
        elif wire_type == I32:
            size = 4
        elif wire_type == VARINT:
            value, position = _varint(message, position)
            yield number, wire_type, value
            continue
        else:
            raise MalformedMessage(f"protobuf: wire type {wire_type}")
        start = position
        position += size
        if position > end:
            raise MalformedMessage(f"protobuf: a field of {size} bytes where {end - start} are left")
        yield number, wire_type, message[start:position]


def text(value: Value) -> str:
    """A string. Raises MalformedMessage if it is not UTF-8."""
    try:
        return str(_bytes(value), "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"protobuf: {error}") from None


def message(value: Value) -> bytes:
    """The bytes of an inner message."""
    return _bytes(value)


def signed(value: Value) -> int:
    """An int64, or an enum."""
    if not isinstance(value, int):
        raise MalformedMessage("protobuf: a field of another type")
    return value - (1 << 64) if value >> 63 else value


def double(value: Value) -> float:
    """A double."""
    return float(_DOUBLE.unpack(_fixed(value))[0])


def fixed64(value: Value) -> int:
    """A fixed64."""
    return int(_FIXED64.unpack(_fixed(value))[0])


def sfixed64(value: Value) -> int:
    """An sfixed64."""
    return int(_SFIXED64.unpack(_fixed(value))[0])


def packed_doubles(value: Value) -> list[float]:
    """Doubles of a repeated field: packed, or a single one."""
    return [each for (each,) in _DOUBLE.iter_unpack(_packed(value))]


def packed_fixed64(value: Value) -> list[int]:
    """fixed64 of a repeated field: packed, or a single one."""
    return [each for (each,) in _FIXED64.iter_unpack(_packed(value))]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte <= _MOST_OF_A_BYTE:
                return value & _UINT64_MASK, position
            shift += 7
            if shift >= _MOST_BITS + 6:
                raise MalformedMessage("protobuf: a varint of more than ten bytes")
    except IndexError:
        raise MalformedMessage("protobuf: it ends within a varint") from None


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise MalformedMessage("protobuf: a field of another type")
    return value


def _fixed(value: Value) -> bytes:
    data = _bytes(value)
    if len(data) != _DOUBLE.size:
        raise MalformedMessage("protobuf: a field of another type")
    return data


def _packed(value: Value) -> bytes:
    data = _bytes(value)
    if len(data) % _DOUBLE.size:
        raise MalformedMessage(f"protobuf: {len(data)} bytes of packed numbers")
    return data
