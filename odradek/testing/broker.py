"""The broker of a test suite: on the caller's event loop with ``async with``, in a thread of its own with ``with``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.testing.broker_thread import BrokerThread
from odradek.testing.listening import ListeningBroker
from odradek.testing.threaded import ThreadedBroker

if TYPE_CHECKING:
    from types import TracebackType


class Broker(ListeningBroker):
    """See ``ListeningBroker``. With ``with``, it is a ``ThreadedBroker`` that is entered."""

    _threaded: ThreadedBroker | None = None

    def __enter__(self) -> ThreadedBroker:
        threaded = ThreadedBroker(BrokerThread(self))
        threaded.start()
        self._threaded = threaded
        return threaded

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._threaded is not None:
            self._threaded.__exit__(kind, error, traceback)
