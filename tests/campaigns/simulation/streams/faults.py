"""The faults of histories of streams groups, beside those of groups of any protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.campaigns.simulation.groups.faults import Faults

if TYPE_CHECKING:
    from tests.campaigns.simulation.streams.world import StreamsWorld


class StreamsFaults(Faults):
    """The faults in the world's plan."""

    _world: StreamsWorld

    def __init__(self, world: StreamsWorld) -> None:
        super().__init__(world)
        self._kinds |= {
            "delete internal topics": self._delete_internal_topics,
            "change the standby tasks": self._change_standby_tasks,
            "deploy another topology": self._deploy,
            "start with another topology": self._start_with_another_topology,
            "ask for a shutdown": self._ask_for_shutdown,
        }

    def _delete_internal_topics(self) -> None:
        """An operator resets an application, all of it or a part."""
        world = self._world
        application = world.applications[self._rng.choice(world.plan.groups).group_id]
        names = [name for name in application.internal if name in world.topics.ids and self._rng.random() < 0.7]
        world.note("%s are deleted", names)
        world.topics.delete(names)

    def _change_standby_tasks(self) -> None:
        world = self._world
        count = self._rng.randint(0, 2)
        world.note("groups have %s standby tasks", count)
        world.streams_config = world.streams_config._replace(num_standby_replicas=count)

    def _deploy(self) -> None:
        """All members leave, the group is deleted if it is empty by then, and members with another topology come."""
        world = self._world
        group = self._rng.choice(world.plan.groups)
        world.deploy(group, self._rng.randrange(8))
        world.note("%s gets %s", group.group_id, world.applications[group.group_id])
        for process in world.alive(group):
            process.leave(for_good=True)
            world.restart_later(process)
        world.later(self._rng.choice((0, 500)), lambda: world.offsets.delete(group))

    def _start_with_another_topology(self) -> None:
        member = self._some("has a neighbour with another topology")
        if member is None:
            return
        world = self._world
        before = world.applications[member.group.group_id]
        world.deploy(member.group, self._rng.randrange(8))
        name = f"{member.client_id}+{world.new_token()}"
        world.start_member(world.make_member(member.group, name, None))
        world.applications[member.group.group_id] = before

    def _ask_for_shutdown(self) -> None:
        member = self._some("is to ask for a shutdown")
        if member is not None:
            member.wants_shutdown = True
