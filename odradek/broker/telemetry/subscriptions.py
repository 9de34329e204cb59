"""Subscriptions: what is asked of which client, and the id of it all.

A client is asked for the metrics of every subscription that matches, in the smallest of their intervals. The id changes with
either, so that a client that pushes what is not asked any more is told to ask anew.

    id = CRC-32C of "[prefix, prefix]" + interval, exclusive or the hash code of the client instance's id

The prefixes are in the order of a Java HashSet, as in Kafka: a client sees the same ids from brokers of both kinds.

A client may get its subscription once in a push interval, and push once in one; the first push after a get may come at any time,
since clients draw when they begin.

Sources: ``ClientMetricsManager``, ``ClientMetricsConfigs`` and ``ClientMetricsInstance`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from odradek.common.config.definitions import parse_list
from odradek.controller.metadata.client_metrics_configs import parse_match
from odradek.coordinator.runtime.hashing import java_string_hash
from odradek.protocol.errors import ErrorCode

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
# A longer attribute matches nothing: a match takes time by its length.
_LONGEST_ATTRIBUTE: Final = 1024


class Subscription(NamedTuple):
    """A resource of type CLIENT_METRICS."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, Pattern]

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        """Return whether a client with these attributes is asked."""
        for name, pattern in self.match.items():
            value = attributes.get(name)
            if value is None or len(value) > _LONGEST_ATTRIBUTE or pattern.fullmatch(value) is None:
                return False
        return True


class Asked(NamedTuple):
    """What one client instance is asked for. Without ``metrics`` it is asked for nothing, and asks again after the interval."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


def subscription_of(configs: Mapping[str, str]) -> Subscription:
    """The subscription of a resource's configs. Raises KafkaError for a pattern that RE2 does not have."""
    metrics = parse_list(configs.get("metrics", ""))
    return Subscription(
        metrics, int(configs.get("interval.ms", DEFAULT_INTERVAL_MS)), parse_match(parse_list(configs.get("match", "")))
    )


def asked_of(subscriptions: Iterable[Subscription], attributes: Mapping[str, str | None], instance_id: UUID) -> Asked:
    """What a client instance is asked for by the subscriptions that match its attributes."""
    interval_ms = DEFAULT_INTERVAL_MS
    prefixes: dict[str, None] = {}
    for subscription in subscriptions:
        if subscription.matches(attributes):
            prefixes.update(dict.fromkeys(in_hash_order(subscription.metrics)))
            interval_ms = min(interval_ms, subscription.interval_ms)
    metrics = (ALL_METRICS,) if ALL_METRICS in prefixes else in_hash_order(prefixes)
    return Asked(metrics, interval_ms, subscription_id(metrics, interval_ms, instance_id))


def subscription_id(metrics: Iterable[str], interval_ms: int, instance_id: UUID) -> int:
    """A signed 32-bit integer. See the module."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    halves = instance_id.int >> 64 ^ instance_id.int & (1 << 64) - 1
    found = checksum ^ (halves >> 32 ^ halves) & _INT32_MASK
    return found - (1 << 32) if found >> 31 else found


def in_hash_order(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct names as a java.util.HashSet has them that was filled in this order. A bucket of eight would differ."""
    distinct = tuple(names)
    size = _SMALLEST_TABLE
    while len(distinct) > size * 3 // 4:
        size *= 2

    def bucket(name: str) -> int:
        value = java_string_hash(name) & _INT32_MASK
        return (value ^ value >> 16) & size - 1

    return tuple(sorted(distinct, key=bucket))


def id_text(instance_id: UUID) -> str:
    """A client instance's id as Kafka writes it: base64 for URLs."""
    return urlsafe_b64encode(instance_id.bytes).rstrip(b"=").decode()


class ClientInstance:
    """Times are those of the monotonic clock; None before the first request. Loop thread only."""

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
        self, instance_id: UUID, session: Session, attributes: Mapping[str, str | None], asked: Asked, version: int
    ) -> None:
        """It goes with its ``session``. ``version`` is that of the subscriptions which ``asked`` was made of."""
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
        """Note a get, if it does not come too early."""
        times = [each for each in (self._last_get_ms, self._last_push_ms) if each is not None]
        if times and now_ms - max(times) < self.asked.interval_ms:
            return False
        self._last_get_ms = now_ms
        return True

    def may_push(self, now_ms: float) -> bool:
        """Note a push, if it does not come too early."""
        get_ms, push_ms = self._last_get_ms, self._last_push_ms
        has_got = get_ms is not None and (push_ms is None or get_ms > push_ms)
        if not has_got and push_ms is not None and now_ms - push_ms < self.asked.interval_ms:
            return False
        self._last_push_ms = now_ms
        return True

    def cancel_expiry(self) -> None:
        """It is gone, or another one in its place."""
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None
