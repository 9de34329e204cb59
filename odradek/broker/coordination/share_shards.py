"""The maker of the share coordinator's shards, by the broker's configs. Imported with the first share partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.coordinator.share.share_shard import ShareCoordinatorConfig, ShareShard, decode_share_state_record

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.coordinator.runtime.environment import ShardContext


class ShareShards:
    """Makes the shards of ``__share_group_state``. Implements their ``Topics``."""

    def __init__(self, services: CoordinatorServices) -> None:
        self.decode = decode_share_state_record
        self._services = services

    def make(self, context: ShardContext) -> ShareShard:
        """Create an empty shard."""
        config = self._services.config
        return ShareShard(
            context,
            ShareCoordinatorConfig(
                snapshot_update_records_per_snapshot=config["share.coordinator.snapshot.update.records.per.snapshot"],
                cold_partition_snapshot_interval_ms=config["share.coordinator.cold.partition.snapshot.interval.ms"],
                state_topic_prune_interval_ms=config["share.coordinator.state.topic.prune.interval.ms"],
            ),
            topics=self,
            prune=self._prune,
        )

    def partition_count(self, topic_id: UUID) -> int:
        """Return the number of the topic's partitions, 0 if there is no such topic."""
        topic = self._services.controller.image.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def _prune(self, partition: int, offset: int) -> None:
        """Remove the records below ``offset``. KafkaError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR."""
        found = self._services.partitions.require(SHARE_GROUP_STATE_TOPIC, partition)
        found.require_leader_log().delete_records_before(offset)
