"""The open connections: counted, limited, swept.

``max.connections`` and ``max.connections.per.ip`` close a new connection at once. ``connections.max.idle.ms`` closes idle ones.

``max.connection.creation.rate`` delays a new connection's first request. Kafka measures the rate over ten seconds, so many
connections may come at once after a silence. Above the rate its acceptor delays each connection, by a second at most, and later
connections wait to be accepted. Here such a connection is accepted at once, and its first request waits instead.

``connection_creation_rate`` of ip entities limits one IP address (KIP-612). As in Kafka, a connection above the rate is accepted,
left unread until the rate would have permitted it, a second at most, and closed. It does not count towards the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from odradek.broker.network.request_limits import RequestMemory, RequestTurns
from odradek.broker.network.response_queue import Outbox
from odradek.common.host_names import is_address, look_up
from odradek.common.logging import LineLimit, log

if TYPE_CHECKING:
    from asyncio import Transport
    from collections.abc import Callable, Iterator, Mapping

    from odradek.broker.large import ResponseMemory
    from odradek.broker.network.event_loop import BusyPoll
    from odradek.common.context import Session
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer, TimerTask

_BURST_MS = 10_000.0
_MAX_INTERVAL_MS = 1_000.0


class ConnectionRate:
    """The rate of new connections so far. Loop thread only."""

    __slots__ = ("_turn_ms",)

    def __init__(self) -> None:
        # The time at which the last connection would have come if all had kept to the rate.
        self._turn_ms = float("-inf")

    def delay_ms(self, now_ms: float, per_second: int) -> float:
        """Count a connection made at ``now_ms`` (monotonic), and return its delay; 0 while the rate is kept."""
        interval_ms = min(1000 / per_second, _MAX_INTERVAL_MS) if per_second else _MAX_INTERVAL_MS
        burst_ms = _BURST_MS if per_second else 0.0
        self._turn_ms = max(self._turn_ms, now_ms - burst_ms) + interval_ms
        return max(0.0, self._turn_ms - now_ms)

    def excess_ms(self, now_ms: float, per_second: int) -> float:
        """Return the delay of a connection, a second at most. A connection is counted only if its delay is 0."""
        before_ms = self._turn_ms
        delay_ms = self.delay_ms(now_ms, per_second)
        if delay_ms > 0:
            self._turn_ms = before_ms
        return min(delay_ms, _MAX_INTERVAL_MS)

    def is_silent(self, now_ms: float) -> bool:
        """Return whether earlier connections no longer affect the rate."""
        return self._turn_ms <= now_ms - _BURST_MS


# Kafka's Int.MaxValue: no limit.
_NO_LIMIT: Final = (1 << 31) - 1
# Up to this number of addresses, silent ones are kept.
_FEW: Final = 1_000


class IpQuotas(Protocol):
    """The quotas of ip entities (``metadata.client_quotas``)."""

    @property
    def version(self) -> int:
        """The version of the quotas. It differs after each change."""

    @property
    def connection_rates(self) -> Mapping[str | None, float]:
        """Connections per second by IP address or host name; None is the default."""


class IpConnectionRates:
    """The connection rates of the addresses with a quota. Host names are resolved when quotas change. Loop thread only."""

    def __init__(self, quotas: IpQuotas) -> None:
        self._quotas = quotas
        self._version = -1
        self._limits: dict[str | None, int] = {}
        self._rates: dict[str, ConnectionRate] = {}
        self._most = _FEW
        # Connections above their rate, and the total time for which they were kept.
        self.throttled = 0
        self.throttle_ms = 0.0

    def excess_ms(self, ip: str, now_ms: float) -> float:
        """Return the delay before a new connection from ``ip`` is closed; 0 if the rate permits it."""
        if self._quotas.version != self._version:
            self._reload()
        limits = self._limits
        if not limits:
            return 0.0
        address = _plain(ip)
        per_second = limits.get(address, limits.get(None, _NO_LIMIT))
        if per_second >= _NO_LIMIT:
            return 0.0
        excess_ms = self._rate(address, now_ms).excess_ms(now_ms, per_second)
        if excess_ms > 0:
            self.throttled += 1
            self.throttle_ms += excess_ms
        return excess_ms

    def _rate(self, address: str, now_ms: float) -> ConnectionRate:
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= self._most:
                self._rates = {ip: each for ip, each in self._rates.items() if not each.is_silent(now_ms)}
                self._most = max(_FEW, 2 * len(self._rates))
            rate = self._rates[address] = ConnectionRate()
        return rate

    def _reload(self) -> None:
        self._version = version = self._quotas.version
        rates = self._quotas.connection_rates
        self._limits = {name: int(value) for name, value in rates.items() if name is None or is_address(name)}
        hosts = [name for name in rates if name is not None and not is_address(name)]

        def known(addresses: Mapping[str, str | None]) -> None:
            for name, address in addresses.items() if version == self._version else ():
                if address is not None:
                    self._limits.setdefault(_plain(address), int(rates[name]))

        if hosts:
            look_up(hosts).when_done(known)


def _plain(ip: str) -> str:
    """Return an IP address without its scope, and an IPv4 address mapped into IPv6 as IPv4."""
    return ip.partition("%")[0].removeprefix("::ffff:")


@dataclass(slots=True)
class SaslCounts:
    """Authentications since the start. ``..._again`` are reauthentications (KIP-368); ``expired`` sessions were not renewed."""

    succeeded: int = 0
    failed: int = 0
    succeeded_again: int = 0
    failed_again: int = 0
    expired: int = 0


_MIN_SWEEP_MS = 100
_BETWEEN_ENDS_MS = 10.0
_TRIM_AFTER_MS = 10_000


class OpenConnection(Protocol):
    """A connection, as the registry sees it (``network.connection``)."""

    session: Session
    last_active_ms: float
    received_bytes: int

    @property
    def sent_bytes(self) -> int:
        """The bytes handed to the client."""

    @property
    def is_busy(self) -> bool:
        """Return whether an answer is owed, or not passed to the kernel yet."""

    def idle_ms(self, now_ms: float) -> float:
        """Return the time without traffic in either direction."""

    def hold(self) -> None:
        """Begin no request until ``resume_writing``."""

    def resume_writing(self) -> None:
        """Begin requests again."""

    def stop_reading(self) -> None:
        """Take no further requests."""

    def leave_unread(self) -> None:
        """Leave the client's bytes unread; ``end`` follows."""

    def write_through(self, wrap: Callable[[Transport], Transport]) -> bool:
        """Replace the transport for writing by ``wrap(transport)``."""

    def trim(self) -> None:
        """Free the memory that only a busy connection needs."""

    def resume_receiving(self) -> None:
        """Read again: there is memory for the rest of the request."""

    def end(self) -> None:
        """Close now."""


