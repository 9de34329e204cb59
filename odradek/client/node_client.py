"""A client of one node on the caller's event loop: one connection, made when a request needs it.

``ClientConfig`` has its settings, under Kafka's names, and the backoff between connection attempts.

A request is queued, sent when the connection has room for it, and answered in the order of sending. These errors fail a
request:

- UnsupportedVersion or InvalidRequest: fails alone.
- ConnectFailed: the connection attempt that it waits for fails.
- Disconnected: the connection is lost while the request is in flight.
- RequestTimedOut: its time is over. A request in flight that times out ends the connection, because the order of answers would
  be lost.

Nothing is sent twice: the caller knows which requests may be repeated.

Connections are attempted only for waiting requests, and after a failure not before the backoff is over. A SASL session with an
end is renewed for the first request that comes late in it, as by Kafka's clients (KIP-368). A failed renewal counts as a failed
attempt.

A request that the node delays (a long-poll Fetch) holds up everything behind it, so it needs its own ``NodeClient``.

Time comes from the ``Timer``, and sockets come from ``connect``, so a test controls both.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from odradek.client.api import (
    Api,
    ClientError,
    ConnectFailed,
    Disconnected,
    LoginFailed,
    RequestT,
    RequestTimedOut,
    ResponseT,
    TooManyRequests,
)
from odradek.client.connection import DEFAULT_MAX_IN_FLIGHT, DEFAULT_MAX_RESPONSE_BYTES, ClientConnection, ReceivedResponse
from odradek.client.login import Login
from odradek.client.session import Session
from odradek.timing.timer import Timer, TimerTask

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The settings, with the defaults of Kafka's clients.

    ``max_in_flight_requests`` is ``max.in.flight.requests.per.connection``. ``connection_setup_timeout_ms`` is
    ``socket.connection.setup.timeout.ms``, negotiation included. Two settings are not Kafka's: ``max_response_bytes``, and
    ``max_queued_requests``, the number of requests that may wait for a connection or for their turn on it.
    """

    client_id: str = "odradek"
    request_timeout_ms: int = 30_000
    connection_setup_timeout_ms: int = 10_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    max_in_flight_requests: int = DEFAULT_MAX_IN_FLIGHT
    max_queued_requests: int = 1_000
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES


_JITTER: Final = 0.2
# With more doublings the delay exceeds any maximum.
_MAX_DOUBLINGS: Final = 30


class ExponentialBackoff:
    """``initial_ms``, doubled with each failure up to ``max_ms``, and varied by a fifth so that clients do not come in step."""

    __slots__ = ("_initial_ms", "_max_ms", "_random")

    def __init__(self, initial_ms: int, max_ms: int, random: Random) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._random = random

    def delay_ms(self, failures: int) -> float:
        """Return the wait after this many failures in a row; 0 after none."""
        if failures == 0:
            return 0.0
        doubled_ms = min(self._initial_ms << min(failures - 1, _MAX_DOUBLINGS), self._max_ms)
        return min(doubled_ms * self._random.uniform(1 - _JITTER, 1 + _JITTER), self._max_ms)


Connect = Callable[[Callable[[], Session]], Awaitable[object]]
"""A function that makes a session with its argument, and connects it. Raises OSError."""


def connect_to(
    host: str,
    port: int,
    tls: "Callable[[], ssl.SSLContext] | None" = None,
    login: Callable[[], Login] | None = None,
    dialled: tuple[str, int] | None = None,
) -> Connect:
    """Return a function that connects to an address by TCP; with ``tls`` by TLS, and with ``login`` as its user.

    Each connection calls both functions. Each session by a token calls ``login`` again. ``dialled`` is where the node is reached,
    if that is not its address.
    """
    place = dialled or (host, port)

    async def connect(make_session: Callable[[], Session]) -> object:
        def make_protocol() -> Session:
            session = make_session()
            if login is not None:
                session.log_in_as(login)
            return session

        loop = asyncio.get_running_loop()
        if tls is None:
            return await loop.create_connection(make_protocol, *place)
        return await loop.create_connection(make_protocol, *place, ssl=tls(), server_hostname=host)

    return connect


