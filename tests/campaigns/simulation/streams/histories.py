"""Histories of streams groups, each from its seed: members join, leave, stall, crash and shut down; broker, logs and shards fail.

    python -m tests.campaigns.simulation.streams --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]

An application has one of three topologies, and several members run in one process. Source topics are created, grow and are
deleted. Internal topics are deleted, and the broker creates them again. All members may be replaced by those of another
application, and single members with another topology are refused.

Left out: warm-up tasks, which no assignor gives, and everything that histories of consumer groups leave out.
"""

from __future__ import annotations

from functools import partial

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.groups.histories import Kind, run
from tests.campaigns.simulation.streams.ending import STREAMS
from tests.campaigns.simulation.streams.faults import StreamsFaults
from tests.campaigns.simulation.streams.plan import draw
from tests.campaigns.simulation.streams.world import StreamsWorld

SIMULATION = runner.Simulation(
    "tests.campaigns.simulation.streams",
    partial(run, Kind(StreamsWorld, draw, StreamsFaults, STREAMS)),
    {
        "heartbeats": ["STREAMS_GROUP_HEARTBEAT NONE"],
        "commits": ["OFFSET_COMMIT NONE"],
        "commits refused": ["OFFSET_COMMIT STALE_MEMBER_EPOCH", "OFFSET_COMMIT UNKNOWN_MEMBER_ID"],
        "fenced": ["STREAMS_GROUP_HEARTBEAT FENCED_MEMBER_EPOCH", "STREAMS_GROUP_HEARTBEAT UNKNOWN_MEMBER_ID"],
        "members killed": ["die"],
        "members shut down": ["shut down"],
        "topologies deployed": ["deploy another topology"],
        "topologies refused": ["STREAMS_GROUP_HEARTBEAT INVALID_REQUEST"],
        "topics made, grown or gone": ["create a topic", "grow a topic", "delete a topic", "make a topic anew"],
        "brokers killed or stopped": ["crash", "stop", "lose the tail"],
        "shards moved": ["move"],
        "appends failed": ["fail an append", "write an append and fail"],
    },
)
