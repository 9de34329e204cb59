"""A member of a streams group that behaves like a thread of the Java client. It runs tasks in three roles.

In some heartbeats it reports the offsets of its stores. It can ask for a shutdown of the application. A member that is told of a
shutdown leaves, and an operator may start it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.streams.configured_topology import Status
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.streams_group_heartbeat import (
    RequestEndpoint,
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    TaskOffset,
)
from tests.campaigns.simulation.groups.modern_member import ModernMember

if TYPE_CHECKING:
    from uuid import UUID

    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.streams.applications import Application
    from tests.campaigns.simulation.streams.world import StreamsWorld

ACTIVE = "active"
_ROLES = (ACTIVE, "standby", "warmup")


class StreamsMember(ModernMember):
    """One thread of ``process_id``. ``held`` are (role, subtopology id, partition)."""

    api = ApiKey.STREAMS_GROUP_HEARTBEAT
    _world: StreamsWorld

    def __init__(
        self,
        world: StreamsWorld,
        group: GroupPlan,
        client_id: str,
        instance_id: str | None,
        application: Application,
        *,
        process_id: str,
        version: int,
        rebalance_timeout_ms: int,
    ) -> None:
        super().__init__(world, group, client_id, instance_id, member_id=f"{client_id}#{world.new_token()}", version=version)
        self.application = application
        self.process_id = process_id
        self.wants_shutdown = False
        self._endpoint = RequestEndpoint(host=client_id, port=1) if world.rng.random() < 0.3 else None
        self._endpoint_epoch = 0
        self._rebalance_timeout_ms = rebalance_timeout_ms

    @property
    def subscription(self) -> Application:
        """The application, for the trace."""
        return self.application

    @property
    def partitions(self) -> frozenset[tuple[UUID, int]]:
        """The partitions of its active tasks, but of repartition topics."""
        topics = self._world.topics
        return frozenset(
            (topics.ids[name], index)
            for role, subtopology_id, index in self.held
            if role == ACTIVE
            for name in self.application.sources[subtopology_id]
            if index < topics.count(name)
        )

    def _request(self, held: frozenset[Any], *, tells_all: bool) -> StreamsGroupHeartbeatRequest:
        is_joining = self.generation == 0
        tells_tasks = tells_all or held != self._reported
        active, standby, warmup = (_listed(held, role) if tells_tasks else None for role in _ROLES)
        return StreamsGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            endpoint_information_epoch=self._endpoint_epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=self._rebalance_timeout_ms if tells_all else -1,
            topology=self.application.topology if is_joining else None,
            active_tasks=active,
            standby_tasks=standby,
            warmup_tasks=warmup,
            process_id=self.process_id if tells_all else None,
            user_endpoint=self._endpoint if tells_all else None,
            client_tags=[] if tells_all else None,
            task_offsets=self._offsets(),
            shutdown_application=self.wants_shutdown,
        )

    def _offsets(self) -> list[TaskOffset] | None:
        rng = self._world.rng
        if not self.held or rng.random() >= self._world.plan.task_offset_share:
            return None
        tasks = sorted({(subtopology_id, index) for _, subtopology_id, index in self.held})
        return [TaskOffset(*task, rng.randrange(1_000)) for task in tasks]

    def _farewell(self, epoch: int) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            shutdown_application=self.wants_shutdown,
        )

    def _on_granted(self, response: Any) -> None:
        self.wants_shutdown = False
        self._endpoint_epoch = response.endpoint_information_epoch
        if any(each.status_code == Status.SHUTDOWN_APPLICATION for each in response.status):
            self._world.note("%s shuts down", str(self))
            self._world.counts["shut down"] += 1
            self.generation = response.member_epoch
            self.leave(for_good=True)
            self._world.restart_later(self)
            return
        super()._on_granted(response)

    def _told(self, response: Any) -> frozenset[tuple[str, str, int]] | None:
        if response.active_tasks is None:
            return None
        told = zip(_ROLES, (response.active_tasks, response.standby_tasks, response.warmup_tasks), strict=True)
        return frozenset(
            (role, each.subtopology_id, index) for role, tasks in told for each in tasks for index in each.partitions
        )


def _listed(held: frozenset[Any], wanted: str) -> list[RequestTaskIds]:
    by_subtopology: dict[str, list[int]] = {}
    for role, subtopology_id, index in sorted(held):
        if role == wanted:
            by_subtopology.setdefault(subtopology_id, []).append(index)
    return [RequestTaskIds(subtopology_id=each, partitions=indexes) for each, indexes in by_subtopology.items()]
