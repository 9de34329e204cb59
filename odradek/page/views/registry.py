"""All views, by name, and the short ones themselves: those that show what their facts return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.client.streams_groups import tasks_of
from odradek.page.facts.cluster import cluster
from odradek.page.facts.findings import findings
from odradek.page.facts.group import MOST_IN_FLIGHT, group
from odradek.page.facts.levers import levers
from odradek.page.facts.overview import overview
from odradek.page.facts.transactions import transactions
from odradek.page.views import View, wanted
from odradek.page.views.requests import EXCHANGE, REQUESTS
from odradek.page.views.topic import RECORD, TOPIC, TOPIC_CONFIGS, TOPIC_LOG
from odradek.page.views.topology import LINE, WIDTH, topology_picture

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.page.facts.source import Source
    from odradek.page.views import Call


def _of_cluster(name: str, facts: Callable[[Source], Awaitable[Any]]) -> View:
    """Return a view of facts that need no query."""

    async def load(call: Call) -> dict[str, Any]:
        return {"found": await facts(call.source)}

    return View(name, load)


async def _overview(call: Call) -> dict[str, Any]:
    found = await overview(call.source)
    return {
        "found": found,
        "clients": [client for client in found.clients if not client.is_page],
        "own": sum(client.is_page for client in found.clients),
    }


async def _group(call: Call) -> dict[str, Any]:
    found = await group(call.source, wanted(call, "id", "group"))
    streams = found.about.streams
    return {
        "group": found,
        "clients": {member.member_id: member.client_id for member in found.about.members},
        "most_in_flight": MOST_IN_FLIGHT,
        "tasks": () if streams is None else tasks_of(streams),
        "processes": {} if streams is None else {member.member_id: member.process_id for member in streams.members},
        "topology": None if streams is None or streams.topology is None else topology_picture(streams.topology),
        "box_width": WIDTH,
        "line_height": LINE,
        "most_lag": max((each.lag for each in found.partitions if each.lag is not None), default=0),
    }


async def _levers(call: Call) -> dict[str, Any]:
    return {"levers": levers(call.broker, call.held) if call.has_token else None, "problem": ""}


_ALL: Final = (
    View("overview", _overview),
    TOPIC,
    TOPIC_LOG,
    TOPIC_CONFIGS,
    RECORD,
    View("group", _group, "overview"),
    _of_cluster("transactions", transactions),
    REQUESTS,
    EXCHANGE,
    View("levers", _levers),
    _of_cluster("cluster", cluster),
    _of_cluster("findings", findings),
)
VIEWS: Final[dict[str, View]] = {view.name: view for view in _ALL}
