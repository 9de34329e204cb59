"""The share groups of one shard, with the clock, topics, configs and sessions for deciding on them."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  the type of a compiled dataclass's field
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.coordinator.group.consumer.topics import NoTopics, Topics
from odradek.coordinator.group.modern_group import ModernGroups
from odradek.coordinator.group.share.group import GROUP_TYPE, ShareGroup
from odradek.coordinator.group.share.member import with_sets
from odradek.coordinator.group.share.state_partitions import StatePartitions, from_record, to_record, without_topics
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.protocol.coordinator_records.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.group.sessions import MemberSessions
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.protocol.coordinator_records import ShareGroupKey, ShareGroupValue


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


class ShareGroups(ModernGroups[ShareGroup]):
    """Owner of the share groups in the shard's ``registry``, which are their own stored form. Loop thread only.

    An expired session removes a member. ``heartbeats`` (granted ones), ``sessions_expired`` and ``epochs_raised`` count since the
    shard was loaded.
    """

    __slots__ = (
        "config_of",
        "epochs_raised",
        "sessions",
    )

    def __init__(
        self,
        registry: GroupRegistry,
        services: ShareGroupServices,
        *,
        timers: ShardContext,
        reports: GroupReports,
        make_sessions: Callable[[ShareGroups], MemberSessions],
    ) -> None:
        super().__init__(GROUP_TYPE, ShareGroup, registry, services.topics, timers, reports)
        self.config_of = services.config_of
        self.epochs_raised = 0
        self.sessions: Final = make_sessions(self)

    # ----------------------------------------------------------------------------------------------------------- find

    def new_group(self, group_id: str) -> ShareGroup:
        """Return a group to decide on before it has records."""
        return ShareGroup(self.timers.snapshots, group_id)

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

    # --------------------------------------------------------------------------------------------------------- replay

    def replay(self, key: ShareGroupKey, value: ShareGroupValue | None) -> None:
        """Apply a record. A tombstone of a missing object is ignored."""
        if value is None:
            group = self.find(key.group)
            if group is not None:
                self._replay_tombstone(group, key)
        else:
            self._replay_value(self.find_or_create(key.group), key, value)

    def _replay_value(self, group: ShareGroup, key: ShareGroupKey, value: Any) -> None:  # noqa: ANN401  the key's type
        if isinstance(key, ShareGroupCurrentMemberAssignmentKey):
            group.replay_member(group.member_or_new(key.member_id).with_assignment(value))
        elif isinstance(key, ShareGroupMemberMetadataKey):
            group.replay_member(group.member_or_new(key.member_id).with_metadata(value))
        elif isinstance(key, ShareGroupTargetAssignmentMemberKey):
            group.replay_target(key.member_id, with_sets(value.topic_partitions))
        elif isinstance(key, ShareGroupTargetAssignmentMetadataKey):
            group.replay_target_metadata(value)
        elif isinstance(key, ShareGroupMetadataKey):
            group.epoch.set(value.epoch)
            group.metadata_hash.set(value.metadata_hash)
        else:
            group.state_partitions.set(from_record(value, self.clock.now_ms()))

    def _replay_tombstone(self, group: ShareGroup, key: ShareGroupKey) -> None:
        if isinstance(key, ShareGroupCurrentMemberAssignmentKey):
            member = group.members.get(key.member_id)
            if member is not None:
                group.replay_member(member.without_assignment())
        elif isinstance(key, ShareGroupMemberMetadataKey):
            group.replay_removed(key.member_id)
        elif isinstance(key, ShareGroupTargetAssignmentMemberKey):
            group.replay_target(key.member_id, None)
        elif isinstance(key, ShareGroupTargetAssignmentMetadataKey):
            group.replay_target_metadata(None)
        elif isinstance(key, ShareGroupMetadataKey):
            self._stored.pop(key.group)
        else:
            group.state_partitions.set(None)
