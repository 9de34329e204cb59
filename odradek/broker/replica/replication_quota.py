"""Replication quotas: limits in bytes per second for the replication of throttled replicas (KIP-73).

A rate is measured over a number of samples. Each sample is a time span with the bytes counted in it, and old samples expire.
Bytes are counted after they were sent or received, even above the limit. The rate is checked before the next ones. Replicas in
sync are never held back, or they would not stay in sync, but their bytes count.

A broker has one quota for the throttled replicas it leads, and one for those it follows. Kafka's class is
ReplicationQuotaManager.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.definitions import MAX_LONG
from odradek.common.config.dynamic import ResourceType
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.timing.clock import Clock

_SECOND_MS: Final = 1_000
# All partitions of a topic are throttled (``*``).
_ALL: Final = None


class ByteRate:
    """A rate in bytes per second, measured over ``count`` samples of ``sample_s``. ``bound`` returns its limit."""

    __slots__ = ("_clock", "_kept_ms", "_sample_ms", "_samples", "bound")

    def __init__(self, clock: Clock, bound: Callable[[], int], *, count: int, sample_s: int) -> None:
        self.bound = bound
        self._clock = clock
        self._sample_ms = sample_s * _SECOND_MS
        self._kept_ms = count * self._sample_ms
        # [start time, bytes], oldest first.
        self._samples: deque[list[float]] = deque()

    def record(self, size_bytes: int) -> None:
        """Count bytes that have been sent or received."""
        now_ms = self._clock.monotonic_ms()
        if not self._samples or now_ms - self._samples[-1][0] >= self._sample_ms:
            self._samples.append([now_ms, 0])
            self._forget(now_ms)
        self._samples[-1][1] += size_bytes

    @property
    def bytes_per_s(self) -> float:
        """The current rate."""
        now_ms = self._clock.monotonic_ms()
        self._forget(now_ms)
        if not self._samples:
            return 0.0
        # Less than one sample's time counts as a whole sample.
        elapsed_ms = max(now_ms - self._samples[0][0], self._sample_ms)
        return sum(size_bytes for _, size_bytes in self._samples) * _SECOND_MS / elapsed_ms

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit at all."""
        return self.bound() < MAX_LONG

    @property
    def is_exceeded(self) -> bool:
        """Return whether throttled partitions have to wait."""
        return self.is_limited and self.bytes_per_s > self.bound()

    def _forget(self, now_ms: float) -> None:
        while self._samples and now_ms - self._samples[0][0] >= self._kept_ms:
            self._samples.popleft()


class ReplicationQuota:
    """The quota of one direction. ``entries`` returns a topic's throttled replicas: ``*``, or PARTITION:BROKER each."""

    __slots__ = ("_entries", "_node_id", "_throttled", "rate")

    def __init__(self, rate: ByteRate, node_id: int, entries: Callable[[str], tuple[str, ...]]) -> None:
        self.rate = rate
        self._node_id = node_id
        self._entries = entries
        # Cached, as each fetch asks for it.
        self._throttled: dict[str, frozenset[int] | None] = {}

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Return whether this broker's replica of a partition is throttled."""
        if topic not in self._throttled:
            self._throttled[topic] = self._partitions_in(self._entries(topic))
        partitions = self._throttled[topic]
        return partitions is _ALL or partition in partitions

    def holds_back(self, topic: str, partition: int) -> bool:
        """Return whether a replica that is not in sync has to wait."""
        return self.rate.is_limited and self.is_throttled(topic, partition) and self.rate.is_exceeded

    def record(self, topic: str, partition: int, size_bytes: int) -> None:
        """Count replicated bytes, whether the replica is in sync or not."""
        if self.rate.is_limited and self.is_throttled(topic, partition):
            self.rate.record(size_bytes)

    def forget(self) -> None:
        """Drop the cached replicas after a config change."""
        self._throttled.clear()

    def _partitions_in(self, entries: tuple[str, ...]) -> frozenset[int] | None:
        if entries == ("*",):
            return _ALL
        pairs = (entry.split(":") for entry in entries)
        return frozenset(int(partition) for partition, node_id in pairs if int(node_id) == self._node_id)


class ReplicationThrottles:
    """The leader's and the follower's quota, as configured in the image and ``config`` at the time of use."""

    def __init__(self, image: MetadataImage, config: BrokerConfig, clock: Clock, node_id: int) -> None:
        self._image = image
        self._config = config
        self.leader = ReplicationQuota(
            self._rate(clock, lambda: int(config["leader.replication.throttled.rate"])),
            node_id,
            lambda topic: self._entries(topic, "leader.replication.throttled.replicas"),
        )
        self.follower = ReplicationQuota(
            self._rate(clock, lambda: int(config["follower.replication.throttled.rate"])),
            node_id,
            lambda topic: self._entries(topic, "follower.replication.throttled.replicas"),
        )

    def publish(self, delta: MetadataDelta) -> None:
        """Apply changed topic configs."""
        if any(kind == ResourceType.TOPIC for kind, _ in delta.configs):
            self.leader.forget()
            self.follower.forget()

    def _rate(self, clock: Clock, bound: Callable[[], int]) -> ByteRate:
        config = self._config
        return ByteRate(
            clock,
            bound,
            count=config["replication.quota.window.num"],
            sample_s=config["replication.quota.window.size.seconds"],
        )

    def _entries(self, topic: str, name: str) -> tuple[str, ...]:
        found: tuple[str, ...] = self._config.topic_config(self._image.configs(ResourceType.TOPIC, topic))[name]
        return found
