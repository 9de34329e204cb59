"""Histories of a share group, each from its seed: members, leaders and share coordinators fail while records are delivered.

    python -m tests.campaigns.simulation.shares --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]
    python -m tests.campaigns.simulation.shares --seed 17 --trace

Requests go through the real handlers to the real share partitions, on real logs, and through the real persister to the real
runtime and shards. Clock, disks, network and members are simulated. The checks are in ``ledger`` and ``ending``, the faults in
``plan`` and ``faults``.

Left out: the group coordinator's half of a share group, so that each member fetches all partitions; offsets that are reset;
topics that are deleted; dead-letter topics, of which only the queue's port is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.common.logging import lines_to
from tests.campaigns.simulation import runner
from tests.campaigns.simulation.shares.ending import end
from tests.campaigns.simulation.shares.faults import Faults
from tests.campaigns.simulation.shares.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

# The number of parts of a history; the state is compared with the log between them.
_PARTS = 4


def run(seed: int, *, show: Callable[[str], None] | None = None) -> tuple[World, Exception | None]:
    """Run the history of ``seed``; returns its world, and the exception that ended it early, if any."""
    worlds: list[World] = []
    # Around the making of the world, too: a timer's lines are told to the sink it was made within.
    with lines_to(lambda _, event, fields: worlds[0].note_line(event, dict(fields))):
        world = World(seed, show)
        worlds.append(world)
        try:
            Faults(world)
            for _ in range(_PARTS):
                world.run(world.plan.duration_ms // _PARTS)
                world.coordinator.check_replayed()
            end(world)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
            return world, error
    return world, None


SIMULATION = runner.Simulation(
    "tests.campaigns.simulation.shares",
    run,
    {
        "records delivered": ["records delivered"],
        "records accepted": ["records accepted"],
        "acknowledgements": ["SHARE_ACKNOWLEDGE NONE"],
        "sessions lost": ["SHARE_FETCH SHARE_SESSION_NOT_FOUND", "SHARE_ACKNOWLEDGE SHARE_SESSION_NOT_FOUND"],
        "requests timed out": ["requests timed out"],
        "leaders moved": ["move a leader"],
        "brokers crashed": ["crash a broker"],
        "coordinators crashed or moved": ["crash the coordinator", "move a shard"],
        "appends failed": ["fail an append", "write an append and fail"],
        "members killed or stalled": ["die", "stall"],
    },
)
