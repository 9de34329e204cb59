"""The consumer groups of one shard, with the clock, topics, configs, assignors and sessions for deciding on them."""

from __future__ import annotations

from collections.abc import (
    Callable,  # noqa: TC003  the types of a compiled dataclass's fields
    Mapping,  # noqa: TC003  the types of a compiled dataclass's fields
)
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.coordinator.group.assignor.builtin import ASSIGNORS
from odradek.coordinator.group.assignor.spec import Assign  # noqa: TC001  the type of a compiled dataclass's field
from odradek.coordinator.group.config import MigrationPolicy
from odradek.coordinator.group.consumer.explanations import Explanations
from odradek.coordinator.group.consumer.group import GROUP_TYPE, ConsumerGroup
from odradek.coordinator.group.consumer.member import KEYS
from odradek.coordinator.group.consumer.topics import NoTopics, Topics
from odradek.coordinator.group.modern_groups import ModernGroups
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupMetadataKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.coordinator.group.classic.groups import ClassicGroups
    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.consumer.member import ConsumerMember
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult


# The deadlines of classic members: to join again, and to send their SyncGroup.
JOIN_LIMIT: Final = "consumer-join"
SYNC_LIMIT: Final = "consumer-sync"


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


class ConsumerGroups(ModernGroups[ConsumerGroup, ConsumerGroupConfig]):
    """Owner of the consumer groups in the shard's ``registry``; see ``ModernGroups``. Loop thread only.

    ``classic`` holds the shard's classic groups; groups are converted from and to them. ``resolving`` holds the groups whose
    regular expressions are being resolved. ``newest_topics_version`` is the metadata version that added the newest topic.
    """

    __slots__ = (
        "_downgraded",
        "_gone",
        "_is_loaded",
        "_services",
        "classic",
        "new_id",
        "newest_topics_version",
        "resolving",
        "run_beside",
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
        remove: Callable[[ConsumerGroups, ConsumerGroup, ConsumerMember, str], CoordinatorResult[None]],
    ) -> None:
        super().__init__(
            GROUP_TYPE, ConsumerGroup, KEYS, registry, services.topics, services.config_of, timers, reports, partial(remove, self)
        )
        self.classic = classic
        # While loading: the ids of former consumer groups, and of those that became classic groups.
        self._is_loaded = registry.is_loaded
        self._gone: set[str] = set()
        self._downgraded: set[str] = set()
        self._services = services
        self.run_beside: Final = services.run_beside
        self.new_id = services.new_id or new_id
        self.why = Explanations(timers.clock, services.topics, reports)
        self.resolving: set[str] = set()
        self.newest_topics_version = self.topics.version

    # ----------------------------------------------------------------------------------------------------------- find

    def new_group(self, group_id: str) -> ConsumerGroup:
        """Return a group to decide on before it has records."""
        return ConsumerGroup(self.timers.snapshots, group_id)

    def preview(self, group_id: str, records: Iterable[CoordinatorRecord]) -> ConsumerGroup:
        """Return the group that these records, none of them a tombstone, will make. For the current decision only."""
        # The preview has its own timelines, as none of its changes are rolled back.
        group = ConsumerGroup(SnapshotRegistry(), group_id)
        for record in records:
            self.replay_value(group, record.key, record.value)
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

    def replay(self, key: Any, value: Any) -> None:  # noqa: ANN401  the types of this kind's records
        """Apply a record. A tombstone of a missing object is ignored."""
        if value is None and isinstance(key, ConsumerGroupMetadataKey):
            if not self._is_loaded:
                self._gone.add(key.group)
            self.why.forget(key.group)
        super().replay(key, value)

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
