"""XXH3, 64 bits, seed 0: the hash by which Kafka tells whether the topics of a group have changed.

The length decides the way: up to 16 bytes, up to 128, up to 240, and beyond, where eight accumulators take stripes of 64 bytes.
All arithmetic is modulo 2^64 (``_M``).

Source: the specification of XXH3 (xxHash, doc/xxhash_spec.md).
"""

from struct import Struct
from typing import Final

_M: Final = (1 << 64) - 1
_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_MIX_1: Final = 0x165667919E3779F9
_MIX_2: Final = 0x9FB21C651E98DF25
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_SECRET_LIMIT: Final = len(_SECRET) - 64
_STRIPES_OF_BLOCK: Final = _SECRET_LIMIT // 8
_INITIAL: Final = (_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1)

_EIGHT: Final = Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """The hash of ``data``, as a signed number like Java's."""
    length = len(data)
    if length <= 16:
        found = _short(data)
    elif length <= 128:
        found = _up_to_128(data)
    elif length <= 240:
        found = _up_to_240(data)
    else:
        found = _long(data)
    return found - (1 << 64) if found >> 63 else found


def _u64(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def _u32(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 4], "little")


def _folded(one: int, other: int) -> int:
    product = one * other
    return (product & _M) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MIX_1 & _M
    return value ^ (value >> 32)


def _avalanche_of_xxh64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64_2 & _M
    value ^= value >> 29
    value = value * _PRIME64_3 & _M
    return value ^ (value >> 32)


def _short(data: bytes) -> int:
    length = len(data)
    if length > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, length - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((length + swapped + high + _folded(low, high)) & _M)
    if length > 3:
        value = (_u32(data, length - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _MIX_2 & _M
        value ^= (value >> 35) + length
        value = value * _MIX_2 & _M
        return value ^ (value >> 28)
    if length:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[length - 1] | length << 8
        return _avalanche_of_xxh64(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_of_xxh64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _M


def _mixed(data: bytes, position: int, secret: int) -> int:
    return _folded(_u64(data, position) ^ _u64(_SECRET, secret), _u64(data, position + 8) ^ _u64(_SECRET, secret + 8))


def _up_to_128(data: bytes) -> int:
    length = len(data)
    total = length * _PRIME64_1
    for step in range((length - 1) // 32, -1, -1):
        total += _mixed(data, step * 16, step * 32) + _mixed(data, length - 16 * (step + 1), step * 32 + 16)
    return _avalanche(total & _M)


def _up_to_240(data: bytes) -> int:
    length = len(data)
    total = length * _PRIME64_1 + sum(_mixed(data, step * 16, step * 16) for step in range(8))
    total = _avalanche(total & _M)
    total += sum(_mixed(data, step * 16, (step - 8) * 16 + 3) for step in range(8, length // 16))
    return _avalanche((total + _mixed(data, length - 16, 136 - 17)) & _M)


def _long(data: bytes) -> int:
    length = len(data)
    accumulators = list(_INITIAL)
    last = (length - 1) // 64
    for stripe in range(last):
        place = stripe % _STRIPES_OF_BLOCK
        _accumulate(accumulators, data, stripe * 64, place * 8)
        if place == _STRIPES_OF_BLOCK - 1:
            _scramble(accumulators)
    _accumulate(accumulators, data, length - 64, _SECRET_LIMIT - 7)
    total = length * _PRIME64_1
    keys = _EIGHT.unpack_from(_SECRET, 11)
    for place in range(0, 8, 2):
        total += _folded(accumulators[place] ^ keys[place], accumulators[place + 1] ^ keys[place + 1])
    return _avalanche(total & _M)


def _accumulate(accumulators: list[int], data: bytes, position: int, secret: int) -> None:
    keys = _EIGHT.unpack_from(_SECRET, secret)
    for place, value in enumerate(_EIGHT.unpack_from(data, position)):
        key = value ^ keys[place]
        accumulators[place ^ 1] = (accumulators[place ^ 1] + value) & _M
        accumulators[place] = (accumulators[place] + (key & 0xFFFFFFFF) * (key >> 32)) & _M


def _scramble(accumulators: list[int]) -> None:
    keys = _EIGHT.unpack_from(_SECRET, _SECRET_LIMIT)
    for place, value in enumerate(accumulators):
        accumulators[place] = ((value ^ (value >> 47)) ^ keys[place]) * _PRIME32_1 & _M
