"""Histories of groups of the consumer protocol, each from its seed: members, topics, broker, logs and shards come, go and fail.

Members of both protocols join, roll over, leave, freeze and die. Topics are made, grow and go, and are made anew.

    python -m tests.campaigns.simulation.consumer_groups --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]
    python -m tests.campaigns.simulation.consumer_groups --seed 17 --trace

The broker, its time, its logs, and the faults of all three are those of ``simulation.groups``. The checks are in ``checks``,
``history``, ``offsets``, ``replayed`` and ``ending``.

Left out: racks, assignors of third parties, and requests that overtake each other on two connections of one member, which the
protocol does not guard against.
"""

from collections.abc import Callable
from functools import partial

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.consumer_groups.ending import end
from tests.campaigns.simulation.consumer_groups.faults import ConsumerFaults
from tests.campaigns.simulation.consumer_groups.world import ConsumerWorld

# The number of parts of a history; the state is compared with the log between them.
_PARTS = 4


def run(seed: int, *, show: Callable[[str], None] | None = None) -> tuple[ConsumerWorld, Exception | None]:
    """Run the history of ``seed``; returns its world, and the exception that ended it early, if any."""
    world = ConsumerWorld(seed, show=show)
    try:
        _live(world)
        end(world)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
        return world, error
    return world, None


def _live(world: ConsumerWorld) -> None:
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
    ConsumerFaults(world).begin()
    for _ in range(_PARTS):
        world.run(plan.duration_ms // _PARTS)
        world.check_replayed()


SIMULATION = runner.Simulation(
    "tests.campaigns.simulation.consumer_groups",
    run,
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
