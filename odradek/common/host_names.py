"""Look up host names without blocking the event loop."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from odradek.timing.driver import OwnTasks
from odradek.timing.reply import Reply

_under_way = OwnTasks()


def is_address(name: str) -> bool:
    """Return whether ``name`` is an IP address and no host name; it may be in brackets, as in Java."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def look_up(names: Iterable[str]) -> Reply[dict[str, str | None]]:
    """Return the IP address of each host; None for an unknown name. Loop thread only."""
    reply: Reply[dict[str, str | None]] = Reply()
    _under_way.start(_answer(list(names), reply))
    return reply


async def _answer(names: list[str], reply: Reply[dict[str, str | None]]) -> None:
    found = await asyncio.gather(*map(_address, names))
    reply.complete(dict(zip(names, found, strict=True)))


async def _address(name: str) -> str | None:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None)
    except (OSError, ValueError):
        # UnicodeError is a ValueError: a name that no host can have.
        return None
    # Like Java, prefer IPv4.
    addresses = sorted(found, key=lambda each: each[0] != socket.AF_INET)
    return str(addresses[0][4][0])
