"""Which connections there are: counted, limited, swept.

Limits: ``max.connections`` and ``max.connections.per.ip`` refuse by closing at once, ``max.connection.creation.rate`` has a new
connection's first request wait, ``connection_creation_rate`` of ip entities closes one after a while, unread, and
``connections.max.idle.ms`` closes what has been silent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.broker.network.connection_rate import ConnectionRate
from odradek.broker.network.outbox import Outbox
from odradek.broker.network.request_memory import RequestMemory
from odradek.broker.network.request_turns import RequestTurns
from odradek.common.logging import LineLimit, log

if TYPE_CHECKING:
    from asyncio import Transport
    from collections.abc import Callable, Iterator, Mapping

    from odradek.broker.large.response_memory import ResponseMemory
    from odradek.broker.network.busy_poll import BusyPoll
    from odradek.broker.network.connection_rate import IpConnectionRates, IpQuotas
    from odradek.common.context import Session
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer, TimerTask


class SaslCounts:
    """Since the broker started. ``expired`` sessions were not renewed; ``..._again`` are renewals of sessions (KIP-368)."""

    __slots__ = ("expired", "failed", "failed_again", "succeeded", "succeeded_again")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.succeeded_again = 0
        self.failed_again = 0
        self.expired = 0


_MIN_SWEEP_MS = 100
_BETWEEN_ENDS_MS = 10.0
_TRIM_AFTER_MS = 10_000


class OpenConnection(Protocol):
    """What the registry knows of a connection (``network.connection``)."""

    session: Session
    last_active_ms: float
    received_bytes: int

    @property
    def sent_bytes(self) -> int:
        """What was handed on to the client."""

    @property
    def is_busy(self) -> bool:
        """Return whether an answer is owed, or not with the kernel yet."""

    def idle_ms(self, now_ms: float) -> float:
        """How long nothing has come or gone."""

    def hold(self) -> None:
        """Begin no request until ``resume_writing``."""

    def resume_writing(self) -> None:
        """Go on."""

    def stop_reading(self) -> None:
        """Take no further request."""

    def leave_unread(self) -> None:
        """Take nothing of what comes; ``end`` follows."""

    def write_through(self, wrap: Callable[[Transport], Transport]) -> bool:
        """Write by what ``wrap`` makes of the transport."""

    def trim(self) -> None:
        """Give back memory that only a busy connection needs."""

    def resume_receiving(self) -> None:
        """There is memory for the rest of its request."""

    def end(self) -> None:
        """Close now."""


class ConnectionLimits(NamedTuple):
    """``max.connections``, ``max.connections.per.ip`` with its overrides, ``connections.max.idle.ms`` (negative: never).

    ``max_creation_rate`` is ``max.connection.creation.rate``, a second.
    """

    max_connections: int
    max_creation_rate: int
    max_connections_per_ip: int
    per_ip_overrides: Mapping[str, int]
    max_idle_ms: int


class ConnectionRegistry:
    """The open connections of a broker, counted and limited by what ``limits`` says at that moment. Loop thread only."""

    def __init__(
        self,
        limits: Callable[[], ConnectionLimits],
        clock: Clock,
        timer: Timer,
        call_soon: Callable[[Callable[[], None]], object],
        memory: RequestMemory | None = None,
    ) -> None:
        """Without a ``memory``, requests under way have no limit. ``call_soon`` calls back in the loop's next turn."""
        self.clock = clock
        self.turns = RequestTurns(clock.monotonic_ms, call_soon)
        self.is_stopping = False
        # Told of all that comes.
        self.busy_poll: BusyPoll | None = None
        # Who is asked about each new connection, beside the limits: True refuses it.
        self.refuses: Callable[[OpenConnection], bool] | None = None
        # Who is told of each connection that is lost.
        self.on_lost: Callable[[Session], None] | None = None
        self.outbox = Outbox()
        self.line_limit = LineLimit(clock)
        self.sasl = SaslCounts()
        self.memory = memory or RequestMemory(-1, clock, None)
        # Of responses; None where those have no limit.
        self.response_memory: ResponseMemory | None = None
        self._limits = limits
        self._timer = timer
        self._connections: set[OpenConnection] = set()
        self._by_ip: dict[str, int] = {}
        self._rate = ConnectionRate()
        # Where addresses may have quotas, and what is above them: there with the first one.
        self.ip_quotas: IpQuotas | None = None
        self.ip_rates: IpConnectionRates | None = None
        # Those that are kept until they are closed; they count as connections of nobody.
        self._unread: set[OpenConnection] = set()
        self._next_sweep: TimerTask | None = None
        # During a lull: who waited for an answer when it began.
        self._excused: frozenset[OpenConnection] | None = None
        self.accepted = 0
        self.refused = 0
        self.closed_idle = 0
        self.closed_malformed = 0
        # Of the connections that are gone; the others' are with them.
        self._received_bytes = 0
        self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(self._connections)

    @property
    def received_bytes(self) -> int:
        """What all connections have received since the broker started."""
        return self._received_bytes + sum(connection.received_bytes for connection in self._connections)

    @property
    def sent_bytes(self) -> int:
        """What all connections have sent since the broker started."""
        return self._sent_bytes + sum(connection.sent_bytes for connection in self._connections)

    def add(self, connection: OpenConnection) -> bool:
        """Take in a new connection; False where a limit forbids it, and it is to be closed at once."""
        ip = connection.session.peer[0]
        here = self._by_ip.get(ip, 0)
        limits = self._limits()
        if self.is_stopping or len(self._connections) + len(self._unread) >= limits.max_connections:
            return self._refuse(connection, "max.connections", limits.max_connections)
        if self.refuses is not None and self.refuses(connection):
            self.refused += 1
            return False
        now_ms = self.clock.monotonic_ms()
        excess_ms = self._excess_ms(ip, now_ms)
        if excess_ms > 0:
            self._leave_unread(connection, excess_ms)
            return True
        allowed_here = limits.per_ip_overrides.get(ip, limits.max_connections_per_ip)
        if here >= allowed_here:
            return self._refuse(connection, "max.connections.per.ip", allowed_here)
        self._arm_sweep()
        self.accepted += 1
        self._by_ip[ip] = here + 1
        self._connections.add(connection)
        connection.last_active_ms = now_ms
        delay_ms = self._rate.delay_ms(now_ms, limits.max_creation_rate)
        if delay_ms > 0:
            connection.hold()
            self._timer.call_after(delay_ms, connection.resume_writing)
        return True

    def call_at(self, deadline_ms: float, callback: Callable[[], object]) -> TimerTask:
        """Call back at a time of the monotonic clock."""
        return self._timer.call_at(deadline_ms, callback)

    def remove(self, connection: OpenConnection) -> None:
        """Forget a connection that was lost; one that was refused is not known."""
        self._unread.discard(connection)
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._received_bytes += connection.received_bytes
        self._sent_bytes += connection.sent_bytes
        ip = connection.session.peer[0]
        self._by_ip[ip] -= 1
        if not self._by_ip[ip]:
            del self._by_ip[ip]
        if self.on_lost is not None:
            self.on_lost(connection.session)

    def stop_reading(self) -> None:
        """No further request is taken from any connection."""
        self.is_stopping = True
        for connection in self._connections:
            connection.stop_reading()

    def busy(self) -> int:
        """How many connections still owe an answer."""
        return sum(connection.is_busy for connection in self._connections)

    def close_all(self) -> None:
        """Close every connection, whatever its client has not taken by now."""
        for connection in (*self._connections, *self._unread):
            connection.end()

    def _excess_ms(self, ip: str, now_ms: float) -> float:
        """How long a new connection is kept that is above the rate of its address; 0 where it is not."""
        if self.ip_rates is None:
            if self.ip_quotas is None or not self.ip_quotas.connection_rates:
                return 0.0
            from odradek.broker.network.connection_rate import IpConnectionRates

            self.ip_rates = IpConnectionRates(self.ip_quotas)
        return self.ip_rates.excess_ms(ip, now_ms)

    def _leave_unread(self, connection: OpenConnection, excess_ms: float) -> None:
        self._unread.add(connection)
        connection.leave_unread()
        self._timer.call_after(excess_ms, connection.end)

    def _refuse(self, connection: OpenConnection, config: str, limit: int) -> bool:
        self.refused += 1
        host, port = connection.session.peer
        left_out = None if self.is_stopping else self.line_limit.left_out((config, host))
        if left_out is not None:
            log.warn("refusing a connection", peer=f"{host}:{port}", config=config, limit=limit, **left_out)
        return False

    def _end_stalled(self, connection: OpenConnection, what: str, after_ms: float) -> None:
        host, port = connection.session.peer
        left_out = self.line_limit.left_out(("stalled", host))
        if left_out is not None:
            cause = f"it holds memory that others wait for, and {what}"
            log.warn("closing a connection", peer=f"{host}:{port}", cause=cause, **left_out)
        self._timer.call_after(after_ms, connection.end)

    def begin_lull(self) -> None:
        """Time passes in which no client is heard, until ``end_lull``: one that waits for an answer now is not idle meanwhile."""
        self._excused = frozenset(connection for connection in self._connections if connection.is_busy)

    def end_lull(self) -> None:
        """Clients are heard again."""
        excused, self._excused = self._excused or frozenset(), None
        for connection in excused:
            connection.last_active_ms = self.clock.monotonic_ms()
        if self._next_sweep is not None:
            self._next_sweep.cancel()
            self._next_sweep = None
        if self._connections:
            self._arm_sweep()

    def _arm_sweep(self) -> None:
        delay_ms = self._until_next_sweep_ms()
        if self._next_sweep is None and delay_ms is not None:
            self._next_sweep = self._timer.call_after(delay_ms, self._sweep)

    def _until_next_sweep_ms(self) -> float | None:
        """None if there is nothing to be swept before the lull is over. Memory is given back after it."""
        max_idle_ms = self._limits().max_idle_ms
        if self._excused is None:
            interval_ms = max(max_idle_ms / 4, _MIN_SWEEP_MS) if max_idle_ms >= 0 else _TRIM_AFTER_MS
            return min(interval_ms, _TRIM_AFTER_MS)
        if max_idle_ms < 0 or self._excused >= self._connections:
            return None
        now_ms = self.clock.monotonic_ms()
        longest_ms = max(connection.idle_ms(now_ms) for connection in self._connections - self._excused)
        return max(max_idle_ms - longest_ms, _MIN_SWEEP_MS)

    def _sweep(self) -> None:
        """Close what has neither sent nor taken anything for too long; goes on as long as anybody is connected."""
        self._next_sweep = None
        max_idle_ms = self._limits().max_idle_ms
        now_ms = self.clock.monotonic_ms()
        stalled = frozenset(self.memory.stalled())
        unread = frozenset() if self.response_memory is None else self.response_memory.stalled()
        excused = self._excused or frozenset()
        # To free many megabytes takes many milliseconds: in a turn of the loop each.
        after_ms = 0.0
        for connection in tuple(self._connections - excused):
            if connection in stalled:
                self._end_stalled(connection, "its request does not come (queued.max.request.bytes)", after_ms)
                after_ms += _BETWEEN_ENDS_MS
            elif connection.session in unread:
                self._end_stalled(connection, "its response is not taken (queued.max.response.bytes)", after_ms)
                after_ms += _BETWEEN_ENDS_MS
            elif 0 <= max_idle_ms < connection.idle_ms(now_ms):
                self.closed_idle += 1
                connection.end()
            elif now_ms - connection.last_active_ms > _TRIM_AFTER_MS:
                connection.trim()
        if self._connections:
            self._arm_sweep()
