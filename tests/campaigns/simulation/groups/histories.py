"""Histories of groups, each from its seed: members join, leave, stall, crash and roll over; broker, logs and shards fail.

    python -m tests.campaigns.simulation.groups --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]
    python -m tests.campaigns.simulation.consumer_groups --seed 17 --trace

The groups are of the classic protocol, or have members of both, and topics that are made, grow, go, and are made anew. The
requests go through the real handlers to the real runtime and shards. Clock, logs, network and clients are simulated, and all
randomness comes from the seed: equal seeds give equal histories. The checks are in ``checks``, ``history``, ``offsets``,
``replayed`` and ``ending``, the faults in ``plan`` and ``faults``.

Left out: transactions, which have histories of their own; other brokers: a moved shard comes back to this broker, and may have
lost uncommitted records; racks, assignors of third parties, and requests of the consumer protocol that overtake each other on two
connections of one member, which it does not guard against.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.groups.ending import GROUPS, Rules, end
from tests.campaigns.simulation.groups.faults import Faults
from tests.campaigns.simulation.groups.plan import draw, draw_classic
from tests.campaigns.simulation.groups.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.campaigns.simulation.groups.plan import Plan

# The number of parts of a history; the state is compared with the log between them.
_PARTS = 4


class Kind(NamedTuple):
    """The classes and functions of the histories of one kind of groups."""

    world: type[World]
    draw: Callable[[Random], Plan]
    faults: type[Faults]
    rules: Rules


def run(kind: Kind, seed: int, *, show: Callable[[str], None] | None = None) -> tuple[World, Exception | None]:
    """Run the history of ``seed``; returns its world, and the exception that ended it early, if any."""
    world = kind.world(seed, kind.draw, show)
    try:
        _live(world, kind.faults(world))
        end(world, kind.rules)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
        return world, error
    return world, None


def _live(world: World, faults: Faults) -> None:
    plan = world.plan
    for group in plan.groups:
        subscription = world.draw_subscription(group)
        for number in range(group.dynamic_members + group.static_members):
            is_static = number >= group.dynamic_members
            name = f"{'static' if is_static else 'member'}{number}@{group.group_id}"
            own = subscription if world.rng.random() < 0.7 else None
            process = world.make_member(group, name, name if is_static else None, subscription=own)
            arrives_ms = world.rng.choice((0, 0, world.rng.randint(0, plan.duration_ms // 2)))
            world.later(arrives_ms, partial(world.start_member, process))
    faults.begin()
    for _ in range(_PARTS):
        world.run(plan.duration_ms // _PARTS)
        world.check_replayed()


CLASSIC = runner.Simulation(
    "tests.campaigns.simulation.groups",
    partial(run, Kind(World, draw_classic, Faults, GROUPS)),
    {
        "joins": ["JOIN_GROUP NONE"],
        "assignments": ["SYNC_GROUP NONE"],
        "commits": ["OFFSET_COMMIT NONE"],
        "members killed": ["die"],
        "members stalled": ["stall"],
        "fenced": ["JOIN_GROUP FENCED_INSTANCE_ID", "SYNC_GROUP FENCED_INSTANCE_ID", "HEARTBEAT FENCED_INSTANCE_ID"],
        "brokers killed or stopped": ["crash", "stop", "lose the tail"],
        "shards moved": ["move"],
        "appends failed": ["fail an append", "write an append and fail"],
    },
)

CONSUMER = runner.Simulation(
    "tests.campaigns.simulation.consumer_groups",
    partial(run, Kind(World, draw, Faults, GROUPS)),
    {
        "heartbeats": ["CONSUMER_GROUP_HEARTBEAT NONE"],
        "joins of classic members": ["JOIN_GROUP NONE"],
        "commits": ["OFFSET_COMMIT NONE"],
        "commits refused": [
            "OFFSET_COMMIT STALE_MEMBER_EPOCH",
            "OFFSET_COMMIT UNKNOWN_MEMBER_ID",
            "OFFSET_COMMIT ILLEGAL_GENERATION",
        ],
        "rolled over": ["roll over"],
        "members killed": ["die"],
        "members stalled": ["stall"],
        "fenced": ["CONSUMER_GROUP_HEARTBEAT FENCED_MEMBER_EPOCH", "CONSUMER_GROUP_HEARTBEAT UNKNOWN_MEMBER_ID"],
        "topics made, grown or gone": ["create a topic", "grow a topic", "delete a topic", "make a topic anew"],
        "brokers killed or stopped": ["crash", "stop", "lose the tail"],
        "shards moved": ["move"],
        "appends failed": ["fail an append", "write an append and fail"],
    },
)
