"""The broker without sockets, held by ``async with`` in the caller's event loop, and by ``with`` without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.blocking import BlockingBroker
from odradek.testing.in_process import InProcessBroker

if TYPE_CHECKING:
    from types import TracebackType

__tracebackhide__ = True


class SocketlessBroker(InProcessBroker):
    """See ``InProcessBroker``. With ``with``, it is a ``BlockingBroker`` that is entered."""

    _blocking: BlockingBroker | None = None

    def __enter__(self) -> BlockingBroker:
        self._blocking = BlockingBroker(self)
        return self._blocking.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._blocking is not None:
            self._blocking.__exit__(kind, error, traceback)
