"""The requests to this broker: the timeline as rows of a sequence diagram, and what each client has asked and been told.

Both are of the time since a page was opened (``Watch``), and of this broker only. A user needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
class Lifeline:
    """A connection in the diagram. ``connection`` counts from 1."""

    connection: int
    client_id: str


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of the diagram. ``place`` orders all rows. ``kind`` is "request", "answer" or "decision".

    ``request`` is the place of the request: an answer has that of its own request, and ``exchange`` returns both. A decision of
    a coordinator has no connection. ``errors`` are the names of the errors in an answer. ``text`` is the message in short, or
    the decision.
    """

    place: int
    request: int
    at_ms: int
    kind: str
    connection: int | None
    client_id: str
    api: str
    version: int
    text: str
    outcome: str
    errors: tuple[str, ...]
    took_ms: float | None


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """Rows in order. ``last`` is the place of the last one, to be given as ``after``. ``lost``: rows between are gone.

    An answer that came late, after rows that were given already, has the place of its arrival.
    """

    rows: tuple[TimelineRow, ...]
    lifelines: tuple[Lifeline, ...]
    last: int
    lost: bool
    is_recording: bool


@dataclass(frozen=True, slots=True)
class ApiCount:
    """The requests of a client to one API."""

    api: str
    requests: int
    errors: tuple[tuple[str, int], ...]
    took_ms: float
    longest_ms: float
    throttle_ms: int


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric that a client has pushed (KIP-714): a number, or of a histogram its count and sum."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    count: int | None


@dataclass(frozen=True, slots=True)
class ClientRequests:
    """A client, by client id, address and user. ``first_ms`` and ``last_ms`` are the times of its first and last request."""

    client_id: str
    host: str
    user: str
    software: str
    version: str
    first_ms: int
    last_ms: int
    requests: int
    errors: int
    throttle_ms: int
    apis: tuple[ApiCount, ...]
    telemetry: tuple[Measure, ...]


async def timeline(source: Source, after: int = -1, limit: int = 200) -> TimelineRows:
    """Return rows after a place, the last ``limit`` of them. Raises Denied."""
    await require_cluster(source)
    recorded = source.watch.timeline
    lost = after >= 0 and recorded.first_place > after + 1
    found, is_cut = await recorded.rows_after(after, limit)
    rows = [_row(event, is_answer=is_answer) for event, is_answer in found]
    return TimelineRows(
        rows=tuple(rows),
        lifelines=tuple(Lifeline(*each) for each in sorted(recorded.connections().items())),
        last=rows[-1].place if rows else after,
        lost=lost or is_cut,
        is_recording=recorded.is_recording,
    )


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
        return TimelineRow(event.begun, event.begun, event.at_ms, "decision", None, "", "", 0, decision(event), "", (), None)
    ended = event.ended if is_answer else None
    return TimelineRow(
        place=event.begun if ended is None else ended,
        request=event.begun,
        at_ms=event.at_ms if ended is None else event.at_ms + round(event.took_ms or 0),
        kind="request" if ended is None else "answer",
        connection=event.connection,
        client_id=event.client_id or "",
        api=request_name(event.api),
        version=event.version,
        text=cut(short(event.request), _SHORT) if ended is None else "",
        outcome="" if ended is None else outcome(event),
        errors=() if ended is None else tuple(event.errors),
        took_ms=None if ended is None else event.took_ms,
    )


def _client(key: ClientKey, tally: ClientTally, measures: tuple[Measure, ...]) -> ClientRequests:
    apis = tuple(sorted((_api(request_name(api), each) for api, each in tally.apis.items()), key=lambda row: -row.requests))
    return ClientRequests(
        client_id=key.client_id,
        host=key.host,
        user=key.user,
        software=tally.software,
        version=tally.version,
        first_ms=tally.first_ms,
        last_ms=tally.last_ms,
        requests=sum(row.requests for row in apis),
        errors=sum(count for row in apis for _, count in row.errors),
        throttle_ms=sum(row.throttle_ms for row in apis),
        apis=apis,
        telemetry=measures,
    )


def _api(name: str, tally: ApiTally) -> ApiCount:
    errors = tuple(sorted(tally.errors.items()))
    return ApiCount(name, tally.requests, errors, tally.took_ms, tally.longest_ms, tally.throttle_ms)


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
