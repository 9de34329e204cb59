"""The watch over a broker while somebody looks at the page: requests and errors by client, rates, and the timeline."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.common.context import CLOSE_CONNECTION
from odradek.page.counting import RecordCounts
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_codes_in import compile_error_scan
from odradek.protocol.errors import error_name
from odradek.testing.asking import PEER
from odradek.testing.timeline.events import Decision
from odradek.testing.timeline.live import LiveTimeline

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.common.context import RequestContext
    from odradek.testing.listening import ListeningBroker
    from odradek.testing.timeline.events import Event

# The client id of the page's own connections. The watch leaves out their requests.
PAGE_CLIENT_ID: Final = "odradek-page"
# The events that the page's timeline keeps.
TIMELINE_EVENTS: Final = 2_000
# The error of a client whose connection was closed in place of an answer.
CLOSED: Final = "connection closed"
# The messages that are decoded at once, in a millisecond or so.
_DECODED_AT_ONCE: Final = 10
_MOST_CLIENTS: Final = 2_000
_MOST_ERRORS: Final = 1_000
# A rate is the mean over so long, and needs two readings.
_WINDOW_MS: Final = 10_000.0
_LEAST_MS: Final = 100.0
_FORGOTTEN_MS: Final = 60_000.0
# Requests that change nothing that a page shows.
_LOOKS: Final = frozenset(
    {
        *(ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT),
        *(ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.OFFSET_FOR_LEADER_EPOCH),
        *(key for key in ApiKey if key.name.startswith(("DESCRIBE_", "LIST_", "GET_"))),
    }
)


class ClientKey(NamedTuple):
    """A client, as its requests name it."""

    client_id: str
    host: str
    user: str


class ApiTally:
    """The requests of a client to one API. It receives the error codes of the answers."""

    __slots__ = ("errors", "longest_ms", "requests", "throttle_ms", "took_ms")

    def __init__(self) -> None:
        self.requests = 0
        self.errors: dict[str, int] = {}
        self.took_ms = 0.0
        self.longest_ms = 0.0
        self.throttle_ms = 0

    def note_error(self, code: int) -> None:
        """Count an error code in an answer."""
        name = error_name(code)
        self.errors[name] = self.errors.get(name, 0) + 1


class ClientTally:
    """The requests of a client. ``last_ms`` is the broker's time of the last one, in ms since the epoch."""

    __slots__ = ("apis", "last_ms", "software", "version")

    def __init__(self) -> None:
        self.software = ""
        self.version = ""
        self.last_ms = 0
        self.apis: dict[ApiKey, ApiTally] = {}


class ErrorTally:
    """An error that a client was told: how often, and when last."""

    __slots__ = ("at_ms", "count")

    def __init__(self) -> None:
        self.count = 0
        self.at_ms = 0


class PageTimeline(LiveTimeline):
    """A timeline without the page's own requests."""

    def admit(self, context: RequestContext, request: Any) -> None:  # noqa: ANN401  any API's message
        """Record the request of a client, and admit it."""
        if context.client_id != PAGE_CLIENT_ID:
            super().admit(context, request)

    def connections(self) -> dict[int, str]:
        """Return the client id of each connection that has an event."""
        return {each.connection: each.context.client_id or "" for each in self._noted if not isinstance(each, Decision)}

    async def last_rows(self, limit: int) -> tuple[list[tuple[Event, bool]], bool]:
        """Return the last rows, and whether there are more: requests, answers (True) and decisions in order.

        Only these are decoded, some at once.
        """
        noted = tuple(self._noted)
        places = [(each.begun, number, False) for number, each in enumerate(noted)]
        for number, each in enumerate(noted):
            if not isinstance(each, Decision) and each.ended is not None:
                places.append((each.ended, number, True))
        rows: list[tuple[Event, bool]] = []
        for _, number, is_answer in sorted(places)[-limit:]:
            each = noted[number]
            rows.append((each if isinstance(each, Decision) else each.as_exchange(), is_answer))
            if len(rows) % _DECODED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return rows, len(places) > limit

    def event(self, begun: int) -> Event | None:
        """Return the event that began at a place."""
        for each in self._noted:
            if each.begun == begun:
                return each if isinstance(each, Decision) else each.as_exchange()
        return None


class Meter:
    """The readings of counters in the last seconds."""

    def __init__(self) -> None:
        self._readings: dict[Hashable, deque[tuple[float, float]]] = {}
        self._swept_ms = 0.0

    def rate(self, counter: Hashable, value: float, now_ms: float) -> float | None:
        """Note a reading, and return the counter's rate per second; None at the first reading. ``now_ms`` is monotonic."""
        self._sweep(now_ms)
        readings = self._readings.setdefault(counter, deque())
        if readings and value < readings[-1][1]:
            # The counter began anew, with its process or its topic.
            readings.clear()
        if not readings or now_ms - readings[-1][0] >= _LEAST_MS:
            readings.append((now_ms, value))
        while len(readings) > 2 and now_ms - readings[1][0] >= _WINDOW_MS:
            readings.popleft()
        since_ms, before = readings[0]
        passed_ms = now_ms - since_ms
        return (value - before) * 1_000 / passed_ms if passed_ms >= _LEAST_MS else None

    def _sweep(self, now_ms: float) -> None:
        if now_ms - self._swept_ms < _WINDOW_MS:
            return
        self._swept_ms = now_ms
        self._readings = {
            counter: readings for counter, readings in self._readings.items() if now_ms - readings[-1][0] < _FORGOTTEN_MS
        }


