"""``connection_creation_rate`` of ip entities: how many connections a second there may be of one IP address (KIP-612).

As in Kafka, a connection above the rate is accepted, left unread until the rate would have permitted it, a second at most, and
closed. It does not count. Imported with the first such quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.host_names import is_address, look_up
from odradek.broker.network.connection_rate import ConnectionRate

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """How long a new connection from ``ip`` is kept before it is closed; 0 where the rate permits it."""
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
