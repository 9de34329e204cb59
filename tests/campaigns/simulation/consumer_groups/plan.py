"""The parameters of a history: groups, their topics and members, configs, and the kinds of faults. As ``simulation.plan``."""

from dataclasses import dataclass
from random import Random
from typing import Final

from odradek.coordinator.group.migration.policy import MigrationPolicy
from tests.campaigns.simulation.plan import BROKER_FAULTS as OF_ALL_GROUPS
from tests.campaigns.simulation.plan import faults_of

_LETTERS: Final = "abcd"
_POLICIES: Final = (*[MigrationPolicy.BIDIRECTIONAL] * 7, *[MigrationPolicy.UPGRADE] * 2, *MigrationPolicy)

# Kind of fault -> its rate a minute; for faults of members, for each member.
BROKER_FAULTS: Final = {
    **{kind: rate for kind, rate in OF_ALL_GROUPS.items() if kind not in ("list groups", "change group.max.size")},
    "create a topic": 3.0,
    "grow a topic": 4.0,
    "delete a topic": 2.0,
    "make a topic anew": 2.0,
}
MEMBER_FAULTS: Final = {
    "die": 0.8,
    "stall": 1.5,
    "leave": 1.0,
    "lose the connection": 3.0,
    "roll over": 3.0,
    "change its subscription": 1.0,
    "be doubled": 0.4,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """One group. ``topics`` have the partitions that there are at the beginning, 0 for a topic that is made later or never.

    ``consumer_share`` is the share of members that speak the consumer protocol.
    """

    group_id: str
    dynamic_members: int
    static_members: int
    is_cooperative: bool
    consumer_share: float
    topics: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a history. ``broker_faults`` and ``member_faults`` have the mean times between two of a kind, in ms."""

    groups: tuple[GroupPlan, ...]
    shards: int
    duration_ms: int
    tick_ms: int
    longest_latency_ms: int
    heartbeat_interval_ms: int
    commit_share: float
    repeat_share: float
    slowness: float
    session_timeout_ms: int
    assignment_interval_ms: int
    policy: MigrationPolicy
    max_batch_bytes: int
    load_buffer_bytes: int
    broker_faults: dict[str, float]
    member_faults: dict[str, float]


def draw(rng: Random) -> Plan:
    """The plan of the history that ``rng`` is seeded for."""
    group_count = rng.choice((1, 1, 1, 2))
    groups = tuple(_group(rng, number) for number in range(group_count))
    members = sum(group.dynamic_members + group.static_members for group in groups)
    return Plan(
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
        policy=rng.choice(_POLICIES),
        max_batch_bytes=rng.choice((1_048_588, 1_048_588, 16_384)),
        load_buffer_bytes=rng.choice((1_048_576, 1)),
        broker_faults=faults_of(rng, BROKER_FAULTS, 1.0),
        member_faults=faults_of(rng, MEMBER_FAULTS, members),
    )


def _group(rng: Random, number: int) -> GroupPlan:
    group_id = f"group{number}"
    members = rng.randint(1, 4)
    static_members = rng.choice((0, 0, members, rng.randint(0, members)))
    return GroupPlan(
        group_id=group_id,
        dynamic_members=members - static_members,
        static_members=static_members,
        is_cooperative=rng.random() < 0.5,
        consumer_share=rng.choice((1.0, 1.0, 0.8, 0.5, 0.0)),
        topics={f"{group_id}-{letter}": rng.choice((0, 1, 2, 3, 5)) if letter != "a" else 3 for letter in _LETTERS},
    )
