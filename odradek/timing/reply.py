"""A response that is not available yet, returned in place of one that has to wait."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


class Reply(Generic[T]):
    """A response that is completed once. Its only owner is then called back, on the loop thread.

    ``is_decided``: the request's effects precede those of any request that begins now, and only the response waits.
    ``response`` is None until the reply is ``done``.

    A reply that may fail has a ``T | KafkaError``; its owner converts the error into a response (``then``). If the conversion
    raises an exception, the exception is the response.
    """

    __slots__ = ("_convert", "_when_done", "done", "is_decided", "response")

    def __init__(self) -> None:
        self.done = False
        self.is_decided = False
        self.response: Any = None
        self._convert: Callable[[Any], Any] | None = None
        self._when_done: Callable[[Any], object] | None = None

    def complete(self, response: T) -> None:
        """Deliver the response. Raises RuntimeError for a second one."""
        if self.done:
            raise RuntimeError("this reply is already completed")
        self.done = True
        # A callback may hold this reply: the cycle would be left to the garbage collector.
        convert = self._convert
        if convert is None:
            self.response = response
        else:
            self._convert = None
            try:
                self.response = convert(response)
            except Exception as error:  # noqa: BLE001  the reply's owner waits for it, not the code that completes it
                self.response = error
        when_done = self._when_done
        if when_done is not None:
            self._when_done = None
            when_done(self.response)

    def then(self, convert: Callable[[T], R]) -> Reply[R]:
        """Convert the response by ``convert`` when it is complete. Return this reply. May be called once."""
        if self.done:
            self.response = convert(self.response)
        elif self._convert is not None:
            raise RuntimeError("this reply is already converted")
        else:
            self._convert = convert
        return cast("Reply[R]", self)

    def when_done(self, callback: Callable[[T], object]) -> None:
        """Call back with the response, immediately if the reply is done. May be called once."""
        if self.done:
            callback(self.response)
        elif self._when_done is not None:
            raise RuntimeError("this reply already has an owner")
        else:
            self._when_done = callback


def replied(response: T) -> Reply[T]:
    """Return a reply that is complete."""
    reply: Reply[T] = Reply()
    reply.complete(response)
    return reply


def all_of(replies: Sequence[Reply[T]]) -> Reply[list[T]]:
    """Return a reply that is complete when all ``replies`` are, with their responses. Nobody else may wait for them."""
    whole: Reply[list[T]] = Reply()
    responses: list[Any] = [None] * len(replies)
    left = len(replies)

    def arrived(place: int, response: T) -> None:
        nonlocal left
        responses[place] = response
        left -= 1
        if not left:
            whole.complete(responses)

    if not replies:
        whole.complete(responses)
    for place, each in enumerate(replies):
        each.when_done(partial(arrived, place))
    return whole
