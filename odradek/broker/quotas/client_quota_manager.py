"""The measures of client quotas: the usage of clients, their throttle times, and the sizes that count.

Pure: times are passed in, in whole milliseconds of a clock that does not go back.

**Samples** (Kafka: SampledStat). Values in samples of time, with their rates, averages and throttle times:

    sample     begins with the first value after the previous sample is ``sample_ms`` old, and lasts until the next one begins
    obsolete   a sample without a value for ``count * sample_ms``: it is emptied, and begins again
    window     the time over which a rate is measured: since the oldest sample began. If that is shorter than ``count - 1``
               samples, whole samples are added, so that the first value of an idle client is no burst

One sample more than ``count`` is kept, since the oldest may overlap the window. Sums are made in Kafka's order, so that rates are
equal to the last bit.

**Usage.** One manager for each kind of quota, with a sensor for each entity:

    Produce, Fetch    bytes per second. A Fetch response counts as in Kafka: its body in its version, without the tagged fields
                      with leaders and diverging epochs, and four bytes. A ShareFetch response counts likewise, without the
                      outcomes of acknowledgements
    Request           percent of the broker's one thread. A throttle time is at most one sample long, as in Kafka

A value is recorded first and checked afterwards: usage above the quota is let through, and the client is throttled after it. A
client without a quota has no sensor. A sensor without a value for an hour is dropped. Above 10,000 sensors the longest idle ones
are dropped, too; Kafka would keep them.

**Controller mutations** (KIP-599): partitions created and deleted. A client has a token bucket. Tokens arrive at the quota's
rate, up to the tokens of ``burst_s`` seconds. A change takes its tokens even if the balance becomes negative.

    strict        if the client owes tokens, its request changes nothing: THROTTLING_QUOTA_EXCEEDED. Else it may take any number
    permissive    for versions without this error: everything is changed, and the client is throttled for its debt

A validation counts like the change itself.

Kafka 4.4's classes: SampledStat, Rate, Avg, QuotaUtils, ClientQuotaManager, ClientRequestQuotaManager, TokenBucket,
ControllerMutationQuotaManager, StrictControllerMutationQuota and PermissiveControllerMutationQuota.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby
from math import floor
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.controller.metadata.client_quotas import CONTROLLER_MUTATION_RATE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.varint import uvarint

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.replica.fetch_sessions import Results
    from odradek.controller.metadata.client_quotas import ClientQuotas, Limit
    from odradek.protocol.message_types.share_fetch import ShareFetchResponse

_SECOND_MS: Final = 1_000


class _Sample:
    """The values of one sample."""

    __slots__ = ("began_ms", "events", "last_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Begin again, without values."""
        self.total = 0.0
        self.events = 0
        self.began_ms = now_ms
        self.last_ms = now_ms


class Samples:
    """``count`` samples of ``sample_ms`` each."""

    __slots__ = ("_count", "_current", "_sample_ms", "_samples")

    def __init__(self, count: int, sample_ms: int) -> None:
        self._count = count
        self._sample_ms = sample_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count a value."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.began_ms >= self._sample_ms:
            self._current = (self._current + 1) % (self._count + 1)
            if self._current >= len(samples):
                samples.append(_Sample(now_ms))
                sample = samples[self._current]
            else:
                sample = samples[self._current]
                sample.begin(now_ms)
        sample.total += value
        sample.events += 1
        sample.last_ms = now_ms

    def window_ms(self, now_ms: int) -> int:
        """Return the length of the window; at least 1."""
        self._forget(now_ms)
        elapsed_ms = now_ms - min((sample.began_ms for sample in self._samples), default=now_ms)
        missing = self._count - 1 - elapsed_ms // self._sample_ms
        if missing > 0:
            elapsed_ms += missing * self._sample_ms
        return max(elapsed_ms, 1)

    def per_s(self, now_ms: int) -> float:
        """Return the rate per second over the window."""
        self._forget(now_ms)
        total = 0.0
        for sample in self._samples:
            total += sample.total
        return total / (self.window_ms(now_ms) / _SECOND_MS)

    def average(self, now_ms: int) -> float | None:
        """Return the average value; None without values."""
        self._forget(now_ms)
        events = sum(sample.events for sample in self._samples)
        return sum(sample.total for sample in self._samples) / events if events else None

    def _forget(self, now_ms: int) -> None:
        """Empty the obsolete samples."""
        kept_ms = self._count * self._sample_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= kept_ms:
                sample.begin(now_ms)


# Throttle times are 32-bit integers in responses.
MOST_MS: Final = (1 << 31) - 1


def rate_throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """Return the time until the rate over ``window_ms`` falls to ``limit``, without further values."""
    return _rounded((rate - limit) / limit * window_ms)


def bucket_throttle_ms(tokens: float, limit: float) -> int:
    """Return the time until a bucket with a debt has 0 tokens, at ``limit`` tokens per second."""
    return _rounded(-tokens / limit * _SECOND_MS)


def _rounded(time_ms: float) -> int:
    return min(floor(time_ms + 0.5), MOST_MS)


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


# The first versions whose clients know THROTTLING_QUOTA_EXCEEDED.
STRICT_FROM: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}


