"""Looking up host names without making the loop wait."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from odradek.timing.reply import Reply

# The loop does not hold the tasks that it runs.
_under_way: set[asyncio.Task[None]] = set()


def is_address(name: str) -> bool:
    """Return whether ``name`` is an IP address rather than the name of a host; it may stand in brackets, as Java has it."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def look_up(names: Iterable[str]) -> Reply[dict[str, str | None]]:
    """The IP address of each host; None for a name that no host has. On the loop thread."""
    reply: Reply[dict[str, str | None]] = Reply()
    task = asyncio.get_running_loop().create_task(_answer(list(names), reply))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
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
    # As Java has it: of a host with both kinds of addresses, one of IPv4.
    addresses = sorted(found, key=lambda each: each[0] != socket.AF_INET)
    return str(addresses[0][4][0])
