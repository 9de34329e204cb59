"""The overview: brokers, topics, groups, clients, and the last errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.page.facts.overview import overview
from odradek.page.views import View

if TYPE_CHECKING:
    from odradek.page.views import Call


async def load(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    found = await overview(call.source)
    internal = [topic for topic in found.topics if topic.is_internal]
    return {
        "found": found,
        "topics": [topic for topic in found.topics if not topic.is_internal] + internal,
        "clients": [client for client in found.clients if not client.is_page],
        "own": sum(client.is_page for client in found.clients),
    }


OVERVIEW = View("overview", load)
