"""What the clients of one broker take of one kind of quota: a sensor for each entity, and how long its clients are throttled.

    Produce, Fetch    bytes a second
    Request           percent of the broker's one thread. A throttle time is at most one sample long, as in Kafka

A value is recorded first and looked at then: what goes over the quota is let through, and is paid for by the time after it. A
client that no quota holds for has no sensor. A sensor that nothing is recorded to for an hour is forgotten, and of more than
10,000, which Kafka would keep, the longest idle ones.

Pure: times come in, in whole milliseconds of a clock that does not go back. Kafka's classes are ClientQuotaManager and
ClientRequestQuotaManager.

A client that changes topics has a bucket of tokens (KIP-599; Kafka's class is TokenBucket). Tokens come at the quota's rate, up
to as many as ``burst_s`` seconds bring. A change takes its tokens even where that leaves fewer than none.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.broker.quotas.sampled import Samples, rate_throttle_ms

if TYPE_CHECKING:
    from odradek.controller.metadata.client_quotas import ClientQuotas, Limit

_SECOND_MS: Final = 1_000


class TokenBucket:
    """One client's tokens; full at first. ``limit`` is the quota at the time, in tokens a second."""

    __slots__ = ("_burst_s", "_filled_ms", "_tokens")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens = 0.0
        self._filled_ms: int | None = None

    def tokens(self, limit: float, now_ms: int) -> float:
        """Return the number of tokens; below 0 it is the client's debt."""
        burst = self._burst_s * limit
        if self._filled_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * ((now_ms - self._filled_ms) / _SECOND_MS))
        self._filled_ms = now_ms
        return self._tokens

    def take(self, tokens: float, limit: float, now_ms: int) -> None:
        """Take so many, there or not."""
        self._tokens = min(self._burst_s * limit, self.tokens(limit, now_ms) - tokens)


# The user and the client id of a sensor: "" for one that all users, or all client ids, share.
Owner: TypeAlias = tuple[str, str]

IDLE_MS: Final = 3_600_000
_LOOK_EVERY_MS: Final = 30_000
# Kafka's metrics.num.samples and metrics.sample.window.ms: of what is only shown.
SHOWN_SAMPLES: Final = 2
SHOWN_SAMPLE_MS: Final = 30_000
# Clients whose sensors are known without a look at the quotas.
_MOST_CLIENTS: Final = 10_000
_MOST_SENSORS: Final = 10_000


class QuotaWindow(NamedTuple):
    """``quota.window.num`` samples of ``quota.window.size.seconds``."""

    samples: int = 11
    sample_s: int = 1


class Sensor:
    """What the clients of one entity have taken. ``limit`` is the quota that holds for them now."""

    __slots__ = ("bucket", "last_ms", "limit", "samples", "throttled")

    def __init__(self, limit: float, window: QuotaWindow, now_ms: int, *, is_bucket: bool) -> None:
        self.limit = limit
        count, sample_s = (SHOWN_SAMPLES, SHOWN_SAMPLE_MS // 1_000) if is_bucket else window
        self.samples = Samples(count, sample_s * 1_000)
        self.bucket = TokenBucket(window.samples * window.sample_s)
        self.throttled = Samples(SHOWN_SAMPLES, SHOWN_SAMPLE_MS)
        self.last_ms = now_ms


class ClientQuotaManager:
    """The sensors of the quota ``key``. ``most_ms`` bounds throttle times, if it is given."""

    def __init__(
        self, key: str, quotas: "ClientQuotas", window: QuotaWindow, *, most_ms: int | None = None, is_bucket: bool = False
    ) -> None:
        self._key = key
        self._quotas = quotas
        self._window = window
        self._most_ms = most_ms
        self._is_bucket = is_bucket
        self._sensors: dict[Owner, Sensor] = {}
        # By (user, client id); None for clients without a quota. Of one version of the quotas.
        self._of_clients: dict[Owner, Sensor | None] = {}
        self._version = -1
        self._looked_ms = 0
        # When the throttle times that clients have been told are over.
        self._ends_ms: list[int] = []

    @property
    def is_enabled(self) -> bool:
        """Return whether any client has this quota."""
        return not self._quotas.is_empty(self._key)

    def sensor(self, user: str, client_id: str, now_ms: int) -> Sensor | None:
        """What a client's values are recorded to; None where no quota holds for it."""
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
        """Count what a client has taken; how long it is throttled for, or 0."""
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
        """A client has not got what was recorded."""
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.samples.record(-value, now_ms)

    def most_in_window(self, user: str, client_id: str, now_ms: int) -> float | None:
        """What a client may take at once without being throttled if it has taken nothing before; None for no bound."""
        sensor = self.sensor(user, client_id, now_ms)
        return None if sensor is None else sensor.limit * (self._window.samples - 1) * self._window.sample_s

    def note_throttled(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """A client has been told so."""
        heappush(self._ends_ms, now_ms + throttle_ms)
        self.throttled_now(now_ms)
        sensor = self.sensor(user, client_id, now_ms)
        if sensor is not None:
            sensor.throttled.record(throttle_ms, now_ms)

    def throttled_now(self, now_ms: int) -> int:
        """How many throttle times are not over yet: Kafka's queue-size."""
        ends_ms = self._ends_ms
        while ends_ms and ends_ms[0] <= now_ms:
            heappop(ends_ms)
        return len(ends_ms)

    def sensors(self, now_ms: int) -> Iterator[tuple[Owner, Sensor]]:
        """All that there are."""
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
            # Many at once: to find them takes long.
            by_age = sorted(self._sensors, key=lambda owner: self._sensors[owner].last_ms)
            idle = by_age[: _MOST_SENSORS // 4]
        for owner in idle:
            del self._sensors[owner]
        if idle:
            self._of_clients.clear()
