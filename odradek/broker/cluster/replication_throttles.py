"""The replication quotas of a broker: of the replicas that it leads, and of those that follow here (KIP-73)."""

from collections.abc import Callable

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.dynamic import ResourceType
from odradek.broker.metadata.delta import MetadataDelta
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.replica.replication_quota import ByteRate, ReplicationQuota
from odradek.timing.clock import Clock


class ReplicationThrottles:
    """Both. They go by what the image and ``config`` say at the time."""

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
        """The metadata have changed."""
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
