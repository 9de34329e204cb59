"""Zigzag varints, as records and their headers use them (protocol guide, "Record Format"; Protocol Buffers' sint32 and sint64).

Seven bits a byte, the least significant first; the top bit says that another byte follows. A value v is sent as 2v, a negative
one as -2v-1, so that small numbers of either sign are short.
"""

from odradek.protocol.errors import MalformedMessage


def read_varint(data: bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """(value, position behind it). Raises MalformedMessage where the data ends within it or it needs more than ``bits``."""
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
        raise MalformedMessage("the data ends within a varint") from None
    if byte >= 0x80 or raw >> bits:
        raise MalformedMessage(f"a varint of more than {bits} bits")
    return (raw >> 1) ^ -(raw & 1), position


def write_varint(out: bytearray, value: int) -> None:
    """Append ``value``, which fits an int64, to ``out``."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
