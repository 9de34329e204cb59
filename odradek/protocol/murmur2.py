"""The partition of a key, as Kafka's own clients choose it: its murmur2 hash, without the sign, modulo the number of partitions.

Source: ``Utils.murmur2`` and ``BuiltInPartitioner.partitionForKey`` of Apache Kafka.
"""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the murmur2 hash as an unsigned number."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    whole = length - length % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = value * _M & _MASK ^ word
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