class Watch:
    """The watch over one broker, across its restarts. Loop thread only.

    Call ``enter`` when a page is opened, and ``leave`` when it is closed: meanwhile it notes the errors that clients are told.
    ``enter_requests`` and ``leave_requests`` are for the view of requests. It needs a timeline and each client's counts, and so a
    gate before all others, which costs each request some ten microseconds.
    """

    def __init__(self, broker: ListeningBroker) -> None:
        self._broker = broker
        self._viewers = 0
        self._request_viewers = 0
        self._lines = 0
        self._core: BrokerCore | None = None
        self._open: dict[int, tuple[RequestContext, float]] = {}
        self.timeline = PageTimeline(broker)
        self.meter = Meter()
        self.counts = RecordCounts()
        self.clients: dict[ClientKey, ClientTally] = {}
        # By API, error, client id and host; the latest is last.
        self.errors: dict[tuple[ApiKey, str, str, str], ErrorTally] = {}

    @property
    def changes(self) -> int:
        """A number that differs from an earlier one if something may have changed since."""
        core = self._broker.core if self._broker.is_running else None
        self._follow(core)
        if core is None:
            return self._lines
        asked = sum(route.requests for route in core.dispatcher.routes() if route.api_key not in _LOOKS)
        # Each connection counts twice: when it comes, and when it goes.
        connections = core.connections
        return self._lines + asked + (0 if connections is None else 2 * connections.accepted - len(connections))

    def enter(self) -> None:
        """Count one more viewer. The first one starts the watch."""
        self._viewers += 1
        if self._viewers == 1:
            self._broker.line_watchers.append(self._note_line)
            self._follow(self._broker.core if self._broker.is_running else None)

    def leave(self) -> None:
        """Count one viewer less. The last one stops the watch; its counts stay."""
        self._viewers -= 1
        if not self._viewers:
            self._broker.line_watchers.remove(self._note_line)
            if self._core is not None:
                self._core.dispatcher.watch_errors(None)
            self._core = None

    def enter_requests(self) -> None:
        """Count one more viewer of requests. The first one starts the timeline and the counts of clients."""
        self._request_viewers += 1
        if self._request_viewers == 1:
            self._broker.add_gate(self, first=True)
            self.timeline.start(limit=TIMELINE_EVENTS, records=False)
            self._broker.line_watchers.append(self.timeline.note_line)

    def leave_requests(self) -> None:
        """Count one viewer of requests less. The last one stops what the first one started."""
        self._request_viewers -= 1
        if not self._request_viewers:
            self.timeline.stop()
            self._broker.line_watchers.remove(self.timeline.note_line)
            self._broker.remove_gate(self)
            self._open.clear()

    def admit(self, context: RequestContext, request: object) -> None:
        """Count the request, and admit it."""
        del request
        if _is_of_client(context):
            self._open[id(context)] = (context, self._broker.clock.monotonic_ms())

    def release(self, context: RequestContext, response: Any) -> Any:  # noqa: ANN401  any API's message
        """Count the answer, and release it."""
        begun = self._open.pop(id(context), None)
        if begun is None:
            return response
        client = self._client(context)
        tally = client.apis.get(context.api_key)
        if tally is None:
            tally = client.apis[context.api_key] = ApiTally()
        took_ms = self._broker.clock.monotonic_ms() - begun[1]
        tally.requests += 1
        tally.took_ms += took_ms
        tally.longest_ms = max(tally.longest_ms, took_ms)
        if response is CLOSE_CONNECTION:
            tally.errors[CLOSED] = tally.errors.get(CLOSED, 0) + 1
        elif isinstance(response, tuple):
            tally.throttle_ms += getattr(response, "throttle_time_ms", 0)
            _scan(context.api_key)(response, tally)
        return response

    def _client(self, context: RequestContext) -> ClientTally:
        session = context.session
        key = ClientKey(context.client_id or "", session.peer[0], session.principal)
        client = self.clients.get(key)
        if client is None:
            if len(self.clients) >= _MOST_CLIENTS:
                del self.clients[next(iter(self.clients))]
            client = self.clients[key] = ClientTally()
        client.last_ms = self._broker.clock.now_ms()
        client.software = session.client_software_name or client.software
        client.version = session.client_software_version or client.version
        return client

    def _follow(self, core: BrokerCore | None) -> None:
        """Watch the errors of this process of the broker."""
        if core is not None and core is not self._core and self._viewers:
            core.dispatcher.watch_errors(self._note_errors)
            # Requests of a process that was killed have no answer.
            self._open.clear()
            self._core = core

    def _note_errors(self, context: RequestContext, codes: Sequence[int]) -> None:
        if not _is_of_client(context):
            return
        for name in [error_name(code) for code in codes] or [CLOSED]:
            key = context.api_key, name, context.client_id or "", context.peer[0]
            told = self.errors.pop(key, None) or ErrorTally()
            if len(self.errors) >= _MOST_ERRORS:
                del self.errors[next(iter(self.errors))]
            self.errors[key] = told
            told.count += 1
            told.at_ms = self._broker.clock.now_ms()

    def _note_line(self, event: str, fields: Mapping[str, object]) -> None:
        del event
        if "group" in fields or "transactional_id" in fields or "topic" in fields:
            self._lines += 1


_scan = cache(compile_error_scan)


def _is_of_client(context: RequestContext) -> bool:
    """Return whether the request is a client's, not the page's or the test kit's."""
    return context.client_id != PAGE_CLIENT_ID and context.session.peer != PEER
