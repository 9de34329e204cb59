"""Maps an id to its coordinator partition: Java's ``String.hashCode``, made positive, modulo the number of partitions.

    h = 31 * h + unit      over the UTF-16 code units, in 32 bits with overflow

Kafka's clients, tools and brokers find a group's partition this way, so all of them agree on it.
"""

from typing import Final

_INT32_MASK: Final = 0xFFFFFFFF
_SIGN_BIT: Final = 0x80000000
_MAX_INT32: Final = 0x7FFFFFFF


def java_string_hash(text: str) -> int:
    """Return Java's ``text.hashCode()``, a signed 32-bit integer. A character beyond the BMP counts as its two surrogates."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _INT32_MASK
    return value - (1 << 32) if value & _SIGN_BIT else value


def partition_for(coordinated_id: str, partition_count: int) -> int:
    """Return the partition that coordinates a group id or transactional id: Kafka's ``Utils.abs(hash) % count``.

    Java cannot negate Integer.MIN_VALUE; Kafka counts it as 0.
    """
    value = java_string_hash(coordinated_id)
    return (0 if value < -_MAX_INT32 else abs(value)) % partition_count
