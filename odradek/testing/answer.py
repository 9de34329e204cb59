"""The answer to a request that was put to a broker in this process: immediate, late, or never."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__tracebackhide__ = True


class Unanswered(Exception):
    """The time to wait is over and no answer has come."""


class Answer:
    """An awaitable response. ``done`` is true once it is complete; awaiting raises ConnectionError if there will be none."""

    def __init__(self) -> None:
        self.done = False
        self._response: Any = None
        self._error: Exception | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def response(self) -> Any:
        """Return the response; None if none is due (Produce with acks=0). Raises Unanswered before it is done."""
        if not self.done:
            raise Unanswered("the request has no answer yet")
        if self._error is not None:
            raise self._error
        return self._response

    def complete(self, response: Any) -> None:
        """Set the response."""
        self._response = response
        self._end()

    def fail(self, error: Exception) -> None:
        """Record that there will be no response."""
        if not self.done:
            self._error = error
            self._end()

    def convert(self, converted: Callable[[Any], Any]) -> Callable[[Any], None]:
        """Return a callback that completes the answer with ``converted``, or fails it with a ConnectionError of ``converted``."""

        def answer(response: Any) -> None:
            if self.done:
                return
            try:
                result = converted(response)
            except ConnectionError as error:
                self.fail(error)
            else:
                self.complete(result)

        return answer

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        return self.response

    def _end(self) -> None:
        self.done = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
