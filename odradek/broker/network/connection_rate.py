"""The limits on new connections per second: ``max.connection.creation.rate``, and the rate of one IP address (KIP-612).

Kafka measures the rate over ten seconds, so many connections may come at once after a silence. Above
``max.connection.creation.rate`` its acceptor delays each connection, by a second at most, and later connections wait to be
accepted. Here such a connection is accepted at once, and its first request waits instead.

``connection_creation_rate`` of ip entities limits one IP address. As in Kafka, a connection above the rate is accepted, left
unread until the rate would have permitted it, a second at most, and closed. It does not count towards the rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from odradek.common.host_names import is_address, look_up

if TYPE_CHECKING:
    from collections.abc import Mapping

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
