"""The broker without sockets: used with ``async with`` in the caller's event loop, or with ``with`` without one.

Without a loop, each call runs the broker's own loop until the call is done. Between two calls the broker stands still, so
nothing depends on the caller's timing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

from odradek.testing.in_process import InProcessBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.protocol.api_keys import ApiKey
    from odradek.testing.asking import Answer

__tracebackhide__ = True

T = TypeVar("T")


class BlockingBroker:
    """An ``InProcessBroker`` and the loop that it runs on, by default its own. ``broker`` has the other methods."""

    def __init__(self, broker: InProcessBroker, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.broker = broker
        self._loop = loop or asyncio.new_event_loop()
        self._owns_loop = loop is None

    @property
    def core(self) -> BrokerCore:
        """See ``InProcessBroker``."""
        return self.broker.core

    def start(self) -> None:
        """See ``InProcessBroker``; also after ``stop``, ``kill`` and ``lose_power``."""
        self.run(self.broker.start())

    def stop(self) -> None:
        """See ``InProcessBroker``."""
        self.run(self.broker.stop())

    def kill(self) -> None:
        """See ``InProcessBroker``."""
        self.call(self.broker.kill)

    def lose_power(self, *, keep_some: bool = False) -> None:
        """See ``InProcessBroker``."""
        self.call(lambda: self.broker.lose_power(keep_some=keep_some))

    def send(self, api_key: ApiKey, request: Any, version: int, *, client_id: str | None = "client") -> Answer:
        """See ``InProcessBroker``. Pass the answer to ``wait`` later."""
        return self.call(lambda: self.broker.send(api_key, request, version, client_id=client_id))

    def ask(self, api_key: ApiKey, request: Any, version: int, *, client_id: str | None = "client", within_ms: int = 0) -> Any:
        """See ``InProcessBroker``."""
        return self.run(self.broker.ask(api_key, request, version, client_id=client_id, within_ms=within_ms))

    def ask_bytes(self, frame: bytes, *, within_ms: int = 0) -> bytes | None:
        """See ``InProcessBroker``."""
        return self.run(self.broker.ask_bytes(frame, within_ms=within_ms))

    def wait(self, answer: Answer, within_ms: int = 0) -> Any:
        """See ``InProcessBroker``."""
        return self.run(self.broker.wait(answer, within_ms))

    def advance(self, duration_ms: int) -> None:
        """See ``InProcessBroker``."""
        self.run(self.broker.advance(duration_ms))

    def settle(self) -> None:
        """See ``InProcessBroker``."""
        self.run(self.broker.settle())

    def call(self, function: Callable[[], T]) -> T:
        """Call ``function`` on the broker's loop."""

        async def run() -> T:
            return function()

        return self.run(run())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` on the broker's loop."""
        return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        """Stop the broker if it runs, and close its own loop."""
        try:
            if self.broker.is_running:
                self.stop()
        finally:
            if self._owns_loop and not self._loop.is_closed():
                self._loop.run_until_complete(asyncio.sleep(0))
                self._loop.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class SocketlessBroker(InProcessBroker):
    """See ``InProcessBroker``. Its ``with`` enters a ``BlockingBroker``."""

    _blocking: BlockingBroker | None = None

    def __enter__(self) -> BlockingBroker:
        self._blocking = BlockingBroker(self)
        return self._blocking.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._blocking is not None:
            self._blocking.__exit__(kind, error, traceback)
