"""The share groups of one shard, with the clock, topics, configs and sessions for deciding on them."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  the type of a compiled dataclass's field
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.group.consumer.topics import NoTopics, Topics
from odradek.coordinator.group.modern_groups import ModernGroups
from odradek.coordinator.group.share.group import GROUP_TYPE, ShareGroup
from odradek.coordinator.group.share.member import KEYS
from odradek.coordinator.group.share.state_partitions import StatePartitions, to_record, without_topics
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.protocol.coordinator_records.share_groups import (
    ShareGroupStatePartitionMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.group.share.member import ShareGroupMember
    from odradek.coordinator.runtime.environment import ShardContext


class ShareGroupConfig(NamedTuple):
    """The configs of one share group; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initialize_retry_interval_ms: int = 30_000
    max_size: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupServices:
    """The services that the broker provides to share groups.

    Args:
        topics: the cluster's topics.
        config_of: the configs of a group, by its id.
    """

    topics: Topics = field(default_factory=NoTopics)
    config_of: Callable[[str], ShareGroupConfig] = lambda _: ShareGroupConfig()


class ShareGroups(ModernGroups[ShareGroup, ShareGroupConfig]):
    """Owner of the share groups in the shard's ``registry``; see ``ModernGroups``. Loop thread only."""

    __slots__ = ()

    def __init__(
        self,
        registry: GroupRegistry,
        services: ShareGroupServices,
        *,
        timers: ShardContext,
        reports: GroupReports,
        remove: Callable[[ShareGroups, ShareGroup, ShareGroupMember, str], CoordinatorResult[None]],
    ) -> None:
        super().__init__(
            GROUP_TYPE, ShareGroup, KEYS, registry, services.topics, services.config_of, timers, reports, partial(remove, self)
        )

    # ----------------------------------------------------------------------------------------------------------- find

    def new_group(self, group_id: str) -> ShareGroup:
        """Return a group to decide on before it has records."""
        return ShareGroup(self.timers.snapshots, group_id, self.clock.now_ms)

    def find_or_new(self, group_id: str) -> ShareGroup:
        """Return the share group, or one to decide on before it has records. KafkaError: GROUP_ID_NOT_FOUND for another kind."""
        group = self.find(group_id)
        if group is not None:
            return group
        if self.registry.find(group_id) is not None:
            raise self.not_found(group_id)
        return self.new_group(group_id)

    # --------------------------------------------------------------------------------------------------------- topics

    def drop_topics(self, topic_ids: AbstractSet[UUID]) -> CoordinatorResult[None]:
        """Decide to forget the share partitions of deleted topics."""
        records = []
        for group in self.each():
            sets = group.states
            if not topic_ids.isdisjoint(sets.known() | sets.deleting):
                records.append(self.states_record(group, without_topics(sets, topic_ids)))
        return CoordinatorResult(records, None, atomic=False)

    def states_record(self, group: ShareGroup, sets: StatePartitions) -> CoordinatorRecord:
        """Return the record of the group's share partitions."""
        return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group.group_id), to_record(sets, self.topics))
