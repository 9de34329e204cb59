"""The connections of this broker, and the errors that it has told its clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.broker.metrics.requests import request_name
from odradek.page.watch import PAGE_CLIENT_ID
from odradek.protocol.errors import error_name

if TYPE_CHECKING:
    from odradek.common.context import Session
    from odradek.page.facts.source import Source

MOST_CLIENTS: Final = 1_000
MOST_ERRORS: Final = 100


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A connection to this broker. ``client_id`` is known once it has sent a request while somebody watches.

    ``is_page``: it is a connection of this page.
    """

    client_id: str | None
    about: Session
    idle_ms: float
    received_bytes: int
    sent_bytes: int
    is_page: bool


@dataclass(frozen=True, slots=True)
class ToldError:
    """An error code that this broker has told a client. ``count`` is since the broker's start, or since the watch began.

    Without ``client_id``, ``host`` and ``at_ms`` (None) it is from before the watch.
    """

    api: str
    error: str
    count: int
    client_id: str | None
    host: str | None
    at_ms: int | None


def connected_clients(source: Source) -> tuple[list[ClientRow], int]:
    """Return the connections, those with the last traffic first, and how many more there are. The page's are last."""
    registry, now_ms = source.core.connections, source.broker.clock.monotonic_ms()
    rows = []
    for connection in registry or ():
        session = connection.session
        rows.append(
            ClientRow(
                client_id=session.client_id,
                about=session,
                idle_ms=max(connection.idle_ms(now_ms), 0.0),
                received_bytes=connection.received_bytes,
                sent_bytes=connection.sent_bytes,
                is_page=session.client_id == PAGE_CLIENT_ID,
            )
        )
    rows.sort(key=lambda row: (row.is_page, row.idle_ms))
    return rows[:MOST_CLIENTS], max(len(rows) - MOST_CLIENTS, 0)


def told_errors(source: Source) -> list[ToldError]:
    """Return the errors that clients were told: watched ones first, the last one first, then those from before the watch."""
    watched = source.watch.errors
    rows = [
        ToldError(request_name(key), error, told.count, client_id, host, told.at_ms)
        for (key, error, client_id, host), told in reversed(watched.items())
    ]
    counts: dict[tuple[str, str], int] = {}
    for route in source.core.dispatcher.routes():
        for code, count in route.errors.items():
            about = request_name(route.api_key), error_name(code)
            counts[about] = counts.get(about, 0) + count
    for row in rows:
        # A killed process takes its counts with it.
        counts[row.api, row.error] = counts.get((row.api, row.error), 0) - row.count
    rows += [ToldError(api, error, count, None, None, None) for (api, error), count in counts.items() if count > 0]
    return rows[:MOST_ERRORS]
