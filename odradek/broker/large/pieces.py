"""Pieces of a large request: requests with a part of its items each, handled one after the other.

The ``pieces`` of an API's module name the arrays of the items. The pieces' answers are joined as if there had been one request.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

Path = tuple[str, ...]
TOPICS: Final = ("topics", "partitions")
# For items written to a log, or with hundreds of answers each: they take up to a tenth of a millisecond.
FEW: Final = 50


class Repeated(Enum):
    """The treatment of an item that a request names twice."""

    # Handled twice, and answered twice.
    AS_OTHERS = 0
    ONCE = 1
    # Handled once, and answered twice.
    ALIKE = 2


class Pieces(NamedTuple):
    """The fields of an API's item arrays, in the request (``asked``) and in the response (``answered``).

    The first of ``asked`` is a field of the request, the next one a field of that array's items. A piece has up to
    ``most_items`` innermost items. ``repeated`` is the treatment of repeated items of the outermost array.
    """

    asked: Path
    answered: Path
    most_items: int = 500
    repeated: Repeated = Repeated.AS_OTHERS


def cut(request: Any, pieces: Pieces) -> Iterator[Any]:
    """Yield the pieces of ``request``, which together have all its items: at least one piece."""
    field = pieces.asked[0]
    items = getattr(request, field)
    if not items:
        yield request
        return
    if pieces.repeated is not Repeated.AS_OTHERS:
        items = list(dict.fromkeys(items))
    for part in _cut(items, pieces.asked[1:], pieces.most_items):
        yield request._replace(**{field: part})


def _cut(items: Sequence[Any], inside: Path, most: int) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for item in items:
        inner = getattr(item, inside[0]) if inside else None
        item_size = 1 if not inner else _size(inner, inside[1:])
        if part and size + item_size > most:
            yield part
            part, size = [], 0
        if inner and item_size > most:
            for inner_part in _cut(inner, inside[1:], most):
                yield [item._replace(**{inside[0]: inner_part})]
        else:
            part.append(item)
            size += item_size
    if part:
        yield part


def _size(items: Sequence[Any], inside: Path) -> int:
    if not inside:
        return len(items)
    return sum(_size(getattr(item, inside[0]) or (), inside[1:]) or 1 for item in items)


class Joined:
    """The response to ``request``, joined from the responses to its pieces in their order."""

    def __init__(self, request: Any, pieces: Pieces) -> None:
        self._asked: Sequence[Any] = getattr(request, pieces.asked[0]) if pieces.repeated is Repeated.ALIKE else ()
        self._field = pieces.answered[0]
        self._inside = pieces.answered[1:]
        self._first: Any = None
        self._items: list[Any] = []

    def add(self, response: Any) -> None:
        """Add the next piece's response."""
        if self._first is None:
            self._first = response
        _absorb(self._items, getattr(response, self._field), self._inside)

    def response(self) -> Any:
        """Return the joined response."""
        distinct = dict.fromkeys(self._asked)
        if len(self._asked) > len(distinct) == len(self._items):
            answers = dict(zip(distinct, self._items, strict=True))
            self._items = [answers[item] for item in self._asked]
        return self._first._replace(**{self._field: self._items})


def _absorb(known: list[Any], items: Sequence[Any], inside: Path) -> None:
    """Append ``items``. The first one is merged with the last known one if both are of the same topic, group and so on."""
    first = 0
    if inside and known and items and _is_same(known[-1], items[0], inside[0]):
        _absorb(getattr(known[-1], inside[0]), getattr(items[0], inside[0]), inside[1:])
        first = 1
    known.extend(items[first:])
    if inside and len(items) > first:
        # Copy its inner items: the next piece may continue them.
        inner: list[Any] = []
        _absorb(inner, getattr(known[-1], inside[0]), inside[1:])
        known[-1] = known[-1]._replace(**{inside[0]: inner})


def _is_same(one: Any, other: Any, inner: str) -> bool:
    return bool(one._replace(**{inner: ()}) == other._replace(**{inner: ()}))
