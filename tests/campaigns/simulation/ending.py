"""How each history ends: trouble is over, and then

each group comes to rest, with the members that run, all in one generation
a short restart of the broker changes nothing of that: same generation, same members
the state is what the log says, and what was committed is fetched
all members leave: no member, nobody pending, no wait and no deadline is left
the retention time passes: no group and no offset is left
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.runtime.states import ShardState
from tests.campaigns.simulation.broker import RETENTION_CHECK_INTERVAL_MS, RETENTION_MS
from tests.campaigns.simulation.consumer import Phase
from tests.campaigns.simulation.plan import SESSION_TIMEOUTS_MS, UNLIMITED
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.group import ClassicGroup
    from tests.campaigns.simulation.group_world import GroupWorld
    from tests.campaigns.simulation.plan import GroupPlan
    from tests.campaigns.simulation.world import World

_REST_WITHIN_MS = 120_000
_LOADED_WITHIN_MS = 30_000
_LOOK_EVERY_MS = 2_000
_SHORT_RESTART_MS = 800


def end(world: World) -> None:
    """Raises Violation."""
    set_right(world)
    _come_to_rest(world)
    world.check_replayed()
    before = _generations(world)
    world.kill_broker()
    world.run(_SHORT_RESTART_MS)
    world.start_broker()
    load(world)
    world.run(2 * world.plan.heartbeat_interval_ms + 1_000)
    # A group that could not be written when it became empty is back as it was, until its members' sessions run out again.
    after = {group_id: generation for group_id, generation in _generations(world).items() if group_id in before}
    if before != after or any(consumer.phase is not Phase.STABLE for consumer in world.alive()):
        raise Violation("a short restart changes nothing", f"{before}, then {after}, with {[*map(str, world.alive())]}")
    for group in world.plan.groups:
        world.offsets.fetch_all(group)
    world.check_replayed()
    _leave(world)
    _let_offsets_expire(world)


def set_right(world: GroupWorld) -> None:
    """No faults from now on."""
    world.note("trouble is over")
    world.is_in_trouble = False
    world.broker.config = replace(world.broker.config, group_max_size=UNLIMITED)
    for log in world.logs.logs:
        log.failures.clear()
        log.read_failures.clear()
        log.release()
    for consumer in world.alive():
        consumer.go_on()
    world.start_broker()
    for partition in range(world.plan.shards):
        if partition not in world.broker.runtime.states():
            world.broker.load(partition)


def _come_to_rest(world: World) -> None:
    for _ in range(0, _REST_WITHIN_MS, _LOOK_EVERY_MS):
        world.run(_LOOK_EVERY_MS)
        if not _unrest(world):
            world.is_at_rest = True
            return
    raise Violation("groups come to rest", _unrest(world))


def load(world: GroupWorld) -> None:
    """Wait until all shards are loaded. Raises Violation."""
    for _ in range(0, _LOADED_WITHIN_MS, _LOOK_EVERY_MS):
        world.run(_LOOK_EVERY_MS)
        if set(world.broker.runtime.states().values()) == {ShardState.ACTIVE}:
            return
    raise Violation("shards are loaded", f"{world.broker.runtime.states()}")


def _unrest(world: World) -> str:
    """What keeps the groups from rest; empty where nothing does."""
    states = world.broker.runtime.states()
    if set(states.values()) != {ShardState.ACTIVE}:
        return f"shards: {states}"
    for plan in world.plan.groups:
        group = _live(world, plan)
        consumers = world.alive(plan)
        members = () if group is None else (*group.members, *group.pending_joins)
        expected = sorted(consumer.member_id for consumer in consumers)
        here = f"{plan.group_id}: {[str(each) for each in consumers]} run, and the group is "
        here += "not there" if group is None else f"{group.state}, with {members}"
        if sorted(members) != expected:
            return here
        if group is not None and group.state is not (GroupState.STABLE if consumers else GroupState.EMPTY):
            return here
        if any(each.phase is not Phase.STABLE or group is None or each.generation != group.generation for each in consumers):
            return here
    return ""


def _live(world: World, plan: GroupPlan) -> ClassicGroup | None:
    return world.broker.notes[world.partition_of(plan.group_id)].shard.classic.find(plan.group_id)


def _generations(world: World) -> dict[str, tuple[int, list[str]]]:
    live = ((plan.group_id, _live(world, plan)) for plan in world.plan.groups)
    return {
        group_id: (group.generation, sorted(group.members))
        for group_id, group in live
        if group is not None and group.state is GroupState.STABLE
    }


def _leave(world: World) -> None:
    for consumer in world.alive():
        consumer.leave(for_good=True)
    world.run(max(SESSION_TIMEOUTS_MS) + 2_000)
    for hosted in world.broker.active():
        left = {
            "members": [member_id for group in hosted.shard.groups.live.values() for member_id in group.members],
            "pending members": [member_id for group in hosted.shard.groups.live.values() for member_id in group.pending_joins],
            "deadlines": [key for key in hosted.context._tasks if key != "expire-offsets"],
            "responses": [*hosted._batch.events, *hosted._deferred._events, *hosted._queued],
            "records": hosted._batch.records,
            "uncommitted changes": [None] * len(hosted.context.snapshots),
        }
        for what, those in left.items():
            if those:
                raise Violation("nothing is left when all have left", f"{what}: {those!r}")
    if world.broker.timer is None or len(world.broker.timer) != len(world.broker.active()):
        raise Violation("nothing is left when all have left", "deadlines beside those of the shards")
    world.check_replayed()


def _let_offsets_expire(world: World) -> None:
    world.run(RETENTION_MS + 2 * RETENTION_CHECK_INTERVAL_MS)
    for hosted in world.broker.active():
        groups = hosted.shard.groups
        left = [*groups.live, *groups.stored, *hosted.shard.offsets.by_group]
        if left:
            raise Violation("what nobody wants any more expires", f"{left} are left of shard {hosted.partition}")
    world.check_replayed()
