"""Handlers with long work: it is done in slices (``timing.slices``), and mostly ends within the first slice.

Longer work waits while responses have reached their memory limit (``large.response_memory``), and ends when its client
disconnects.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from odradek.broker.large.response_memory import NoRoom
from odradek.common.context import CLOSE_CONNECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable

    from odradek.broker.large.response_memory import ResponseMemory
    from odradek.common.context import RequestContext, Session, Signal
    from odradek.timing.reply import Reply
    from odradek.timing.slices import Slices

T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H", bound="Hashable")
# Items made without a pause, at some microseconds each.
TOGETHER: Final = 250
# A response, or CLOSE_CONNECTION; or a Reply of these.
Answer: TypeAlias = "T | Signal | Reply[T | Signal]"


class SlicedServices(Protocol):
    """The services for long work on the loop, for large responses."""

    @property
    def slices(self) -> Slices:
        """The queue of slices."""

    @property
    def response_memory(self) -> ResponseMemory | None:
        """The memory of large responses; None if it has no limit."""


def answer_in_slices(services: SlicedServices, context: RequestContext, work: Generator[Reply[Any] | None, Any, T]) -> Answer[T]:
    """Return the response that ``work`` returns, or a Reply of it. Exceptions within the first slice are raised."""
    return now_or_later(services.slices.run(_while_wanted(services, context.session, work)))


def now_or_later(reply: Reply[T]) -> T | Reply[T]:
    """Return the response, or the Reply if it is not done. If the response is an exception, raise it."""
    if not reply.done:
        return reply
    if isinstance(reply.response, Exception):
        raise reply.response
    response: T = reply.response
    return response


def _while_wanted(
    services: SlicedServices, session: Session, work: Generator[Reply[Any] | None, Any, T]
) -> Generator[Reply[Any] | None, Any, T | Signal]:
    """Run ``work`` while its client is connected and there is room for its response. Raises NoRoom, and ``work``'s exceptions."""
    slices, memory = services.slices, services.response_memory
    has_connection = session.connection is not None
    first = slices.slices
    value = None
    while True:
        try:
            waits_for = work.send(value)
        except StopIteration as end:
            response: T = end.value
            return response
        value = yield waits_for
        if slices.slices == first:
            continue
        if has_connection and session.connection is None:
            return CLOSE_CONNECTION
        while memory is not None and (waits_for_room := memory.room(session)) is not None:
            if (yield waits_for_room) is False:
                raise NoRoom


def with_pauses(items: Iterable[T], make: Callable[[T], R], together: int = TOGETHER) -> Generator[None, None, list[R]]:
    """Return ``make(item)`` for each item; pause after ``together`` of them. ``items`` must not change meanwhile."""
    made: list[R] = []
    items = iter(items)
    while part := [make(item) for item in islice(items, together)]:
        made += part
        yield None
    return made


def each_once(
    items: Iterable[H], answer: Callable[[H], Generator[Reply[Any] | None, Any, T]]
) -> Generator[Reply[Any] | None, Any, list[T]]:
    """Return the answers to ``items``, in their order. The answer to a repeated item is made once."""
    asked = list(items)
    answers: dict[H, T] = {}
    for item in asked:
        if item not in answers:
            answers[item] = yield from answer(item)
            yield None
    return [answers[item] for item in asked]
