"""Telemetry subscriptions: the metrics requested from each client, and the subscription id.

A client pushes the metrics of all matching subscriptions, at the smallest of their intervals. The subscription id depends on
both, so a client with an outdated subscription is told to get the new one.

    id = CRC-32C of "[prefix, prefix]" + interval, XOR the hash code of the client instance's id

The prefixes are in the order of a Java HashSet, as in Kafka: a client gets the same ids from both kinds of brokers.

A client may get its subscription once per push interval, and push once per interval. The first push after a get may come at any
time, since clients choose a random start.

Sources: ``ClientMetricsManager``, ``ClientMetricsConfigs`` and ``ClientMetricsInstance`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from odradek.common.config.definitions import parse_list
from odradek.controller.metadata.resource_configs import parse_match
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import java_string_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from odradek.common.context import Session
    from odradek.protocol.patterns import Pattern
    from odradek.timing.timer import TimerTask

DEFAULT_INTERVAL_MS: Final = 300_000
ALL_METRICS: Final = "*"
_SMALLEST_TABLE: Final = 16
_INT32_MASK: Final = 0xFFFFFFFF
# A longer attribute matches nothing, since the time to match grows with the length.
_LONGEST_ATTRIBUTE: Final = 1024


class Subscription(NamedTuple):
    """A subscription: a config resource of type CLIENT_METRICS."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, Pattern]

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        """Return whether the subscription applies to a client with these attributes."""
        for name, pattern in self.match.items():
            value = attributes.get(name)
            if value is None or len(value) > _LONGEST_ATTRIBUTE or pattern.fullmatch(value) is None:
                return False
        return True


class RequestedMetrics(NamedTuple):
    """The metrics requested from one client instance. Without ``metrics`` it only asks again after the interval."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


def subscription_of(configs: Mapping[str, str]) -> Subscription:
    """Make the subscription of a resource's configs. Raises KafkaError for a pattern that RE2 does not support."""
    metrics = parse_list(configs.get("metrics", ""))
    return Subscription(
        metrics, int(configs.get("interval.ms", DEFAULT_INTERVAL_MS)), parse_match(parse_list(configs.get("match", "")))
    )


def requested_metrics(
    subscriptions: Iterable[Subscription], attributes: Mapping[str, str | None], instance_id: UUID
) -> RequestedMetrics:
    """Return the metrics requested from a client instance by all subscriptions that match its attributes."""
    interval_ms = DEFAULT_INTERVAL_MS
    prefixes: dict[str, None] = {}
    for subscription in subscriptions:
        if subscription.matches(attributes):
            prefixes.update(dict.fromkeys(in_hash_order(subscription.metrics)))
            interval_ms = min(interval_ms, subscription.interval_ms)
    metrics = (ALL_METRICS,) if ALL_METRICS in prefixes else in_hash_order(prefixes)
    return RequestedMetrics(metrics, interval_ms, subscription_id(metrics, interval_ms, instance_id))


def subscription_id(metrics: Iterable[str], interval_ms: int, instance_id: UUID) -> int:
    """Return the subscription id, a signed 32-bit integer. See the module."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    halves = instance_id.int >> 64 ^ instance_id.int & (1 << 64) - 1
    found = checksum ^ (halves >> 32 ^ halves) & _INT32_MASK
    return found - (1 << 32) if found >> 31 else found


def in_hash_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return distinct names in the order of a java.util.HashSet filled in this order. A bucket of eight would differ."""
    distinct = tuple(names)
    size = _SMALLEST_TABLE
    while len(distinct) > size * 3 // 4:
        size *= 2

    def bucket(name: str) -> int:
        value = java_string_hash(name) & _INT32_MASK
        return (value ^ value >> 16) & size - 1

    return tuple(sorted(distinct, key=bucket))


class ClientInstance:
    """A known client instance. Times are monotonic; None before the first request. Loop thread only."""

    __slots__ = (
        "_last_get_ms",
        "_last_push_ms",
        "asked",
        "attributes",
        "expiry",
        "instance_id",
        "is_terminating",
        "last_error",
        "session",
        "version",
    )

    def __init__(
        self, instance_id: UUID, session: Session, attributes: Mapping[str, str | None], asked: RequestedMetrics, version: int
    ) -> None:
        """The instance ends with its ``session``. ``version`` is the version of the subscriptions behind ``asked``."""
        self.instance_id = instance_id
        self.session = session
        self.attributes = attributes
        self.asked = asked
        self.version = version
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.expiry: TimerTask | None = None
        self._last_get_ms: float | None = None
        self._last_push_ms: float | None = None

    def may_get(self, now_ms: float) -> bool:
        """Note a get; False if it comes too early."""
        times = [each for each in (self._last_get_ms, self._last_push_ms) if each is not None]
        if times and now_ms - max(times) < self.asked.interval_ms:
            return False
        self._last_get_ms = now_ms
        return True

    def may_push(self, now_ms: float) -> bool:
        """Note a push; False if it comes too early."""
        get_ms, push_ms = self._last_get_ms, self._last_push_ms
        has_got = get_ms is not None and (push_ms is None or get_ms > push_ms)
        if not has_got and push_ms is not None and now_ms - push_ms < self.asked.interval_ms:
            return False
        self._last_push_ms = now_ms
        return True

    def cancel_expiry(self) -> None:
        """Cancel the expiry: the instance is gone, replaced, or active again."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None
