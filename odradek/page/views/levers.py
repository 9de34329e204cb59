"""The levers of the test kit: clock, faults, snapshots, the broker's life. They work while the broker is stopped, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.page.facts.levers import levers
from odradek.page.views import View

if TYPE_CHECKING:
    from odradek.page.views import Call


async def load(call: Call) -> dict[str, Any]:
    """Return the values of the template."""
    return {"levers": levers(call.broker, call.held) if call.has_token else None, "problem": ""}


LEVERS = View("levers", load)
