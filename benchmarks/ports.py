"""Ports for brokers that need one before they start, and keep it over their restarts."""

import atexit

from odradek.cli.local_cluster.node import ReservedPorts


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 that belong to this process until it ends.

    While a node is down, another process's node must not get its port: the clients would go on there.
    """
    ports = ReservedPorts([0] * count)
    atexit.register(ports.close)
    return list(ports.numbers)
