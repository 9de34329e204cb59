"""The requests to this broker: the timeline as rows of a sequence diagram, and what each client has asked and been told.

Both are of the time since a page was opened (``Watch``), and of this broker only. A user needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.broker.metrics.requests import request_name
from odradek.page.facts.source import Missing, require_cluster
from odradek.testing.timeline.events import Decision, Exchange, cut, decision, outcome, short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.page.facts.source import Source
    from odradek.page.watch import ApiTally, ClientKey, ClientTally
    from odradek.protocol.otlp_metrics import DataPoint

MOST_CLIENTS: Final = 500
# The metrics of a client, and the characters of a request in short.
MOST_MEASURES: Final = 300
_SHORT: Final = 300


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of the diagram. ``place`` orders all rows. ``kind`` is "request", "answer" or "decision".

    ``request`` is the place of the request: an answer has that of its own request, and ``exchange`` returns both. A decision of
    a coordinator has no connection. ``text`` is the request in short, the outcome of the answer, or the decision. An answer's
    ``errors`` are names.
    """

    place: int
    request: int
    at_ms: int
    kind: str
    text: str
    connection: int | None = None
    client_id: str = ""
    api: str = ""
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """Rows in order, and the client id of each connection. ``is_cut``: there are earlier ones."""

    rows: tuple[TimelineRow, ...]
    client_ids: dict[int, str]
    is_cut: bool


class Measure(NamedTuple):
    """A metric that a client has pushed (KIP-714): a number, or the sum of a histogram, and of how many."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    times: int | None


@dataclass(frozen=True, slots=True)
class ClientRequests:
    """A client, by client id, address and user, with the tallies of its requests by their names, the most frequent first."""

    about: ClientKey
    software: str
    last_ms: int
    requests: int
    errors: int
    throttle_ms: int
    apis: dict[str, ApiTally]
    telemetry: tuple[Measure, ...]


async def timeline(source: Source, limit: int = 200) -> TimelineRows:
    """Return the last rows. Raises Denied."""
    await require_cluster(source)
    recorded = source.watch.timeline
    found, is_cut = await recorded.last_rows(limit)
    rows = tuple(_row(event, is_answer=is_answer) for event, is_answer in found)
    return TimelineRows(rows, recorded.connections(), is_cut)


async def exchange(source: Source, request: int) -> dict[str, Any]:
    """Return a request and its answer as JSON, all fields, without secrets. Raises Missing, Denied."""
    await require_cluster(source)
    found = source.watch.timeline.event(request)
    if not isinstance(found, Exchange):
        raise Missing(f"request {request} is not in the timeline any more")
    return found.as_json()


async def clients(source: Source) -> tuple[ClientRequests, ...]:
    """Return the clients since the watch began, the busiest first. Raises Denied."""
    await require_cluster(source)
    measures = _measures(source)
    rows = [_client(key, tally, measures.get(key.client_id, ())) for key, tally in source.watch.clients.items()]
    return tuple(sorted(rows, key=lambda row: -row.requests)[:MOST_CLIENTS])


def _row(event: Exchange | Decision, *, is_answer: bool) -> TimelineRow:
    if isinstance(event, Decision):
        return TimelineRow(event.begun, event.begun, event.at_ms, "decision", decision(event))
    ended = event.ended if is_answer else None
    return TimelineRow(
        place=event.begun if ended is None else ended,
        request=event.begun,
        at_ms=event.at_ms if ended is None else event.at_ms + round(event.took_ms or 0),
        kind="request" if ended is None else "answer",
        text=cut(short(event.request), _SHORT) if ended is None else outcome(event),
        connection=event.connection,
        client_id=event.client_id or "",
        api=request_name(event.api),
        errors=() if ended is None else tuple(event.errors),
    )


def _client(key: ClientKey, tally: ClientTally, measures: tuple[Measure, ...]) -> ClientRequests:
    tallies = sorted(tally.apis.items(), key=lambda each: -each[1].requests)
    return ClientRequests(
        about=key,
        software=f"{tally.software} {tally.version}".strip(),
        last_ms=tally.last_ms,
        requests=sum(each.requests for _, each in tallies),
        errors=sum(sum(each.errors.values()) for _, each in tallies),
        throttle_ms=sum(each.throttle_ms for _, each in tallies),
        apis={request_name(api): each for api, each in tallies},
        telemetry=measures,
    )


def _measures(source: Source) -> Mapping[str, tuple[Measure, ...]]:
    """Return the last values that each client id has pushed."""
    manager = source.core.telemetry_so_far
    received = None if manager is None else manager.received
    found: dict[str, tuple[Measure, ...]] = {}
    for _, attributes, points in () if received is None else received.all():
        client_id = attributes.get("client_id") or ""
        known = found.get(client_id, ())
        shown = tuple(_measure(point) for point in list(points.values())[: MOST_MEASURES - len(known)])
        found[client_id] = (*known, *sorted(shown, key=lambda each: each.name))
    return found


def _measure(point: DataPoint) -> Measure:
    labels = tuple(sorted(point.attributes.items()))
    value = point.value
    if isinstance(value, int | float):
        return Measure(point.name, labels, float(value), None)
    return Measure(point.name, labels, value.total, value.count)
