"""The views of the page: each reads the facts of its URL's query, and returns the values of its template.

A view's template has the view's name. Blocks whose name begins with ``live_`` are rendered again while somebody looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.page.facts.source import Missing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.page.facts.levers import Held
    from odradek.page.facts.source import Source
    from odradek.testing.threaded import Broker


class Query:
    """The fields of a URL's query or of a form, each with one value or several."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    def __repr__(self) -> str:
        return f"Query({', '.join(self._fields)})"

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a field."""
        values = self._fields.get(name)
        return values[-1] if values else default

    def texts(self, name: str) -> list[str]:
        """Return all values of a field."""
        return list(self._fields.get(name, ()))

    def number(self, name: str) -> int | None:
        """Return a whole number; None if there is none."""
        return whole(self.text(name))

    def key(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the fields, to compare them."""
        return tuple((name, tuple(values)) for name, values in sorted(self._fields.items()))

    def items(self) -> list[tuple[str, str]]:
        """Return each name with each of its values."""
        return [(name, value) for name, values in self._fields.items() for value in values]


def whole(text: str) -> int | None:
    """Return a whole number of at most 18 digits; None if the text is not one."""
    text = text.strip().replace(",", "").replace("_", "")
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 18 else None


class Call(NamedTuple):
    """A request for a view: the facts' source, the query, and what the user may do.

    ``memory`` lasts from one rendering of a live view to the next. ``token_given``: the levers are there.
    """

    source: Source
    query: Query
    broker: Broker
    held: Held
    is_read_only: bool
    token_given: bool
    memory: dict[str, Any]


class View(NamedTuple):
    """A view. ``load`` raises FactError. ``needs_timeline``: it shows requests."""

    name: str
    load: Callable[[Call], Awaitable[dict[str, Any]]]
    needs_timeline: bool = False


def wanted(call: Call, field: str, what: str) -> str:
    """Return a field of the query. Raises Missing."""
    if not (text := call.query.text(field)):
        raise Missing(f"the address names no {what}")
    return text
