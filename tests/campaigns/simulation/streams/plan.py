"""The parameters of a history of streams groups, drawn from its seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.campaigns.simulation.groups.plan import BROKER_FAULTS, GroupPlan, Plan, faults_of
from tests.campaigns.simulation.streams.applications import APPLICATIONS

if TYPE_CHECKING:
    from random import Random

# Kind of fault -> its rate a minute; for faults of members, for each member.
_FAULTS: Final = {
    **{kind: rate for kind, rate in BROKER_FAULTS.items() if kind not in ("list groups", "change group.max.size")},
    "create a topic": 6.0,
    "grow a topic": 2.0,
    "delete a topic": 1.0,
    "make a topic anew": 1.0,
    "delete internal topics": 3.0,
    "change the standby tasks": 3.0,
    "deploy another topology": 1.0,
}
_FAULTS_OF_MEMBERS: Final = {
    "die": 0.8,
    "stall": 1.5,
    "leave": 1.0,
    "lose the connection": 3.0,
    "be doubled": 0.4,
    "start with another topology": 0.4,
    "ask for a shutdown": 0.2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupPlan(GroupPlan):
    """One group. ``processes`` is their number, ``application`` the number of the first application."""

    processes: int
    application: int
    topology_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPlan(Plan):
    """The parameters of a history. ``task_offset_share`` is the share of heartbeats with offsets of stores."""

    standby_tasks: int
    task_offset_share: float


def draw(rng: Random) -> StreamsPlan:
    """The plan of a history."""
    groups = tuple(_group(rng, number) for number in range(rng.choice((1, 1, 1, 2))))
    members = sum(group.dynamic_members + group.static_members for group in groups)
    return StreamsPlan(
        groups=groups,
        shards=rng.randint(1, 2),
        duration_ms=rng.randint(10_000, 40_000),
        tick_ms=rng.choice((1, 5, 50)),
        longest_latency_ms=rng.choice((0, 5, 20, 300)),
        heartbeat_interval_ms=rng.choice((1_500, 2_000, 3_000)),
        commit_share=rng.choice((0.0, 0.3, 0.8)),
        repeat_share=rng.choice((0.0, 0.2)),
        slowness=rng.choice((0.0, 0.1, 0.4)),
        session_timeout_ms=rng.choice((6_000, 10_000)),
        assignment_interval_ms=rng.choice((0, 0, 1_000)),
        initial_rebalance_delay_ms=rng.choice((0, 0, 500, 3_000)),
        max_batch_bytes=rng.choice((1_048_588, 1_048_588, 16_384)),
        load_buffer_bytes=rng.choice((1_048_576, 1)),
        standby_tasks=rng.choice((0, 1, 1, 2)),
        task_offset_share=rng.choice((0.0, 0.2)),
        broker_faults=faults_of(rng, _FAULTS, 1.0),
        member_faults=faults_of(rng, _FAULTS_OF_MEMBERS, members),
    )


def _group(rng: Random, number: int) -> StreamsGroupPlan:
    group_id = f"group{number}"
    members = rng.randint(1, 5)
    static_members = rng.choice((0, 0, members, rng.randint(0, members)))
    return StreamsGroupPlan(
        group_id=group_id,
        dynamic_members=members - static_members,
        static_members=static_members,
        is_cooperative=False,
        topics={f"{group_id}-a": rng.choice((0, 2, 3, 4)), f"{group_id}-b": rng.choice((1, 2, 4))},
        generation=rng.choice((None, None, None, 7)),
        processes=rng.randint(1, members),
        application=rng.randrange(len(APPLICATIONS)),
        topology_epoch=rng.choice((0, 0, 1, 3)),
    )
