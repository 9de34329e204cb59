"""The parameters of a history, drawn from its seed: the groups and their members, the configs, and the kinds of faults.

Each kind of fault is left out of half of the histories, so that some histories have many faults of few kinds (swarm testing:
Groce et al., 2012). Most histories are small, since rare states take few steps in small ones; one in seventy of those of the
classic protocol has hundreds of members. Members of both protocols are in the histories of consumer groups.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from odradek.coordinator.group.config import MigrationPolicy

# The members' session timeouts, which bound the delay of a response (``deadlines``).
SESSION_TIMEOUTS_MS: Final = (6_000, 8_000, 10_000)
REBALANCE_TIMEOUTS_MS: Final = (3_000, 8_000, 15_000)
LONGEST_HOLD_MS: Final = 4_000
UNLIMITED: Final = 2**31 - 1
_LETTERS: Final = "abcd"
_POLICIES: Final = (*[MigrationPolicy.BIDIRECTIONAL] * 7, *[MigrationPolicy.UPGRADE] * 2, *MigrationPolicy)

# Kind of fault -> its rate a minute; for faults of members, for each member.
BROKER_FAULTS: Final = {
    "crash": 1.5,
    "stop": 1.0,
    "move": 3.0,
    "hold the high watermark": 6.0,
    "fail an append": 8.0,
    "write an append and fail": 2.0,
    "lose the tail": 1.0,
    "fail a read": 1.0,
    "compact": 4.0,
    "change group.max.size": 1.0,
    "delete a group": 4.0,
    "commit as an administrator": 6.0,
    "fetch as an administrator": 20.0,
    "describe a group": 20.0,
    "list groups": 10.0,
}
_MEMBER_FAULTS: Final = {
    "die": 0.8,
    "stall": 1.2,
    "leave": 1.0,
    "lose the connection": 2.0,
    "change protocols": 0.5,
    "be doubled": 0.6,
}
_FAULTS_OF_CONSUMER_GROUPS: Final = {
    **{kind: rate for kind, rate in BROKER_FAULTS.items() if kind not in ("list groups", "change group.max.size")},
    "create a topic": 3.0,
    "grow a topic": 4.0,
    "delete a topic": 2.0,
    "make a topic anew": 2.0,
}
_FAULTS_OF_THEIR_MEMBERS: Final = {
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

    ``consumer_share`` is the share of members that speak the consumer protocol. ``generation`` is the one of an initially empty
    group; None for a new group.
    """

    group_id: str
    dynamic_members: int
    static_members: int
    is_cooperative: bool
    topics: dict[str, int]
    consumer_share: float = 0.0
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a history. ``faults`` has its kinds of faults, and the mean time between two of a kind, in ms.

    ``slowness`` is the share of revocations that take long.
    """

    groups: tuple[GroupPlan, ...]
    shards: int
    duration_ms: int
    tick_ms: int
    longest_latency_ms: int
    heartbeat_interval_ms: int
    commit_share: float
    repeat_share: float
    max_batch_bytes: int
    load_buffer_bytes: int
    broker_faults: dict[str, float]
    member_faults: dict[str, float]
    is_classic: bool = False
    initial_rebalance_delay_ms: int = 0
    group_max_size: int = UNLIMITED
    slowness: float = 0.0
    session_timeout_ms: int = 10_000
    assignment_interval_ms: int = 0
    policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    @property
    def is_large(self) -> bool:
        """Whether a check of everything after each step would take too long."""
        return sum(group.dynamic_members + group.static_members for group in self.groups) > 20


def draw_classic(rng: Random) -> Plan:
    """The plan of a history of classic groups."""
    size = rng.random()
    if size < 0.015:
        group_count, most_members, duration_ms = rng.randint(20, 40), 14, rng.randint(10_000, 25_000)
    elif size < 0.2:
        group_count, most_members, duration_ms = rng.randint(2, 5), 6, rng.randint(12_000, 30_000)
    else:
        group_count, most_members, duration_ms = rng.choice((1, 1, 2)), 5, rng.randint(8_000, 36_000)
    groups = tuple(_classic_group(rng, number, most_members) for number in range(group_count))
    members = sum(group.dynamic_members + group.static_members for group in groups)
    return Plan(
        groups=groups,
        shards=rng.randint(1, min(4, 2 * group_count)) if group_count < 20 else rng.randint(4, 12),
        duration_ms=duration_ms,
        tick_ms=rng.choice((1, 1, 5, 50)),
        longest_latency_ms=rng.choice((0, 5, 20, 300)),
        heartbeat_interval_ms=rng.choice((1_500, 2_000, 3_000)),
        commit_share=rng.choice((0.0, 0.3, 0.8)),
        repeat_share=rng.choice((0.0, 0.2)),
        is_classic=True,
        initial_rebalance_delay_ms=rng.choice((0, 0, 500, 3_000)),
        group_max_size=rng.choice((UNLIMITED, UNLIMITED, UNLIMITED, 3)),
        max_batch_bytes=rng.choice((1_048_588, 1_048_588, 8_192)),
        load_buffer_bytes=rng.choice((1_048_576, 1)),
        broker_faults=faults_of(rng, BROKER_FAULTS, 1.0),
        member_faults=faults_of(rng, _MEMBER_FAULTS, members),
    )


def draw(rng: Random) -> Plan:
    """The plan of a history of consumer groups."""
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
        broker_faults=faults_of(rng, _FAULTS_OF_CONSUMER_GROUPS, 1.0),
        member_faults=faults_of(rng, _FAULTS_OF_THEIR_MEMBERS, members),
    )


def _classic_group(rng: Random, number: int, most_members: int) -> GroupPlan:
    members = rng.randint(1, most_members)
    static_members = rng.choice((0, 0, members, rng.randint(0, members)))
    return GroupPlan(
        group_id=f"group{number}",
        dynamic_members=members - static_members,
        static_members=static_members,
        is_cooperative=rng.random() < 0.3,
        topics={f"group{number}": rng.randint(1, 8)},
        generation=rng.choice((None, None, None, 7, 2**31 - rng.randint(1, 4))),
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


def faults_of(rng: Random, rates: dict[str, float], members: float) -> dict[str, float]:
    """Some of the kinds of faults, with the mean time between two of a kind in ms."""
    intensity = rng.choice((0.5, 1.0, 2.0))
    return {kind: 60_000 / (rate * members * intensity) for kind, rate in rates.items() if rng.random() < 0.5}
