"""A group: members, partitions with lag, the last rebalances and their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.page.facts.group import group
from odradek.page.views import View, wanted

if TYPE_CHECKING:
    from odradek.page.views import Call


async def load(call: Call) -> dict[str, Any]:
    """Return the values of the template. Raises FactError."""
    found = await group(call.source, wanted(call, "id", "group"))
    return {
        "group": found,
        "clients": {member.member_id: member.client_id for member in found.members},
        "rebalances": sorted(found.rebalances or (), key=lambda each: each.at_ms, reverse=True),
        "most_lag": max((each.lag for each in found.partitions if each.lag is not None), default=0),
    }


GROUP = View("group", load, "overview")
