"""The requests to this broker: a sequence diagram that goes on, and the requests of each client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from odradek.page.facts.requests import clients, exchange, timeline
from odradek.page.facts.source import Missing
from odradek.page.views import View
from odradek.page.views.diagram import diagram

if TYPE_CHECKING:
    from odradek.page.views import Call

ROWS: Final = 80
# With a filter, the rows are looked for among so many.
_LOOKED_AT: Final = 1_000


async def load(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    client = call.query.text("client")
    found = await timeline(call.source, limit=_LOOKED_AT if client else ROWS)
    rows = [row for row in found.rows if not client or row.client_id == client][-ROWS:]
    return {
        "found": found,
        "client": client,
        "diagram": diagram(rows, found.client_ids, call.source.core.node_id),
        "clients": await clients(call.source),
    }


async def load_exchange(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    number = call.query.number("request")
    if number is None:
        raise Missing("the address names no request")
    if "exchange" not in call.memory:
        call.memory["exchange"] = await exchange(call.source, number)
    found: dict[str, Any] = call.memory["exchange"]
    return {"found": found, "text": json.dumps(found, indent=2, ensure_ascii=False, default=str)}


REQUESTS = View("requests", load, needs_timeline=True)
EXCHANGE = View("exchange", load_exchange, "requests", needs_timeline=True)
