"""Varints: unsigned for lengths, counts and tags (KIP-482), zigzag in records (protocol guide, "Record Format").

Seven bits in each byte, the least significant first; a set top bit means that another byte follows. Zigzag encodes a value v >=
0 as 2v and a negative one as -2v-1, so that small numbers of either sign are short.
"""

from typing import Final, NoReturn

from odradek.protocol.errors import MalformedMessage

# A compact string could be longer, but its form in older versions and on disk could not. Kafka refuses longer ones.
LONGEST_STRING: Final = 0x7FFF
SMALL_UVARINTS: Final = tuple(bytes((value,)) for value in range(128))


def uvarint(value: int) -> bytes:
    """Encode a non-negative ``value`` as an unsigned varint."""
    if value <= 0x7F:
        return SMALL_UVARINTS[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def refuse_string(size: int) -> NoReturn:
    """Raise MalformedMessage for a compact string of ``size`` bytes, more than LONGEST_STRING."""
    raise MalformedMessage(f"a string has {size} bytes, which is too long")


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it) of an unsigned varint of at most five bytes. Raises MalformedMessage."""
    try:
        value = data[position]
        position += 1
        if value < 0x80:
            return value, position
        value &= 0x7F
        for shift in (7, 14, 21, 28):
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
    except IndexError:
        raise MalformedMessage("the data ends inside a varint") from None
    raise MalformedMessage("a varint has more than five bytes")


def read_varint(data: bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """Return (value, position after it). Raises MalformedMessage if the data ends within it or the value exceeds ``bits``."""
    try:
        byte = data[position]
        position += 1
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position
        raw = byte & 0x7F
        shift = 7
        while byte >= 0x80 and shift < bits:
            byte = data[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        raise MalformedMessage("the data ends inside a varint") from None
    if byte >= 0x80 or raw >> bits:
        raise MalformedMessage(f"a varint has more than {bits} bits")
    return (raw >> 1) ^ -(raw & 1), position


def write_varint(out: bytearray, value: int) -> None:
    """Append ``value``, an int64, to ``out``."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
