"""Histories of transactions, each from its seed.

python -m tests.campaigns.simulation.transactions --seeds 20000 [--first 0] [--jobs 2]
python -m tests.campaigns.simulation.transactions --seed 17 --trace
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.common.logging import lines_to
from tests.campaigns.simulation import runner
from tests.campaigns.simulation.transactions.ending import end
from tests.campaigns.simulation.transactions.faults import Faults
from tests.campaigns.simulation.transactions.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.transactions.plan import ProducerPlan

_PARTS = 3
_REPLAYED_SHARE = 0.3


def run(seed: int, *, show: Callable[[str], None] | None = None) -> tuple[World, Exception | None]:
    """The history of ``seed``, and what it ended with before its time."""
    worlds: list[World] = []
    # Around the making of the world, too: what a timer does is told to whom it was made within.
    with lines_to(lambda _, event, fields: worlds[0].note_line(event, dict(fields))):
        world = World(seed, show=show)
        worlds.append(world)
        try:
            _live(world)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
            return world, error
    return world, None


def _live(world: World) -> None:
    plan = world.plan
    for producer in plan.producers:
        world.later(world.rng.choice((0, 0, plan.duration_ms // 3)), partial(_start, world, producer))
    faults = Faults(world)
    faults.begin()
    for _ in range(_PARTS):
        world.run(plan.duration_ms // _PARTS)
        world.read_on(world.rng.choice((1, 300, 1 << 20)))
        world.check_ledger(is_over=False)
        if world.rng.random() < _REPLAYED_SHARE:
            world.check_replayed()
    end(world, faults)


def _start(world: World, producer: ProducerPlan) -> None:
    world.start_process(producer)


SIMULATION = runner.Simulation(
    "tests.campaigns.simulation.transactions",
    run,
    {
        "commits told": ["told commit"],
        "aborts told": ["told abort"],
        "timed out": ["log: a transaction timed out"],
        "processes fenced": [
            "ended by PRODUCER_FENCED",
            "ended by INVALID_PRODUCER_EPOCH",
            "ended by INVALID_PRODUCER_ID_MAPPING",
            "ended by INVALID_TXN_STATE",
        ],
        "brokers killed": ["killed at a write", "kill at a moment"],
        "brokers stopped": ["stop"],
        "appends failed": ["fail an append"],
        "logs compacted": ["logs compacted"],
        "shards moved": ["move a transaction shard", "move a group shard"],
        "markers that had to wait": ["log: cannot write a transaction's marker yet"],
        "answers lost": ["answers lost"],
        "requests repeated": ["requests repeated"],
        "fetches with records": ["fetches with records"],
        "fetch sessions begun anew": ["fetch sessions begun anew"],
        "topics deleted": ["delete a topic"],
        "connections cut with batches in flight": ["connections cut"],
        "offsets consumed": ["offsets consumed"],
        "members fenced": [
            "members fenced by ILLEGAL_GENERATION",
            "members fenced by UNKNOWN_MEMBER_ID",
            "members fenced by FENCED_INSTANCE_ID",
        ],
        "members that waited for stable offsets": ["members wait for stable offsets"],
    },
)
