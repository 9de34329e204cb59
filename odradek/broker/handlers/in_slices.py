"""Handlers whose work may be long: it is done in slices (``timing.slices``), and mostly done within the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable

    from odradek.timing.reply import Reply
    from odradek.timing.slices import Slices

T = TypeVar("T")
H = TypeVar("H", bound="Hashable")


def answer_in_slices(slices: Slices, work: Generator[Reply[Any] | None, Any, T], weight: int = 0) -> T | Reply[T]:
    """The response that ``work`` returns, or a Reply of it. Raises what ``work`` does, if it does so at once."""
    reply = slices.run(work, weight)
    if not reply.done:
        return reply
    if isinstance(reply.response, Exception):
        raise reply.response
    response: T = reply.response
    return response


def each_once(
    items: Iterable[H], answer: Callable[[H], Generator[Reply[Any] | None, Any, T]]
) -> Generator[Reply[Any] | None, Any, list[T]]:
    """The answers to ``items``, in their order; an item that is named again has the same one, which is made once."""
    asked = list(items)
    answers: dict[H, T] = {}
    for item in asked:
        if item not in answers:
            answers[item] = yield from answer(item)
            yield None
    return [answers[item] for item in asked]
