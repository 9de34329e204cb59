"""The consumer groups of one shard, with the clock, topics, configs, assignors and sessions for deciding on them.

Also the members' sessions, and the time limits for revocations and for classic members to join and to sync.

As in ``group.sessions``, the deadline of a member that has given its partitions up is not cancelled: it expires and does nothing.
"""

from __future__ import annotations

from collections.abc import (
    Callable,  # noqa: TC003  the types of a compiled dataclass's fields
    Mapping,  # noqa: TC003  the types of a compiled dataclass's fields
)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from odradek.coordinator.group.assignor.builtin import ASSIGNORS
from odradek.coordinator.group.assignor.spec import Assign  # noqa: TC001  the type of a compiled dataclass's field
from odradek.coordinator.group.config import MigrationPolicy
from odradek.coordinator.group.consumer.explanations import Explanations
from odradek.coordinator.group.consumer.group import GROUP_TYPE, ConsumerGroup
from odradek.coordinator.group.consumer.topics import NoTopics, Topics
from odradek.coordinator.group.modern_group import ModernGroups
from odradek.coordinator.group.sessions import MemberSessions
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.coordinator.group.classic.groups import ClassicGroups
    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
    from odradek.protocol.coordinator_records import ConsumerGroupKey, ConsumerGroupValue


class ConsumerSessions(MemberSessions):
    """The sessions and the other deadlines of one shard's members. ``expire`` handles a silent member. Loop thread only."""

    __slots__ = ()

    def __init__(self, timers: ShardContext, expire: Callable[[str, str], CoordinatorResult[None]]) -> None:
        super().__init__("consumer-session", timers, expire)

    def begin_revocation(
        self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]
    ) -> None:
        """Give a member ``delay_ms`` to give partitions up; then ``expire`` checks whether it has."""
        self._timers.schedule(("consumer-revocation", group_id, member_id), delay_ms, expire)

    def await_join(self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]) -> None:
        """Give a classic member ``delay_ms`` to join again, counted from the first request to do so."""
        key = ("consumer-join", group_id, member_id)
        if not self._timers.is_scheduled(key):
            self._timers.schedule(key, delay_ms, expire)

    def end_join(self, group_id: str, member_id: str) -> None:
        """End the time limit, as the member has joined again."""
        self._timers.cancel(("consumer-join", group_id, member_id))

    def await_sync(self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]) -> None:
        """Give a classic member that has joined ``delay_ms`` to send its SyncGroup."""
        self._timers.schedule(("consumer-sync", group_id, member_id), delay_ms, expire)

    def end_sync(self, group_id: str, member_id: str) -> None:
        """End the time limit, as the member has sent its SyncGroup."""
        self._timers.cancel(("consumer-sync", group_id, member_id))

    def forget_timeouts(self, group_id: str, member_id: str) -> None:
        """Drop a member's deadlines from before the group was a classic one.

        The deadline of a revocation stays. It finds the member in another epoch or protocol, and does nothing.
        """
        self.end_join(group_id, member_id)
        self.end_sync(group_id, member_id)


