"""The group coordinator of this broker: a runtime on ``__consumer_offsets``, and its links to topics and transactions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from odradek.broker.coordination.coordinator_host import CoordinatorHost
from odradek.broker.coordination.services import CoordinatorTopic
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from odradek.broker.coordination.group_shards import GroupShards
    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.broker.coordination.streams_internal_topics import StreamsInternalTopics
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.coordinator.group.group_shard import GroupShard  # noqa: F401  the type of its shards
    from odradek.coordinator.runtime.result import EndTxnMarker
    from odradek.timing.reply import Reply


_MODULES: Final = (
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.group.classic.groups",
    "odradek.coordinator.group.classic.join",
    "odradek.coordinator.group.group_shard",
)


class GroupCoordinator(CoordinatorHost["GroupShard"]):
    """The group coordinator of this broker. See ``CoordinatorHost``."""

    def __init__(self, services: CoordinatorServices) -> None:
        config = services.config
        about = CoordinatorTopic(
            "group",
            CONSUMER_OFFSETS_TOPIC,
            _MODULES,
            load_buffer_bytes=config["offsets.load.buffer.size"],
            write_timeout_ms=config["offsets.commit.timeout.ms"],
            compression=config["offsets.topic.compression.codec"],
        )
        super().__init__(services, about)
        self._made: GroupShards | None = None
        self._internal_topics: StreamsInternalTopics | None = None

    @property
    def streams_internal_topics(self) -> StreamsInternalTopics:
        """Return the creator of the internal topics of streams groups, made at the first call."""
        if self._internal_topics is None:
            from odradek.broker.coordination.streams_internal_topics import StreamsInternalTopics

            services = self._services
            self._internal_topics = StreamsInternalTopics(services.controller, services.timer, services.call_soon)
        return self._internal_topics

    def write_marker(self, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None] | None:
        """End a transaction on a partition of ``__consumer_offsets``. Its pending offsets are committed or dropped.

        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, and those of
        ``CoordinatorRuntime.write``.
        """
        leader = self._services.partitions.require(CONSUMER_OFFSETS_TOPIC, partition).leader
        end_transaction = self._shards().end_transaction
        reply = self.runtime.write(partition, lambda _: end_transaction(marker))
        if not reply.done:
            # With followers, the marker counts only after it is replicated.
            return reply if leader is not None and leader.followers is not None else None
        if reply.response is not None:
            raise reply.response
        return None

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Forget deleted topics, and drop cached group configs after a change."""
        super().publish(delta, image)
        if delta.configs and self._made is not None:
            self._made.forget_configs()
        if self._runtime is not None and (delta.topics or delta.deleted_topics):
            self._note_topics(delta)
        if self._runtime is not None and delta.deleted_topics:
            deleted = {topic.name: topic.topic_id for topic in delta.deleted_topics}
            delete_offsets = self._shards().delete_offsets_of_topics
            self._write_to_all("delete the offsets of deleted topics", lambda shard: delete_offsets(shard.offsets, deleted))
            topic_ids = frozenset(deleted.values())
            self._write_to_all("drop deleted topics of share groups", lambda shard: shard.drop_share_topics(topic_ids))

    def _note_topics(self, delta: MetadataDelta) -> None:
        """Have groups look at changed topics again. A shard that is not loaded yet will look when it is."""
        names = [each.topic.name for each in delta.topics.values()] + [topic.name for topic in delta.deleted_topics]
        has_new = any(each.is_new for each in delta.topics.values())
        for partition in self.runtime.partitions():
            with suppress(KafkaError):
                self.runtime.read(partition, lambda shard, _: shard.note_topics(names, has_new=has_new))

    def _shards(self) -> GroupShards:
        if self._made is None:
            # 37 ms, and only brokers with groups need it.
            from odradek.broker.coordination.group_shards import GroupShards

            self._made = GroupShards(self._services)
        return self._made
