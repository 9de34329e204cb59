"""The streams groups of one shard, with the clock, topics, configs, assignors and sessions for deciding on them."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Mapping,
)
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from odradek.coordinator.group.assignor.sticky_task_assignor import STICKY, assign_sticky
from odradek.coordinator.group.assignor.streams_interface import (
    StreamsGroupAssignment,
    StreamsGroupSpec,
    TopologyDescriber,
)
from odradek.coordinator.group.consumer.topics import NoTopics, Topics
from odradek.coordinator.group.modern_groups import ModernGroups
from odradek.coordinator.group.streams.group import GROUP_TYPE, StreamsGroup
from odradek.coordinator.group.streams.member import KEYS

if TYPE_CHECKING:
    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.group.streams.member import StreamsGroupMember
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import CoordinatorResult

AssignTasks: TypeAlias = Callable[[StreamsGroupSpec, TopologyDescriber], StreamsGroupAssignment]


class StreamsGroupConfig(NamedTuple):
    """The configs of one streams group; the defaults are Kafka's. ``assignor_name`` None is the broker's first assignor."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    rack_aware_assignment_tags: tuple[str, ...] = ()
    task_offset_interval_ms: int = 60_000
    acceptable_recovery_lag: int = 10_000
    assignor_name: str | None = None
    max_size: int = 2**31 - 1

    def assignment_configs(self) -> dict[str, str]:
        """Return the configs that change the assignment, as the group's record has them."""
        configs = {"num.standby.replicas": str(self.num_standby_replicas)}
        if self.rack_aware_assignment_tags:
            configs["rack.aware.assignment.tags"] = ",".join(self.rack_aware_assignment_tags)
        return configs


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupServices:
    """The services that the broker provides to streams groups.

    Args:
        topics: the cluster's topics.
        config_of: the configs of a group, by its id.
        assignors: by name; the first is the default.
    """

    topics: Topics = field(default_factory=NoTopics)
    config_of: Callable[[str], StreamsGroupConfig] = lambda _: StreamsGroupConfig()
    assignors: Mapping[str, AssignTasks] = field(default_factory=lambda: {STICKY: assign_sticky})


class StreamsGroups(ModernGroups[StreamsGroup, StreamsGroupConfig]):
    """Owner of the streams groups in the shard's ``registry``; see ``ModernGroups``. Loop thread only."""

    holdings: ClassVar[str] = "tasks"

    __slots__ = ("_services",)

    def __init__(
        self,
        registry: GroupRegistry,
        services: StreamsGroupServices,
        *,
        timers: ShardContext,
        reports: GroupReports,
        remove: Callable[[StreamsGroups, StreamsGroup, StreamsGroupMember, str], CoordinatorResult[None]],
    ) -> None:
        super().__init__(
            GROUP_TYPE, StreamsGroup, KEYS, registry, services.topics, services.config_of, timers, reports, partial(remove, self)
        )
        self._services = services

    # ----------------------------------------------------------------------------------------------------------- find

    def new_group(self, group_id: str) -> StreamsGroup:
        """Return a group to decide on before it has records."""
        return StreamsGroup(self.timers.snapshots, group_id, self.topics.name_of)

    def assignor(self, group_id: str) -> tuple[str, AssignTasks]:
        """Return a group's assignor and its name. An unknown name gives the default."""
        name = self.config_of(group_id).assignor_name
        assignors = self._services.assignors
        found = name if name is not None and name in assignors else next(iter(assignors))
        return found, assignors[found]

    # --------------------------------------------------------------------------------------------------------- topics

    def partition_count(self, name: str) -> int | None:
        """Return the number of partitions of a topic; None if it does not exist."""
        topic = self.topics.find(name)
        return None if topic is None else topic.partition_count
