"""Ranges of addresses as hosts of access control entries (KIP-1276): ``10.1.0.0/16``, ``2001:db8::/32``.

An address has a range's length in common with it, from the first bit on. An IPv4 range has IPv4 addresses only, and 0.0.0.0 is in
none, as in Kafka. Source: ``CidrUtils``, ``SubnetUtils`` and ``SubnetUtils6`` of Apache Kafka 4.4.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

_IPV4: Final = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_LENGTH: Final = re.compile(r"\+?[0-9]+")
_MOST_IPV4_DIGITS: Final = 2


class AddressRange(NamedTuple):
    """The addresses from ``low`` to ``high``, as numbers, each of ``bits``."""

    bits: int
    low: int
    high: int


class InvalidRange(ValueError):
    """A text that is no range of addresses."""


def is_in_range(host: str, pattern: str) -> bool:
    """Return whether an address lies in a range. A pattern that is no range has no addresses."""
    if "/" not in pattern:
        return False
    try:
        bits, low, high = parsed_range(pattern)
        return low <= _number(host, bits) <= high
    except InvalidRange:
        return False


@lru_cache(maxsize=1024)
def parsed_range(pattern: str) -> AddressRange:
    """Return the range of a text. Raises InvalidRange."""
    address, _, length = pattern.partition("/")
    bits = 128 if ":" in pattern else 32
    if not _LENGTH.fullmatch(length) or int(length) > bits or (bits == 32 and not length.isdigit()):
        raise InvalidRange(f"its length is not a number from 0 to {bits}")
    if bits == 32 and len(length) > _MOST_IPV4_DIGITS:
        raise InvalidRange("its length has more than two digits")
    host_bits = (1 << (bits - int(length))) - 1
    low = _number(address, bits) & ~host_bits
    return AddressRange(bits, max(low, 1 if bits == 32 else 0), low | host_bits)


@lru_cache(maxsize=1024)
def _number(address: str, bits: int) -> int:
    """Return the number of an address. Raises InvalidRange if it is none of so many bits."""
    if bits == 32:
        found = _IPV4.fullmatch(address)
        octets = [int(each) for each in found.groups()] if found else [256]
        if max(octets) > 255:
            raise InvalidRange(f"{address} is not an IPv4 address")
        return int(IPv4Address(bytes(octets)))
    try:
        parsed = IPv6Address(address.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise InvalidRange(f"{address} is not an IPv6 address") from error
    if parsed.ipv4_mapped is not None:
        raise InvalidRange(f"{address} is an IPv4 address")
    return int(parsed)
