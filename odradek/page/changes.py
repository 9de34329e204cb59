"""The changes that the page makes, by the name in their address: each reads its form, and acts with the rights of its user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.page.views import Call


class Outcome(NamedTuple):
    """The result of a change: a line for people, and where to go on, if not where the form was."""

    text: str
    location: str = ""


class Change(NamedTuple):
    """A change. ``make`` raises ActionFailed and FactError. ``needs_token``: it is a lever."""

    title: str
    make: Callable[[Call], Awaitable[Outcome]]
    needs_token: bool = False


CHANGES: Final[dict[str, Change]] = {}
