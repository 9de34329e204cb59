"""Addresses of clients as access control lists have them: as Java prints them."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address


@lru_cache(maxsize=1024)
def acl_host(peer: str) -> str:
    """``::1`` is ``0:0:0:0:0:0:0:1``, and an IPv4 address within an IPv6 one is the IPv4 address. What is none is as it is."""
    bare, percent, scope = peer.partition("%")
    try:
        address = ip_address(bare)
    except ValueError:
        return peer
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":")) + percent + scope
