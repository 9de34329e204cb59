"""Ports for brokers that need one before they start."""

import socket


def free_port() -> int:
    """Return a port that nothing listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
