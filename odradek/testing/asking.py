"""Requests put to a broker's core without a connection, and their answers: immediate, late, or never.

A request is a message for its handler, or a frame for dispatch.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.network.dispatch import CloseConnection
from odradek.common.context import ANONYMOUS, CLOSE_CONNECTION, NO_RESPONSE, Reply, RequestContext, Session
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import load, messages
from odradek.protocol.readers import ReadFrame, compile_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.protocol.api_keys import ApiKey

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


PEER: Final = ("127.0.0.1", 1)
_LENGTH_BYTES = 4


def ask_core(
    core: BrokerCore,
    api_key: ApiKey,
    version: int,
    client_id: str | None,
    request: Any,
    principal: str = ANONYMOUS,
    *,
    is_own: bool = False,
) -> Answer:
    """Pass ``request`` to the handler of an API. A fault of the handler is raised here.

    If the broker has a gate, a fault becomes an UNKNOWN_SERVER_ERROR answer instead: the gate has to see an answer. It does not
    see a request that ``is_own``: one of the process itself.
    """
    context = RequestContext(api_key, version, 0, client_id, _session(core, principal))
    outcome: Any = core.dispatcher.call(context, request, is_own=is_own)
    answer = Answer()
    answered = answer.convert(lambda response: _as_message(api_key, version, response))
    if isinstance(outcome, Reply):
        outcome.when_done(answered)
    else:
        answered(outcome)
    return answer


def ask_core_bytes(core: BrokerCore, frame: bytes, principal: str = ANONYMOUS) -> Answer:
    """Dispatch ``frame``. The answer fails with ConnectionAbortedError if a connection would be closed instead."""
    answer = Answer()
    answered = answer.convert(_as_frame)
    try:
        chunks = core.dispatcher.dispatch(frame, _session(core, principal), core.clock.monotonic_ms())
    except (MalformedMessage, CloseConnection) as error:
        answer.fail(ConnectionAbortedError(str(error)))
        return answer
    if isinstance(chunks, Reply):
        chunks.when_done(answered)
    else:
        answered(chunks)
    return answer


def _session(core: BrokerCore, principal: str = ANONYMOUS) -> Session:
    return Session(core.listener_names[0], PEER, principal)


def _as_message(api_key: ApiKey, version: int, response: Any) -> Any:
    if response is CLOSE_CONNECTION:
        raise ConnectionAbortedError("the broker closed the connection")
    if response is NO_RESPONSE:
        return None
    if isinstance(response, bytes):
        # The handler wrote the body itself.
        return _reader(api_key, version)(response, 0)[0]
    return response


@cache
def _reader(api_key: ApiKey, version: int) -> ReadFrame:
    return compile_reader(load(api_key, version, "response"), messages(api_key).classes["response"])


def _as_frame(chunks: list[Any] | MalformedMessage | None) -> bytes | None:
    if chunks is None:
        raise ConnectionAbortedError("the broker closed the connection without a response")
    if isinstance(chunks, MalformedMessage):
        raise ConnectionAbortedError(str(chunks))
    data = b"".join(chunk if isinstance(chunk, bytes) else chunk.read() for chunk in chunks)
    return data[_LENGTH_BYTES:] if data else None
