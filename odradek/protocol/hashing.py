"""The two hashes by which Kafka's clients, tools and brokers find a partition: a coordinator's by an id, a topic's by a key.

    java_string_hash    h = 31 * h + unit      over the UTF-16 code units, in 32 bits with overflow: Java's ``String.hashCode``
    murmur2             of a key's bytes

Sources: ``Utils.murmur2``, ``Utils.abs`` and ``BuiltInPartitioner.partitionForKey`` of Apache Kafka.
"""

from typing import Final

_SIGN_BIT: Final = 0x80000000
_MAX_INT32: Final = 0x7FFFFFFF
_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_INT32_MASK: Final = 0xFFFFFFFF


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


def murmur2(data: bytes) -> int:
    """Return the murmur2 hash as an unsigned number."""
    length = len(data)
    value = (_SEED ^ length) & _INT32_MASK
    whole = length - length % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _M & _INT32_MASK
        word = (word ^ word >> 24) * _M & _INT32_MASK
        value = value * _M & _INT32_MASK ^ word
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _INT32_MASK
    value = (value ^ value >> 13) * _M & _INT32_MASK
    return value ^ value >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