class MutationQuota:
    """The quota of one request, charged to its client's token bucket."""

    __slots__ = ("_clock", "_is_strict", "_recorded_ms", "_sensor", "_throttle_ms")

    def __init__(self, sensor: "Sensor", clock: Callable[[], int], *, is_strict: bool) -> None:
        self._sensor = sensor
        self._clock = clock
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._recorded_ms = 0

    def take(self, partitions: int) -> None:
        """Take a token for each of ``partitions``. Raises KafkaError: THROTTLING_QUOTA_EXCEEDED; then none are taken."""
        sensor, now_ms = self._sensor, self._clock()
        if self._is_strict:
            tokens = sensor.bucket.tokens(sensor.limit, now_ms)
            if tokens < 0:
                self._note(tokens, now_ms)
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client changed too many partitions recently.")
        sensor.last_ms = now_ms
        sensor.samples.record(partitions, now_ms)
        sensor.bucket.take(partitions, sensor.limit, now_ms)
        tokens = sensor.bucket.tokens(sensor.limit, now_ms)
        if not self._is_strict and tokens < 0:
            self._note(tokens, now_ms)

    @property
    def throttle_ms(self) -> int:
        """The time from now for which the client has to wait."""
        return max(0, self._throttle_ms - (self._clock() - self._recorded_ms))

    def _note(self, tokens: float, now_ms: int) -> None:
        self._throttle_ms = bucket_throttle_ms(tokens, self._sensor.limit)
        self._recorded_ms = now_ms


class MutationQuotaManager(ClientQuotaManager):
    """The token buckets of the clients of one controller."""

    def __init__(self, quotas: "ClientQuotas", window: QuotaWindow, clock: Callable[[], int]) -> None:
        super().__init__(CONTROLLER_MUTATION_RATE, quotas, window, is_bucket=True)
        self._clock = clock

    def quota_for(self, user: str, client_id: str, api_key: ApiKey, version: int) -> MutationQuota | None:
        """Return the quota of a request; None if its client has no quota."""
        sensor = self.sensor(user, client_id, self._clock())
        if sensor is None:
            return None
        return MutationQuota(sensor, self._clock, is_strict=version >= STRICT_FROM[api_key])


_FLEXIBLE: Final = 12
_BY_ID: Final = 13
_ID_BYTES: Final = 16
_ABORTED_BYTES: Final = 16
# Index, error code, high watermark, last stable offset; from version 5 on the log start offset, from 11 on a replica id.
_PARTITION_BYTES: Final = 22
_LOG_START_BYTES: Final = 8
_PREFERRED_BYTES: Final = 4
_LENGTH_BYTES: Final = 4
# The throttle time; from version 7 on, error code and session id.
_HEAD_BYTES: Final = 4
_SESSION_BYTES: Final = 6


def fetch_response_bytes(version: int, results: "Results") -> int:
    """Return the size of the response with these results."""
    by_topic = [(key, [data for _, data in group]) for key, group in groupby(results, lambda result: result[0].topic_key)]
    size = _LENGTH_BYTES + _HEAD_BYTES + (_SESSION_BYTES if version >= 7 else 0) + _length(version, by_topic) + _tags(version)
    fixed = _PARTITION_BYTES + (_LOG_START_BYTES if version >= 5 else 0) + (_PREFERRED_BYTES if version >= 11 else 0)
    for key, partitions in by_topic:
        size += _topic(version, key) + _length(version, partitions) + _tags(version)
        for data in partitions:
            aborted = data.aborted_transactions
            records_bytes = 0 if data.records is None else len(data.records)
            size += fixed + _length(version, aborted or ()) + _tags(version)
            size += (_ABORTED_BYTES + _tags(version)) * len(aborted or ())
            size += records_bytes + (len(uvarint(records_bytes + 1)) if version >= _FLEXIBLE else _LENGTH_BYTES)
    return size


def _topic(version: int, key: "UUID | str | None") -> int:
    if version >= _BY_ID or not isinstance(key, str):
        return _ID_BYTES
    name = key.encode()
    return len(name) + (len(uvarint(len(name) + 1)) if version >= _FLEXIBLE else 2)


def _length(version: int, items: Sequence[object]) -> int:
    return len(uvarint(len(items) + 1)) if version >= _FLEXIBLE else _LENGTH_BYTES


def _tags(version: int) -> int:
    return 1 if version >= _FLEXIBLE else 0


# The throttle time, the error without a message, the lock timeout, no endpoint of a node, and the tags.
_SHARE_HEAD_BYTES: Final = 4 + 2 + 1 + 4 + 1 + 1
# Index, two errors without messages, the current leader with its tags, and the partition's own tags.
_SHARE_PARTITION_BYTES: Final = 4 + 2 * (2 + 1) + 9 + 1
_ACQUIRED_BYTES: Final = 8 + 8 + 2 + 1


def share_fetch_response_bytes(response: "ShareFetchResponse") -> int:
    """Return the size of a ShareFetch response. All versions have the same fields."""
    size = _LENGTH_BYTES + _SHARE_HEAD_BYTES + _length(_FLEXIBLE, response.responses)
    for topic in response.responses:
        size += _ID_BYTES + _length(_FLEXIBLE, topic.partitions) + 1
        for data in topic.partitions:
            records_bytes = 0 if data.records is None else len(data.records)
            size += _SHARE_PARTITION_BYTES + len(uvarint(records_bytes + 1)) + records_bytes
            size += _length(_FLEXIBLE, data.acquired_records) + _ACQUIRED_BYTES * len(data.acquired_records)
    return size
