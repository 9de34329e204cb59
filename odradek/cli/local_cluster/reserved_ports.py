"""Ports that stay a cluster's own, also while the broker of one is down.

On Linux a socket that is bound and does not listen keeps the system from giving its port to somebody's outgoing connection, and
lets a broker listen there (both have SO_REUSEADDR). Elsewhere the port is found free, and released.
"""

import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from odradek.cli.local_cluster.plan import HOST


class PortTaken(Exception):
    """Somebody listens on a port that was asked for."""


class ReservedPorts:
    """``numbers`` in the order that was asked for, where 0 stands for any free port. A context manager. Raises PortTaken."""

    def __init__(self, wanted: Sequence[int]) -> None:
        with ExitStack() as on_failure:
            self._sockets = [on_failure.enter_context(_bind(port)) for port in wanted]
            self.numbers: tuple[int, ...] = tuple(bound.getsockname()[1] for bound in self._sockets)
            on_failure.pop_all()
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Release them."""
        for bound in self._sockets:
            with suppress(OSError):
                bound.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _bind(port: int) -> socket.socket:
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
    except OSError as error:
        bound.close()
        raise PortTaken(f"{HOST}:{port}: {error.strerror}") from error
    return bound