class ConsumerGroupConfig(NamedTuple):
    """The configs of one consumer group; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    regex_refresh_interval_ms: int = 600_000
    max_size: int = 2**31 - 1
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


def _at_once(work: Callable[[Callable[[], None]], Any], then: Callable[[Any], None]) -> None:
    then(work(lambda: None))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupServices:
    """The services that the broker provides to consumer groups.

    Args:
        topics: the cluster's topics.
        config_of: the configs of a group, by its id.
        run_beside: does work off the event loop, and calls back on the loop with its result, or a KafkaError. The work is
            given a function to call often.
        assignors: by name; the first is the default.
        new_id: makes ids for members without a client-made id; None to use the ids of classic members.
    """

    topics: Topics = field(default_factory=NoTopics)
    config_of: Callable[[str], ConsumerGroupConfig] = lambda _: ConsumerGroupConfig()
    run_beside: Callable[[Callable[[Callable[[], None]], Any], Callable[[Any], None]], None] = _at_once
    assignors: Mapping[str, Assign] = field(default_factory=lambda: ASSIGNORS)
    new_id: Callable[[], str] | None = None


class ConsumerGroups(ModernGroups[ConsumerGroup]):
    """Owner of the consumer groups in the shard's ``registry``, which are their own stored form. Loop thread only.

    ``classic`` holds the shard's classic groups; groups are converted from and to them. An expired session removes a member.
    ``resolving`` holds the groups whose regular expressions are being resolved. ``newest_topics_version`` is the metadata version
    that added the newest topic. ``heartbeats`` (granted ones) and ``sessions_expired`` count since the shard was loaded.
    """

    __slots__ = (
        "_downgraded",
        "_gone",
        "_is_loaded",
        "_services",
        "classic",
        "config_of",
        "new_id",
        "newest_topics_version",
        "resolving",
        "run_beside",
        "sessions",
        "why",
    )

    def __init__(
        self,
        registry: GroupRegistry,
        services: ConsumerGroupServices,
        *,
        classic: ClassicGroups,
        timers: ShardContext,
        reports: GroupReports,
        new_id: Callable[[], str],
        make_sessions: Callable[[ConsumerGroups], ConsumerSessions],
    ) -> None:
        super().__init__(GROUP_TYPE, ConsumerGroup, registry, services.topics, timers, reports)
        self.classic = classic
        # While loading: the ids of former consumer groups, and of those that became classic groups.
        self._is_loaded = registry.is_loaded
        self._gone: set[str] = set()
        self._downgraded: set[str] = set()
        self._services = services
        self.config_of = services.config_of
        self.run_beside: Final = services.run_beside
        self.new_id = services.new_id or new_id
        self.why = Explanations(timers.clock, services.topics, reports)
        self.resolving: set[str] = set()
        self.newest_topics_version = self.topics.version
        self.sessions: Final = make_sessions(self)

    # ----------------------------------------------------------------------------------------------------------- find

    def new_group(self, group_id: str) -> ConsumerGroup:
        """Return a group to decide on before it has records."""
        return ConsumerGroup(self.timers.snapshots, group_id)

    def preview(self, group_id: str, records: Iterable[CoordinatorRecord]) -> ConsumerGroup:
        """Return the group that these records, none of them a tombstone, will make. For the current decision only."""
        # The preview has its own timelines, as none of its changes are rolled back.
        group = ConsumerGroup(SnapshotRegistry(), group_id)
        for record in records:
            self._replay_value(group, cast("ConsumerGroupKey", record.key), record.value)
        return group

    def assignor(self, name: str | None) -> tuple[str, Assign]:
        """Return an assignor and its name. None or an unknown name gives the default."""
        assignors = self._services.assignors
        found = name if name is not None and name in assignors else next(iter(assignors))
        return found, assignors[found]

    @property
    def assignor_names(self) -> list[str]:
        """Return the names of the assignors, the default first."""
        return list(self._services.assignors)

    # --------------------------------------------------------------------------------------------------------- topics

    def note_topics(self, changed: Iterable[str], *, has_new: bool = False) -> None:
        """Note created, deleted or changed topics. With ``has_new``, regular expressions may match more topics."""
        if has_new:
            self.newest_topics_version = self.topics.version
        super().note_topics(changed)

    # --------------------------------------------------------------------------------------------------------- replay

    def replay(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Apply a record. A tombstone of a missing object is ignored."""
        if value is None:
            group = self.find(key.group)
            if not self._is_loaded and isinstance(key, ConsumerGroupMetadataKey):
                self._gone.add(key.group)
            if group is not None:
                self._replay_tombstone(group, key)
        else:
            self._replay_value(self.find_or_create(key.group), key, value)

    def note_classic(self, group_id: str, *, has_members: bool) -> None:
        """Note the replay of a classic group's record. During a load, this finds groups converted from consumer groups.

        The record of a conversion is the classic group's first one in the log, and has members. The next record ends the
        rebalance that the conversion began.
        """
        if self._is_loaded:
            return
        if has_members and group_id in self._gone:
            self._downgraded.add(group_id)
        else:
            self._downgraded.discard(group_id)
        self._gone.discard(group_id)

    def take_downgraded(self) -> list[str]:
        """Return the loaded groups that became classic ones by a conversion and have not rebalanced since."""
        found = sorted(self._downgraded)
        self._is_loaded = True
        # New topics were not reported during the load.
        self.newest_topics_version = self.topics.version
        self._downgraded.clear()
        self._gone.clear()
        return found

    def _replay_value(self, group: ConsumerGroup, key: ConsumerGroupKey, value: Any) -> None:  # noqa: ANN401  the key's type
        if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            group.replay_member(group.member_or_new(key.member_id).with_assignment(value))
        elif isinstance(key, ConsumerGroupMemberMetadataKey):
            group.replay_member(group.member_or_new(key.member_id).with_metadata(value))
        elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
            group.replay_target(key.member_id, {topic_id: frozenset(indexes) for topic_id, indexes in value.topic_partitions})
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            group.replay_target_metadata(value)
        elif isinstance(key, ConsumerGroupMetadataKey):
            group.epoch.set(value.epoch)
            group.metadata_hash.set(value.metadata_hash)
        elif isinstance(key, ConsumerGroupRegularExpressionKey):
            group.replay_regex(key.regular_expression, value)
        elif not group.has_partition_metadata.get():
            group.has_partition_metadata.set(True)

    def _replay_tombstone(self, group: ConsumerGroup, key: ConsumerGroupKey) -> None:
        if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            member = group.members.get(key.member_id)
            if member is not None:
                group.replay_member(member.without_assignment())
        elif isinstance(key, ConsumerGroupMemberMetadataKey):
            group.replay_removed(key.member_id)
        elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
            group.replay_target(key.member_id, None)
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            group.replay_target_metadata(None)
        elif isinstance(key, ConsumerGroupMetadataKey):
            self._stored.pop(key.group)
            self.why.forget(key.group)
        elif isinstance(key, ConsumerGroupRegularExpressionKey):
            group.replay_regex(key.regular_expression, None)
        elif group.has_partition_metadata.get():
            group.has_partition_metadata.set(False)
