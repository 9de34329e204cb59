"""The end of a history: all is set right, the members accept what they get, and every record comes to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.share.share_partition import SharePartitionState
from odradek.coordinator.share.state import SharePartitionKey
from tests.campaigns.simulation.shares.broker import GROUP
from tests.campaigns.simulation.shares.topic import TOPIC_ID
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.simulation.shares.world import World

REST = "with time enough, every record is accepted or archived"
LETTERED = "a rejected record is a dead letter"
_STEP_MS = 2_500
_MOST_STEPS = 60


def end(world: World) -> None:
    """Bring the history to its end. Raises Violation."""
    world.is_in_trouble = False
    # Faults that have begun end by themselves: brokers and members start again, shards are loaded.
    world.run(6_000)
    for log in world.coordinator.logs.logs:
        log.failures.clear()
        log.read_failures.clear()
        if log.is_held_back:
            log.release()
    if not world.alive():
        world.start_member()
    for index, written in enumerate(world.topic):
        leader = world.leader_of(index)
        if leader is None:
            raise Violation(REST, f"{world.leaders[index]} does not lead {index}")
        for producer in list(written.open):
            written.end(leader.partitions[index], producer, is_commit=world.rng.random() < 0.5, now_ms=world.clock.now_ms())
    _come_to_rest(world)
    # The stored state agrees.
    for index, (leader, _) in enumerate(world.leaders):
        world.elect(index, leader)
    for partition in range(world.plan.shards):
        world.coordinator.load(partition)
    _come_to_rest(world)
    world.coordinator.check_replayed()
    if world.plan.limits.has_dead_letters and (lost := world.ledger.without_letter()):
        raise Violation(LETTERED, f"{lost} are not")


def _come_to_rest(world: World) -> None:
    for _ in range(_MOST_STEPS):
        world.run(_STEP_MS)
        unfinished = [told for index in range(world.plan.partitions) if (told := _unfinished(world, index))]
        if not unfinished:
            return
    raise Violation(REST, "; ".join(unfinished))


def _unfinished(world: World, index: int) -> str:
    """Return the reason why a partition is not done with; empty if it is."""
    leader = world.leader_of(index)
    share = None if leader is None else leader.shared(index)
    if share is None or share.state != SharePartitionState.ACTIVE:
        return f"{index} is not used at {leader and leader.node_id}"
    if world.coordinator.stored(SharePartitionKey(GROUP, TOPIC_ID, index)) is None:
        return f"{index} has no state"
    window, end_offset = share.window, world.topic[index].log.log_end_offset
    if window.start_offset == end_offset and not window.batches:
        return ""
    return f"{index} starts at {window.start_offset} of {end_offset}, {list(window.runs())}"
