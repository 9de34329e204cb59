"""The end of each history of streams groups: all members have reached their targets, and each task runs where it should.

Before that, missing source topics are created, and internal topics deleted that do not fit their source topics any more.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.coordinator.group.streams.member import StreamsGroupState
from tests.campaigns.simulation.groups.ending import SESSIONS_ARE_OVER_MS, Rules
from tests.campaigns.simulation.groups.replayed import image_of
from tests.campaigns.simulation.streams.member import ACTIVE

if TYPE_CHECKING:
    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World


def _prepare(world: World) -> None:
    topics = world.topics
    for plan in world.plan.groups:
        for name in plan.topics:
            if name not in topics.ids:
                topics.create(name, 2)
    # Members of an application that was not deployed have been refused by then.
    world.run(SESSIONS_ARE_OVER_MS)
    for plan in world.plan.groups:
        for process in world.alive(plan):
            counts = process.application.task_counts(topics.count)
            wrong = [name for name, of in process.application.internal.items() if topics.count(name) not in (0, counts[of])]
            topics.delete(wrong)


def _unrest_of(world: World, plan: GroupPlan) -> str:
    found = world.broker.notes[world.partition_of(plan.group_id)].shard.groups.find(plan.group_id)
    group = found if isinstance(found, StreamsGroup) else None
    alive = world.alive(plan)
    members: dict[str, Any] = {} if group is None else dict(group.members.items())
    here = f"{plan.group_id}: {[*map(str, alive)]} run, and {group} is {group and group.state}, with {members}"
    if sorted(members) != sorted(process.member_id for process in alive):
        return here
    if not alive or group is None:
        return ""
    if group.state != StreamsGroupState.STABLE or group.assignment_epoch != group.epoch.get():
        return here
    if not all(process.is_settled and process.generation == group.assignment_epoch for process in alive):
        return here
    return _wrong_tasks(world, alive, here)


def _wrong_tasks(world: World, alive: list[Any], here: str) -> str:
    application = alive[0].application
    wanted = application.tasks(world.topics.count)
    active = Counter(task for process in alive for role, task in map(_split, process.held) if role == ACTIVE)
    if active != Counter(wanted):
        return f"{here}: active are {active}, and wanted {wanted}"
    processes = {process.process_id for process in alive}
    count = min(world.streams_config.num_standby_replicas, len(processes) - 1)
    for task in wanted:
        runs = Counter(process.process_id for process in alive for _, each in map(_split, process.held) if each == task)
        copies = count if task[0] in application.stateful else 0
        if len(runs) != 1 + copies or max(runs.values()) > 1:
            return f"{here}: {task} is at {runs}, and wanted with {copies} standbys"
    return ""


def _split(held: tuple[str, str, int]) -> tuple[str, tuple[str, int]]:
    role, subtopology_id, index = held
    return role, (subtopology_id, index)


def _images(world: World) -> dict[tuple[str, str], Any]:
    """Return the log's image of each group, and the tasks of its members."""
    found: dict[tuple[str, str], Any] = {}
    for plan in world.plan.groups:
        group = world.broker.notes[world.partition_of(plan.group_id)].shard.groups.find(plan.group_id)
        if isinstance(group, StreamsGroup):
            image = image_of(group) | {"held": {process.client_id: process.held for process in world.alive(plan)}}
            found.update({(plan.group_id, what): each for what, each in image.items()})
    return found


STREAMS = Rules(_prepare, _unrest_of, _images)
