"""Ports for brokers that need one before they start, and keep it over their restarts."""

import contextlib
import random
import socket
import sys
from typing import Final

_HOST: Final = "127.0.0.1"
# Below those that the system gives to connections.
_PORTS: Final = (16_000, 32_000)
# A source without a seed. The tests' processes share one seed, and would draw the same ports.
_RANDOM: Final = random.SystemRandom()
_RESERVED: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 that belong to this process until it ends.

    While a node is down, another process's node must not get its port: the clients would go on there. On Linux a socket that is
    bound and does not listen keeps others away, and lets a broker listen (with SO_REUSEADDR, as all brokers do). Elsewhere the
    ports are free at this moment only.
    """
    sockets: list[socket.socket] = []
    while len(sockets) < count:
        with contextlib.suppress(OSError):
            sockets.append(_reserved(_RANDOM.randrange(*_PORTS)))
    ports: list[int] = [bound.getsockname()[1] for bound in sockets]
    if sys.platform == "linux":
        _RESERVED.extend(sockets)
    else:
        for bound in sockets:
            bound.close()
    return ports


def _reserved(port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.bind((_HOST, port))
        # SO_REUSEADDR comes after the bind: with it, several sockets may be bound to one port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError:
        bound.close()
        raise
    return bound
