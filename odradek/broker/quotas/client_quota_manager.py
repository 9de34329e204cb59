"""The usage of one kind of quota by the clients of one broker: a sensor for each entity, and the throttle times.

    Produce, Fetch    bytes per second
    Request           percent of the broker's one thread. A throttle time is at most one sample long, as in Kafka

A value is recorded first and checked afterwards: usage above the quota is let through, and the client is throttled after it. A
client without a quota has no sensor. A sensor without a value for an hour is dropped. Above 10,000 sensors the longest idle ones
are dropped, too; Kafka would keep them.

Pure: times are passed in, in whole milliseconds of a clock that does not go back. Kafka's classes are ClientQuotaManager and
ClientRequestQuotaManager.

A client that changes topics has a token bucket (KIP-599; Kafka's class is TokenBucket). Tokens arrive at the quota's rate, up to
the tokens of ``burst_s`` seconds. A change takes its tokens even if the balance becomes negative.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.broker.quotas.sampled import Samples, rate_throttle_ms

if TYPE_CHECKING:
    from odradek.controller.metadata.client_quotas import ClientQuotas, Limit

_SECOND_MS: Final = 1_000


class TokenBucket:
    """The token bucket of one client; full at first. ``limit`` is the current quota, in tokens per second."""

    __slots__ = ("_burst_s", "_filled_ms", "_tokens")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens = 0.0
        self._filled_ms: int | None = None

    def tokens(self, limit: float, now_ms: int) -> float:
        """Return the number of tokens; a negative number is the client's debt."""
        burst = self._burst_s * limit
        if self._filled_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * ((now_ms - self._filled_ms) / _SECOND_MS))
        self._filled_ms = now_ms
        return self._tokens

    def take(self, tokens: float, limit: float, now_ms: int) -> None:
        """Take tokens, even more than there are."""
        self._tokens = min(self._burst_s * limit, self.tokens(limit, now_ms) - tokens)


# The user and the client id of a sensor; "" if all users, or all client ids, share it.
Owner: TypeAlias = tuple[str, str]

IDLE_MS: Final = 3_600_000
_LOOK_EVERY_MS: Final = 30_000
# Kafka's metrics.num.samples and metrics.sample.window.ms, for values that are only shown as metrics.
SHOWN_SAMPLES: Final = 2
SHOWN_SAMPLE_MS: Final = 30_000
# The size of the cache from clients to sensors.
_MOST_CLIENTS: Final = 10_000
_MOST_SENSORS: Final = 10_000


class QuotaWindow(NamedTuple):
    """``quota.window.num`` samples of ``quota.window.size.seconds``."""

    samples: int = 11
    sample_s: int = 1


class Sensor:
    """The usage by the clients of one entity. ``limit`` is their current quota."""

    __slots__ = ("bucket", "last_ms", "limit", "samples", "throttled")

    def __init__(self, limit: float, window: QuotaWindow, now_ms: int, *, is_bucket: bool) -> None:
        self.limit = limit
        count, sample_s = (SHOWN_SAMPLES, SHOWN_SAMPLE_MS // 1_000) if is_bucket else window
        self.samples = Samples(count, sample_s * 1_000)
        self.bucket = TokenBucket(window.samples * window.sample_s)
        self.throttled = Samples(SHOWN_SAMPLES, SHOWN_SAMPLE_MS)
        self.last_ms = now_ms


class ClientQuotaManager:
    """The sensors of the quota ``key``. ``most_ms`` bounds the throttle times, if given."""

    def __init__(
        self, key: str, quotas: "ClientQuotas", window: QuotaWindow, *, most_ms: int | None = None, is_bucket: bool = False
    ) -> None:
        self._key = key
        self._quotas = quotas
        self._window = window
        self._most_ms = most_ms
        self._is_bucket = is_bucket
        self._sensors: dict[Owner, Sensor] = {}
        # The sensors by (user, client id), for one version of the quotas; None for clients without a quota.
        self._of_clients: dict[Owner, Sensor | None] = {}
        self._version = -1
        self._looked_ms = 0
        # The ends of the throttle times sent to clients.
        self._ends_ms: list[int] = []

    @property
    def is_enabled(self) -> bool:
        """Return whether any client has this quota."""
        return not self._quotas.is_empty(self._key)

    def sensor(self, user: str, client_id: str, now_ms: int) -> Sensor | None:
        """Return the sensor for a client's values; None if the client has no quota."""
        if self._version != self._quotas.version:
            self._version = self._quotas.version
            self._of_clients.clear()
        client = (user, client_id)
        if client in self._of_clients:
            return self._of_clients[client]
        if len(self._of_clients) >= _MOST_CLIENTS:
            self._of_clients.clear()
        limit = self._quotas.limit(self._key, user, client_id)
        sensor = self._of_clients[client] = None if limit is None else self._bounded(limit, now_ms)
        return sensor

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Record a client's usage. Return its throttle time, or 0."""
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is None:
            return 0
        sensor.samples.record(value, now_ms)
        sensor.last_ms = now_ms
        rate = sensor.samples.per_s(now_ms)
        if rate <= sensor.limit:
            return 0
        throttle_ms = rate_throttle_ms(rate, sensor.limit, sensor.samples.window_ms(now_ms))
        return throttle_ms if self._most_ms is None else min(throttle_ms, self._most_ms)

    def take_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Subtract a recorded value that the client did not get."""
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.samples.record(-value, now_ms)

    def most_in_window(self, user: str, client_id: str, now_ms: int) -> float | None:
        """Return how much an idle client may take at once without being throttled; None without a quota."""
        sensor = self.sensor(user, client_id, now_ms)
        return None if sensor is None else sensor.limit * (self._window.samples - 1) * self._window.sample_s

    def note_throttled(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Note that a throttle time was sent to a client."""
        heappush(self._ends_ms, now_ms + throttle_ms)
        self.throttled_now(now_ms)
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.throttled.record(throttle_ms, now_ms)

    def throttled_now(self, now_ms: int) -> int:
        """Return the number of throttle times that are not over: Kafka's queue-size."""
        ends_ms = self._ends_ms
        while ends_ms and ends_ms[0] <= now_ms:
            heappop(ends_ms)
        return len(ends_ms)

    def sensors(self, now_ms: int) -> Iterator[tuple[Owner, Sensor]]:
        """Return all sensors with their owners, without idle ones."""
        self._forget_idle(now_ms)
        return iter(self._sensors.items())

    def _bounded(self, limit: "Limit", now_ms: int) -> Sensor:
        owner = (limit.user, limit.client_id)
        sensor = self._sensors.get(owner)
        if sensor is None:
            if now_ms - self._looked_ms >= _LOOK_EVERY_MS or len(self._sensors) >= _MOST_SENSORS:
                self._forget_idle(now_ms)
            sensor = self._sensors[owner] = Sensor(limit.value, self._window, now_ms, is_bucket=self._is_bucket)
        sensor.limit = limit.value
        return sensor

    def _forget_idle(self, now_ms: int) -> None:
        self._looked_ms = now_ms
        idle = [owner for owner, sensor in self._sensors.items() if now_ms - sensor.last_ms > IDLE_MS]
        if len(self._sensors) - len(idle) >= _MOST_SENSORS:
            # Drop many at once, since finding them takes long.
            by_age = sorted(self._sensors, key=lambda owner: self._sensors[owner].last_ms)
            idle = by_age[: _MOST_SENSORS // 4]
        for owner in idle:
            del self._sensors[owner]
        if idle:
            self._of_clients.clear()
