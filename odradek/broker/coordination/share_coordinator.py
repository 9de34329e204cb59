"""The share coordinator of this broker: a runtime on ``__share_group_state``, which keeps the state of share partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.coordination.coordinator_host import CoordinatorHost
from odradek.broker.coordination.services import CoordinatorTopic
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply, replied

if TYPE_CHECKING:
    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.broker.coordination.share_shards import ShareShards
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.coordinator.share.requests import ShareStateRequest
    from odradek.coordinator.share.share_shard import ShareShard  # noqa: F401  the type of its shards

_MODULES: Final = (
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.share.share_shard",
)


class ShareCoordinator(CoordinatorHost["ShareShard"]):
    """The share coordinator of this broker. See ``CoordinatorHost``."""

    def __init__(self, services: CoordinatorServices) -> None:
        config = services.config
        about = CoordinatorTopic(
            "share",
            SHARE_GROUP_STATE_TOPIC,
            _MODULES,
            load_buffer_bytes=config["share.coordinator.load.buffer.size"],
            write_timeout_ms=config["share.coordinator.write.timeout.ms"],
            compression=config["share.coordinator.state.topic.compression.codec"],
            needs_enough_replicas=True,
        )
        super().__init__(services, about)
        self._made: ShareShards | None = None

    def ask(self, request: ShareStateRequest) -> Reply[Any]:
        """Have the share partition's shard decide. The Reply has a KafkaError, or the request's outcome. HOT.

        NOT_COORDINATOR without the topic: FindCoordinator and the persister create it.
        """
        if SHARE_GROUP_STATE_TOPIC not in self._services.controller.image.topics:
            return replied(KafkaError(ErrorCode.NOT_COORDINATOR, f"there is no {SHARE_GROUP_STATE_TOPIC}"))
        return self.runtime.write(request.key.coordinator_key, request.decide)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Delete the state of deleted topics."""
        super().publish(delta, image)
        if self._runtime is not None and delta.deleted_topics:
            topic_ids = frozenset(topic.topic_id for topic in delta.deleted_topics)
            self._write_to_all("delete the share state of deleted topics", lambda shard: shard.delete_topics(topic_ids))

    def _shards(self) -> ShareShards:
        if self._made is None:
            # Only brokers with share groups need it.
            from odradek.broker.coordination.share_shards import ShareShards

            self._made = ShareShards(self._services)
        return self._made