class ConnectionLimits(NamedTuple):
    """``max.connections``, ``max.connections.per.ip`` with its overrides, ``connections.max.idle.ms`` (negative: never).

    ``max_creation_rate`` is ``max.connection.creation.rate``, per second.
    """

    max_connections: int
    max_creation_rate: int
    max_connections_per_ip: int
    per_ip_overrides: Mapping[str, int]
    max_idle_ms: int


class ConnectionRegistry:
    """The open connections of a broker. ``limits`` returns the limits in force. Loop thread only."""

    def __init__(
        self,
        limits: Callable[[], ConnectionLimits],
        clock: Clock,
        timer: Timer,
        call_soon: Callable[[Callable[[], None]], object],
        memory: RequestMemory | None = None,
    ) -> None:
        """Without ``memory``, partial requests have no memory limit. ``call_soon`` calls back in the loop's next turn."""
        self.clock = clock
        self.turns = RequestTurns(clock.monotonic_ms, call_soon)
        self.is_stopping = False
        # Notified of all received bytes.
        self.busy_poll: BusyPoll | None = None
        # A check of each new connection, beside the limits: True refuses it.
        self.refuses: Callable[[OpenConnection], bool] | None = None
        # Each is called for each lost connection.
        self.on_lost: list[Callable[[Session], None]] = []
        self.outbox = Outbox()
        self.line_limit = LineLimit(clock)
        self.sasl = SaslCounts()
        self.memory = memory or RequestMemory(-1, clock, None)
        # The memory of large responses; None without a limit.
        self.response_memory: ResponseMemory | None = None
        self._limits = limits
        self._timer = timer
        self._connections: set[OpenConnection] = set()
        self._by_ip: dict[str, int] = {}
        self._rate = ConnectionRate()
        # The quotas of addresses, and their rates, created with the first quota.
        self.ip_quotas: IpQuotas | None = None
        self.ip_rates: IpConnectionRates | None = None
        # Connections left unread until they are closed. They count for no address.
        self._unread: set[OpenConnection] = set()
        self._next_sweep: TimerTask | None = None
        # During a silence: the connections that waited for an answer when it began.
        self._excused: frozenset[OpenConnection] | None = None
        self.accepted = 0
        self.refused = 0
        self.closed_idle = 0
        self.closed_malformed = 0
        # The bytes of closed connections; open ones have their own counts.
        self._received_bytes = 0
        self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(self._connections)

    @property
    def received_bytes(self) -> int:
        """The bytes that all connections have received since the broker started."""
        return self._received_bytes + sum(connection.received_bytes for connection in self._connections)

    @property
    def sent_bytes(self) -> int:
        """The bytes that all connections have sent since the broker started."""
        return self._sent_bytes + sum(connection.sent_bytes for connection in self._connections)

    def add(self, connection: OpenConnection) -> bool:
        """Add a new connection; False if a limit refuses it: the caller closes it at once."""
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
        """Call back at a monotonic time."""
        return self._timer.call_at(deadline_ms, callback)

    def remove(self, connection: OpenConnection) -> None:
        """Forget a lost connection. A refused one is ignored."""
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
        for on_lost in self.on_lost:
            on_lost(connection.session)

    def stop_reading(self) -> None:
        """Take no further requests from any connection."""
        self.is_stopping = True
        for connection in self._connections:
            connection.stop_reading()

    def busy(self) -> int:
        """Return the number of connections that still owe an answer."""
        return sum(connection.is_busy for connection in self._connections)

    def close_all(self) -> None:
        """Close every connection now. Answers that clients have not taken are dropped."""
        for connection in (*self._connections, *self._unread):
            connection.end()

    def _excess_ms(self, ip: str, now_ms: float) -> float:
        """Return the time to keep a new connection above its address's rate before it is closed; 0 if it is within the rate."""
        if self.ip_rates is None:
            if self.ip_quotas is None or not self.ip_quotas.connection_rates:
                return 0.0

            self.ip_rates = IpConnectionRates(self.ip_quotas)
        return self.ip_rates.excess_ms(ip, now_ms)

    def _leave_unread(self, connection: OpenConnection, excess_ms: float) -> None:
        self._unread.add(connection)
        connection.leave_unread()
        self._timer.call_after(excess_ms, connection.end)

    def _refuse(self, connection: OpenConnection, config: str, limit: int) -> bool:
        self.refused += 1
        host, port = connection.session.peer
        extra_fields = None if self.is_stopping else self.line_limit.admit((config, host))
        if extra_fields is not None:
            log.warn("refusing a connection", peer=f"{host}:{port}", config=config, limit=limit, **extra_fields)
        return False

    def _end_stalled(self, connection: OpenConnection, what: str, after_ms: float) -> None:
        host, port = connection.session.peer
        extra_fields = self.line_limit.admit(("stalled", host))
        if extra_fields is not None:
            cause = f"other clients wait for its memory, and {what}"
            log.warn("closing a connection", peer=f"{host}:{port}", cause=cause, **extra_fields)
        self._timer.call_after(after_ms, connection.end)

    def begin_silence(self) -> None:
        """Begin a silence: no client is heard until ``end_silence``. Clients that now wait for an answer count as active."""
        self._excused = frozenset(connection for connection in self._connections if connection.is_busy)

    def end_silence(self) -> None:
        """End the silence: clients are heard again."""
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
        """Return the time to the next sweep; None if nothing can be swept before the silence ends. Memory is freed after it."""
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
        """Close idle and stalled connections, and trim quiet ones. Repeats while there are connections."""
        self._next_sweep = None
        max_idle_ms = self._limits().max_idle_ms
        now_ms = self.clock.monotonic_ms()
        stalled = frozenset(self.memory.stalled())
        unread = frozenset() if self.response_memory is None else self.response_memory.stalled()
        excused = self._excused or frozenset()
        # Freeing many megabytes takes many milliseconds, so each connection ends in its own turn of the loop.
        after_ms = 0.0
        for connection in tuple(self._connections - excused):
            if connection in stalled:
                self._end_stalled(connection, "its request did not arrive in time (queued.max.request.bytes)", after_ms)
                after_ms += _BETWEEN_ENDS_MS
            elif connection.session in unread:
                self._end_stalled(connection, "it did not read its response in time (queued.max.response.bytes)", after_ms)
                after_ms += _BETWEEN_ENDS_MS
            elif 0 <= max_idle_ms < connection.idle_ms(now_ms):
                self.closed_idle += 1
                connection.end()
            elif now_ms - connection.last_active_ms > _TRIM_AFTER_MS:
                connection.trim()
        if self._connections:
            self._arm_sweep()
