"""The views of the page: each reads the facts of its URL's query, and returns the values of its template.

A view's template has the view's name. Blocks whose name begins with ``live_`` are rendered again while somebody looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.page.facts.source import Missing, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.http.control.route import ControlObjects
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
    """A request for a view: the query, and what answers it.

    ``running_source`` is None while the broker does not run. ``has_token``: the levers are there. ``memory`` lasts from one
    rendering of a live view to the next.
    """

    running_source: Source | None
    query: Query
    broker: Broker
    held: ControlObjects
    has_token: bool
    memory: dict[str, Any]

    @property
    def source(self) -> Source:
        """Return the source of facts. Raises Unavailable."""
        if self.running_source is None:
            raise Unavailable("the broker is not running")
        return self.running_source


class View(NamedTuple):
    """A view. ``load`` raises FactError. ``place`` is its place in the navigation. ``needs_timeline``: it shows requests."""

    name: str
    load: Callable[[Call], Awaitable[dict[str, Any]]]
    place: str = ""
    needs_timeline: bool = False


def wanted(call: Call, field: str, what: str) -> str:
    """Return a field of the query. Raises Missing."""
    if not (text := call.query.text(field)):
        raise Missing(f"the address names no {what}")
    return text
