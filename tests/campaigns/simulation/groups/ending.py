"""How each history ends: trouble is over, and then

each group comes to rest: its members are those that run, each has what it was told to have, each partition that any subscribes to
is owned by one of them, and no other
a short restart of the broker changes nothing of a consumer group: same epochs, same members, same partitions
the state is what the log says, and what was committed is fetched
all members leave: none is left, and after the retention time no group and no offset
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.member import ConsumerGroupState
from odradek.coordinator.runtime.states import ShardState
from tests.campaigns.simulation.groups.broker import RETENTION_CHECK_INTERVAL_MS, RETENTION_MS
from tests.campaigns.simulation.groups.plan import SESSION_TIMEOUTS_MS, UNLIMITED
from tests.campaigns.simulation.groups.replayed import image_of
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World

REST = "groups come to rest, and each partition has one owner"
UNCHANGED = "a short restart changes nothing"
LEFT = "nothing is left when all have left"
_REST_WITHIN_MS = 150_000
# A period unlike the heartbeats' interval. A member with a request under way is not settled.
_LOOK_EVERY_MS = 1_900
_SHORT_RESTART_MS = 800
SESSIONS_ARE_OVER_MS = max(SESSION_TIMEOUTS_MS) + 2_000
_LOADED_WITHIN_MS = 30_000


class Rules(NamedTuple):
    """The end of groups of one protocol.

    ``prepare`` sets right what only these groups need, when there are no more faults. ``unrest_of`` tells what keeps a group from
    rest. ``images`` has what a short restart must not change, by group and subject.
    """

    prepare: Callable[[World], None]
    unrest_of: Callable[[World, GroupPlan], str]
    images: Callable[[World], dict[tuple[str, str], Any]]


def end(world: World, rules: Rules) -> None:
    """Raises Violation."""
    _set_right(world)
    rules.prepare(world)
    _come_to_rest(world, rules)
    world.check_replayed()
    before = rules.images(world)
    world.kill_broker()
    world.run(_SHORT_RESTART_MS)
    world.start_broker()
    _load(world)
    world.run(2 * world.plan.heartbeat_interval_ms + 1_000)
    after = rules.images(world)
    for place, was in before.items():
        if after.get(place) != was:
            raise Violation(UNCHANGED, f"{place}: {was}, then {after.get(place)}")
    if world.plan.is_classic and not all(process.is_settled for process in world.alive()):
        raise Violation(UNCHANGED, f"{[*map(str, world.alive())]}")
    # Classic groups may rebalance where topics change; their members are the same in the end.
    _come_to_rest(world, rules)
    for group in world.plan.groups:
        world.offsets.fetch_all(group)
    world.check_replayed()
    _leave(world)


def _set_right(world: World) -> None:
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


def _load(world: World) -> None:
    """Wait until all shards are loaded. Raises Violation."""
    for _ in range(0, _LOADED_WITHIN_MS, _LOOK_EVERY_MS):
        world.run(_LOOK_EVERY_MS)
        if set(world.broker.runtime.states().values()) == {ShardState.ACTIVE}:
            return
    raise Violation("shards are loaded", f"{world.broker.runtime.states()}")


def _wake_leaders(world: World) -> None:
    """Have static leaders of classic groups join again, so that they look at the topics.

    A static member that comes back as the leader does not notice that a topic has grown meanwhile. Nor does one that has taken
    the place of the last member of the consumer protocol, which does not know that it leads. In Apache Kafka it is the same.
    """
    if world.plan.is_classic:
        return
    world.run(SESSIONS_ARE_OVER_MS)
    for plan in world.plan.groups:
        group = _group(world, plan.group_id)
        for process in world.alive(plan):
            is_leader = isinstance(group, ClassicGroup) and process.member_id == group.leader
            if is_leader and process.instance_id is not None and not process.speaks_consumer:
                process.join()


def _come_to_rest(world: World, rules: Rules) -> None:
    unrest = ""
    for _ in range(0, _REST_WITHIN_MS, _LOOK_EVERY_MS):
        world.run(_LOOK_EVERY_MS)
        unrest = _unrest(world, rules)
        if not unrest:
            world.is_at_rest = True
            return
    raise Violation(REST, unrest)


def _unrest(world: World, rules: Rules) -> str:
    """What keeps the groups from rest; empty where nothing does."""
    states = world.broker.runtime.states()
    if set(states.values()) != {ShardState.ACTIVE}:
        return f"shards: {states}"
    for plan in world.plan.groups:
        found = rules.unrest_of(world, plan)
        if found:
            return found
    return ""


def _unrest_of(world: World, plan: GroupPlan) -> str:
    group = _group(world, plan.group_id)
    alive = world.alive(plan)
    members: Any = {} if group is None else group.members
    here = f"{plan.group_id}: {[*map(str, alive)]} run, and {group} is {group and group.state}, with {dict(members.items())}"
    there = [*dict(members.items()), *(group.pending_joins if isinstance(group, ClassicGroup) else ())]
    if sorted(there) != sorted(process.member_id for process in alive):
        return here
    if not alive:
        return ""
    if not all(process.is_settled for process in alive) or group is None:
        return here
    if isinstance(group, ConsumerGroup) and dict(group.regex_counts.items()).keys() != dict(group.regexes.items()).keys():
        return f"{here}: of its expressions {[*dict(group.regexes.items())]} are resolved"
    if group.state != (ConsumerGroupState.STABLE if isinstance(group, ConsumerGroup) else GroupState.STABLE):
        return here
    for process in alive:
        number = members[process.member_id].member_epoch if isinstance(group, ConsumerGroup) else group.generation
        if process.generation != number:
            return here
    return _wrong_owners(world, plan, here)


def _wrong_owners(world: World, plan: GroupPlan, here: str) -> str:
    topics = world.topics
    alive = world.alive(plan)
    wanted: set[tuple[Any, int]] = set()
    for process in alive:
        subscribed = process.subscription
        names = (
            topics.matching(subscribed.pattern)
            if subscribed.pattern
            else [each for each in subscribed.names if each in topics.ids]
        )
        mine = {(topics.ids[name], index) for name in names for index in range(topics.count(name))}
        wanted |= mine
        if not process.partitions <= mine:
            return f"{here}: {process} owns {set(process.partitions) - mine}, to which it does not subscribe"
    owned = Counter(partition for process in alive for partition in process.partitions)
    if owned not in (Counter(wanted), Counter(wanted - _withheld(world, plan))):
        return f"{here}: owned are {owned}, and wanted {wanted}"
    return ""


def _withheld(world: World, plan: GroupPlan) -> set[tuple[Any, int]]:
    """Partitions that nobody owns on Kafka either: their owner had to give them up and rejoin, and its process ended before.

    It is a static member, whose next process begins no rebalance. A restart of the broker ended the one that it had begun.
    """
    here = {process.member_id for process in world.alive(plan)}
    ids = world.topics.ids
    withheld = world.withheld.get(plan.group_id, {}).items()
    return {(ids[name], index) for (name, index), owner in withheld if owner not in here and name in ids}


def _group(world: World, group_id: str) -> ConsumerGroup | ClassicGroup | None:
    group = world.broker.notes[world.partition_of(group_id)].shard.groups.find(group_id)
    return group if isinstance(group, ConsumerGroup | ClassicGroup) else None


def _images(world: World) -> dict[tuple[str, str], Any]:
    """Of the consumer groups that go on: what the log says, but when expressions were resolved; and who owns what.

    Where topics do not change, of classic groups their generations and members.
    """
    found = {}
    for plan in world.plan.groups:
        group = _group(world, plan.group_id)
        if isinstance(group, ConsumerGroup) and _goes_on(group, world):
            image = image_of(group)
            image["resolved"] = {regex: each.topics for regex, each in image["resolved"].items()}
            image["owned"] = {process.client_id: process.partitions for process in world.alive(plan)}
            found.update({(plan.group_id, what): each for what, each in image.items()})
        elif world.plan.is_classic and isinstance(group, ClassicGroup) and group.state is GroupState.STABLE:
            found[plan.group_id, "generation"] = group.generation, sorted(group.members)
    return found


def _goes_on(group: ConsumerGroup, world: World) -> bool:
    """Whether a load gives the group no reason to have its members join again, or to raise its epoch.

    Where classic members are alone, nobody's heartbeat looks at the topics. And a topic that goes stays among those that an
    expression matches until a new topic comes, or the shard is loaded, as in Apache Kafka.
    """
    resolved = {name for each in dict(group.regexes.items()).values() for name in each.topics}
    return any(member.classic is None for _, member in group.members.items()) and resolved <= world.topics.ids.keys()


GROUPS = Rules(_wake_leaders, _unrest_of, _images)


def _leave(world: World) -> None:
    for process in world.alive():
        process.leave(for_good=True)
    world.run(SESSIONS_ARE_OVER_MS)
    for hosted in world.broker.active():
        groups = [*hosted.shard.groups.live.values()]
        left = {
            "members": [member_id for group in groups for member_id in dict(group.members.items())],
            "pending members": [member_id for group in hosted.shard.classic.each() for member_id in group.pending_joins],
            "deadlines": [key for key in hosted.context._tasks if key != "expire-offsets"],
            "responses": [*hosted._batch.events, *hosted._deferred._events, *hosted._queued],
            "records": hosted._batch.records,
            "uncommitted changes": [None] * len(hosted.context.snapshots),
        }
        for what, those in left.items():
            if those:
                raise Violation(LEFT, f"{what}: {those!r}")
    if world.broker.timer is None or len(world.broker.timer) != len(world.broker.active()):
        raise Violation(LEFT, "deadlines beside those of the shards")
    world.check_replayed()
    world.run(RETENTION_MS + 2 * RETENTION_CHECK_INTERVAL_MS)
    for hosted in world.broker.active():
        groups = hosted.shard.groups
        if left_over := [*groups.live, *groups.stored, *hosted.shard.offsets.by_group]:
            raise Violation("what nobody wants any more expires", f"{left_over} are left of shard {hosted.partition}")
    world.check_replayed()