# A session is renewed at this share of its life, as in Kafka's ExpiringCredentialRefresh.
_RENEWED_FROM: Final = 0.85
_RENEWED_TO: Final = 0.95


class _Call:
    """A caller's request: queued, then in flight, until ``future`` is done."""

    __slots__ = ("api", "deadline", "future", "request")

    def __init__(self, api: Api[Any, Any], request: object, future: "asyncio.Future[Any]") -> None:
        self.api = api
        self.request = request
        self.future = future
        self.deadline: TimerTask | None = None

    def succeed(self, response: object) -> None:
        """Give the response to the caller, if it still waits."""
        self._done()
        if not self.future.done():
            self.future.set_result(response)

    def fail(self, error: ClientError) -> None:
        """Raise the error at the caller, if it still waits."""
        self._done()
        if not self.future.done():
            self.future.set_exception(error)

    def _done(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()


class NodeClient:
    """A client of one node. Loop thread only. ``connect`` comes from ``connect_to``, or from a test."""

    def __init__(self, connect: Connect, timer: Timer, random: Random, config: ClientConfig | None = None) -> None:
        self._connect = connect
        self._timer = timer
        self._random = random
        self._config = config or ClientConfig()
        self._backoff = ExponentialBackoff(self._config.reconnect_backoff_ms, self._config.reconnect_backoff_max_ms, random)
        self._queued: deque[_Call] = deque()
        self._in_flight: dict[int, _Call] = {}
        self._session: Session | None = None
        self._is_closed = False
        # Failures since a connection was last ready; the present connection attempt, or the planned one.
        self._failures = 0
        self._attempt: asyncio.Task[None] | None = None
        self._setup_deadline: TimerTask | None = None
        self._next_attempt: TimerTask | None = None
        self._backoff_ends_ms = float("-inf")
        # The time when the session is to be renewed.
        self._renewal_due_ms = float("inf")

    @property
    def unanswered(self) -> int:
        """Return how many requests are queued or in flight."""
        return len(self._queued) + len(self._in_flight)

    def request(
        self, api: Api[RequestT, ResponseT], request: RequestT, timeout_ms: int | None = None
    ) -> "asyncio.Future[ResponseT]":
        """Send a request to the node. The future raises a ClientError if there is no response.

        A Produce with acks 0 gives None when it is sent. ``timeout_ms`` is ``request.timeout.ms`` by default, and counts from
        now. Raises TooManyRequests.
        """
        if len(self._queued) >= self._config.max_queued_requests:
            raise TooManyRequests(f"{len(self._queued)} requests are already waiting to be sent")
        future: asyncio.Future[ResponseT] = asyncio.get_running_loop().create_future()
        if self._is_closed:
            future.set_exception(Disconnected("the client is closed"))
            return future
        call = _Call(api, request, future)
        timeout_ms = self._config.request_timeout_ms if timeout_ms is None else timeout_ms
        call.deadline = self._timer.call_after(timeout_ms, partial(self._expire, call))
        self._queued.append(call)
        self._pump()
        return future

    def close(self) -> None:
        """Close the connection. Requests without a response fail with Disconnected, later ones too."""
        self._is_closed = True
        reason = Disconnected("the client is closed")
        self._stop_connecting()
        # First, so that the end of the session finds no request to connect for.
        self._fail_queued(reason)
        if self._session is not None:
            self._session.end(reason)

    def _pump(self) -> None:
        """Send as much of the queue as the connection takes, or make a connection."""
        session = self._session
        if session is None:
            if self._queued:
                self._plan_attempt()
            return
        if self._queued and session.is_ready and self._renewal_due_ms <= self._timer.clock.monotonic_ms():
            self._limit_setup(session)
            session.log_in_again()
            return
        while self._queued and session.can_send:
            self._send(session, self._queued.popleft())

    def _send(self, session: Session, call: _Call) -> None:
        if call.future.done():
            # Its caller was cancelled.
            call.fail(Disconnected("cancelled"))
            return
        try:
            sent = session.send(call.api, call.request)
        except ClientError as error:
            call.fail(error)
            return
        if sent.is_answered:
            self._in_flight[sent.correlation_id] = call
        else:
            call.succeed(None)

    def _on_response(self, received: ReceivedResponse[Any]) -> None:
        self._in_flight.pop(received.sent.correlation_id).succeed(received.response)

    def _expire(self, call: _Call) -> None:
        error = RequestTimedOut(f"{call.api.key.name}: no response in time")
        call.fail(error)
        if call in self._queued:
            self._queued.remove(call)
        elif self._session is not None:
            self._session.end(Disconnected(f"the connection was closed because a request timed out: {error.reason}"))

    # Connecting.

    def _plan_attempt(self) -> None:
        """Connect now, or when the backoff is over; at most one attempt is planned."""
        if self._next_attempt is not None:
            return
        if self._backoff_ends_ms > self._timer.clock.monotonic_ms():
            self._next_attempt = self._timer.call_at(self._backoff_ends_ms, self._begin_attempt)
        else:
            self._begin_attempt()

    def _begin_attempt(self) -> None:
        self._next_attempt = None
        if not self._queued:
            # All waiting requests have timed out.
            return
        connection = ClientConnection(
            self._config.client_id,
            max_in_flight=self._config.max_in_flight_requests,
            max_response_bytes=self._config.max_response_bytes,
        )
        self._session = session = Session(
            connection,
            on_ready=self._on_ready,
            on_response=self._on_response,
            on_writable=self._pump,
            on_end=self._on_end,
        )
        self._limit_setup(session)
        self._attempt = asyncio.get_running_loop().create_task(self._open(session))

    def _limit_setup(self, session: Session) -> None:
        timeout_ms = self._config.connection_setup_timeout_ms
        error = ConnectFailed(f"no connection within {timeout_ms} ms")
        self._setup_deadline = self._timer.call_after(timeout_ms, lambda: session.end(error))

    async def _open(self, session: Session) -> None:
        try:
            await self._connect(lambda: session)
        except OSError as failure:
            # Ending the session would cancel this task.
            self._attempt = None
            session.end(ConnectFailed(failure.strerror or str(failure) or type(failure).__name__))

    def _on_ready(self) -> None:
        # The attempt's task may not have finished yet: it is left alone.
        if self._setup_deadline is not None:
            self._setup_deadline.cancel()
            self._setup_deadline = None
        self._failures = 0
        lifetime_ms = 0 if self._session is None else self._session.lifetime_ms
        self._renewal_due_ms = float("inf")
        if lifetime_ms > 0:
            age_ms = lifetime_ms * self._random.uniform(_RENEWED_FROM, _RENEWED_TO)
            self._renewal_due_ms = self._timer.clock.monotonic_ms() + age_ms

    def _on_end(self, reason: ClientError) -> None:
        """Handle the end of the connection, or of a failed attempt to make one."""
        was_ready = self._setup_deadline is None
        self._stop_connecting()
        session, self._session = self._session, None
        self._failures += 1
        self._backoff_ends_ms = self._timer.clock.monotonic_ms() + self._backoff.delay_ms(self._failures)
        in_flight, self._in_flight = list(self._in_flight.values()), {}
        for call in in_flight:
            call.fail(reason)
        if not was_ready:
            self._fail_queued(reason if isinstance(reason, ConnectFailed) else _setup_failed(session, reason))
        self._pump()

    def _stop_connecting(self) -> None:
        for task in (self._setup_deadline, self._next_attempt, self._attempt):
            if task is not None:
                task.cancel()
        self._setup_deadline = self._next_attempt = self._attempt = None

    def _fail_queued(self, reason: ClientError) -> None:
        queued, self._queued = list(self._queued), deque()
        for call in queued:
            call.fail(reason)


def _setup_failed(session: Session | None, reason: ClientError) -> ConnectFailed:
    """Return the failure of an attempt whose connection ended before it was ready; the end is its cause."""
    failure = ConnectFailed(_refused_login(session, reason) + reason.reason)
    failure.__cause__ = reason
    return failure


def _refused_login(session: Session | None, reason: ClientError) -> str:
    """Return the refused user and mechanism as the start of a message; "" for other errors."""
    login = None if session is None or not isinstance(reason, LoginFailed) else session.login
    return "" if login is None else f"User:{login.user} cannot log in with {login.mechanism}: "
