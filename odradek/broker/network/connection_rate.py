"""How many connections a second there may be: ``max.connection.creation.rate``, and the rate of one address (KIP-612).

Kafka measures the rate over ten seconds, so that many connections may come at once after a silence. Its acceptor waits with each
connection above ``max.connection.creation.rate``, a second at most, and those behind wait to be accepted. Here a connection above
that rate is accepted, and its first request waits instead.

``connection_creation_rate`` of ip entities is for one IP address: as in Kafka, a connection above the rate is accepted, left
unread until the rate would have permitted it, a second at most, and closed. It does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from odradek.common.host_names import is_address, look_up

if TYPE_CHECKING:
    from collections.abc import Mapping

_BURST_MS = 10_000.0
_MAX_INTERVAL_MS = 1_000.0


class ConnectionRate:
    """The turns given to connections so far. Loop thread only."""

    __slots__ = ("_turn_ms",)

    def __init__(self) -> None:
        # When the last connection's turn was or is, had they all kept the rate.
        self._turn_ms = float("-inf")

    def delay_ms(self, now_ms: float, per_second: int) -> float:
        """How long a connection made at ``now_ms`` (monotonic) waits; 0 as long as the rate is kept. Counts the connection."""
        interval_ms = min(1000 / per_second, _MAX_INTERVAL_MS) if per_second else _MAX_INTERVAL_MS
        burst_ms = _BURST_MS if per_second else 0.0
        self._turn_ms = max(self._turn_ms, now_ms - burst_ms) + interval_ms
        return max(0.0, self._turn_ms - now_ms)

    def excess_ms(self, now_ms: float, per_second: int) -> float:
        """The same, a second at most; one that would have to wait is not counted."""
        before_ms = self._turn_ms
        delay_ms = self.delay_ms(now_ms, per_second)
        if delay_ms > 0:
            self._turn_ms = before_ms
        return min(delay_ms, _MAX_INTERVAL_MS)

    def is_silent(self, now_ms: float) -> bool:
        """Return whether the rate is what it would be without any connection so far."""
        return self._turn_ms <= now_ms - _BURST_MS


# Kafka's INT.MAX, which is no limit.
_NO_LIMIT: Final = (1 << 31) - 1
# So many addresses are kept before those are looked for that have been silent.
_FEW: Final = 1_000


class IpQuotas(Protocol):
    """The quotas of ip entities (``metadata.client_quotas``)."""

    @property
    def version(self) -> int:
        """Another one after each change."""

    @property
    def connection_rates(self) -> Mapping[str | None, float]:
        """Connections a second by IP address or host name; None is the default."""


class IpConnectionRates:
    """The rates of the addresses that have a quota. Host names are looked up when quotas change. Loop thread only."""

    def __init__(self, quotas: IpQuotas) -> None:
        self._quotas = quotas
        self._version = -1
        self._limits: dict[str | None, int] = {}
        self._rates: dict[str, ConnectionRate] = {}
        self._most = _FEW
        # Connections that were above their rate, and how long they were kept.
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
    """An IPv4 address that a socket of IPv6 tells, as IPv4; without the scope that an address of a link has."""
    return ip.partition("%")[0].removeprefix("::ffff:")
