"""The requests to this broker: the timeline as rows of a sequence diagram, and what each client has asked and been told.

Both are of the time since a page was opened (``Watch``), and of this broker only. A user needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.page.facts.source import Source


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
    """Rows in order. ``last`` is the place of the last one, to be given as ``after``. ``lost``: older rows are gone."""

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
    raise NotImplementedError


async def exchange(source: Source, request: int) -> dict[str, Any]:
    """Return a request and its answer as JSON, all fields, without secrets. Raises Missing, Denied."""
    raise NotImplementedError


async def clients(source: Source) -> tuple[ClientRequests, ...]:
    """Return the clients since the watch began, the busiest first. Raises Denied."""
    raise NotImplementedError
