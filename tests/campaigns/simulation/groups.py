"""Histories of consumer groups, each from its seed: members join, leave, stall and crash; broker, logs and shards fail.

    python -m tests.campaigns.simulation.groups --seeds 20000 [--first 0] [--jobs 2]
    python -m tests.campaigns.simulation.groups --seed 17 --trace

The requests go through the real handlers to the real runtime and shards. Clock, logs, network and clients are simulated, and
all randomness comes from the seed: equal seeds give equal histories. The checks are in ``checks``, ``told``, ``history``,
``commits``, ``replayed`` and ``ending``, the faults in ``plan`` and ``faults``.

Left out: transactions, which have histories of their own, and other brokers: a moved shard comes back to this broker, and may
have lost uncommitted records.
"""

import sys
from collections.abc import Callable
from functools import partial

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.ending import end
from tests.campaigns.simulation.faults import Faults
from tests.campaigns.simulation.world import World

# The number of parts of a history; the state is compared with the log between them.
_PARTS = 3


def run(seed: int, *, show: Callable[[str], None] | None = None) -> tuple[World, Exception | None]:
    """Run the history of ``seed``; returns its world, and the exception that ended it early, if any."""
    world = World(seed, show=show)
    try:
        _live(world)
        end(world)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
        return world, error
    return world, None


def _live(world: World) -> None:
    plan = world.plan
    for group in plan.groups:
        for number in range(group.dynamic_members + group.static_members):
            is_static = number >= group.dynamic_members
            name = f"{'static' if is_static else 'member'}{number}@{group.group_id}"
            consumer = world.make_member(group, name, name if is_static else None)
            arrives_ms = world.rng.choice((0, 0, world.rng.randint(0, plan.duration_ms // 2)))
            world.later(arrives_ms, partial(world.start_member, consumer))
    Faults(world).begin()
    for _ in range(_PARTS):
        world.run(plan.duration_ms // _PARTS)
        world.check_replayed()


SIMULATION = runner.Simulation(
    "tests.campaigns.simulation.groups",
    run,
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


def main(arguments: list[str] | None = None) -> int:
    """1 if a history fails."""
    return runner.main(SIMULATION, __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
