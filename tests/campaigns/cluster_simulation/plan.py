"""What a history is to be: how large the cluster is, who its clients are, what goes wrong. All of it is drawn from the seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.campaigns.cluster_simulation.races import ELIGIBLE, FEW, RACES

if TYPE_CHECKING:
    from random import Random

RACE_SHARE = 0.06
HURRIED = "hurried"
LOSS = "lose a broker's power"
# Each with how often it is chosen beside others.
BROKER_FAULTS = {
    "kill a broker": 4,
    LOSS: 2,
    "stop a broker": 2,
    "pause a broker": 3,
    "isolate a broker": 4,
    "cut two brokers off from each other": 3,
    "cut a broker off from the controller": 3,
    "let a broker hear nothing": 2,
    "let nobody hear a broker": 2,
    "hold back a proposal of in-sync replicas": 3,
    "slow a broker's network": 2,
    "slow a broker's disk": 2,
    "sever connections": 3,
}
CONTROLLER_FAULTS = {"kill the controller": 2, "lose the controller's power": 2, "pause the controller": 1}
CLIENT_FAULTS = {"kill a client": 2, "pause a client": 1, "cut a client off from a broker": 2}
ADMIN_ACTS = {"reassign a partition": 2, "elect preferred leaders": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``faults`` are those of this history; a client thinks for ``think_ms`` at most."""

    broker_count: int
    partition_count: int
    min_in_sync: int
    duration_ms: int
    longest_latency_ms: float
    think_ms: int
    transaction_timeout_ms: int
    idempotent_producers: int
    transactional_ids: int
    committers: int
    has_members: bool
    has_careless: bool
    flushes_each: bool
    faults: tuple[str, ...]
    fault_interval_ms: int
    race: str = ""


def draw(rng: Random) -> Plan:
    """A history's plan."""
    faults = [*BROKER_FAULTS]
    chosen = rng.sample(faults, rng.choice((1, 2, 3, 4, len(faults))))
    for others in (CONTROLLER_FAULTS, CLIENT_FAULTS, ADMIN_ACTS):
        if rng.random() < 0.5:
            chosen += others
    min_in_sync = rng.choice((1, 2, 2, 2))
    flushes_each = rng.random() < 0.25
    if min_in_sync == 1 and not flushes_each:
        # What one machine has may be lost with it.
        chosen = [each for each in chosen if each != LOSS] or ["kill a broker"]
    return Plan(
        broker_count=rng.choice((3, 3, 3, 3, 3, 3, 4, 5)),
        partition_count=rng.choice((1, 2, 3)),
        min_in_sync=min_in_sync,
        duration_ms=rng.choice((4_000, 6_000, 9_000)),
        longest_latency_ms=rng.choice((0.5, 2.0, 10.0)),
        think_ms=rng.choice((200, 400, 800)),
        transaction_timeout_ms=rng.choice((1_000, 3_000)),
        idempotent_producers=rng.choice((1, 1, 2)),
        transactional_ids=rng.choice((0, 1, 1, 2)),
        committers=rng.choice((0, 1, 1)),
        has_members=rng.random() < 0.5,
        has_careless=rng.random() < 0.4,
        flushes_each=flushes_each,
        faults=tuple(chosen),
        fault_interval_ms=rng.choice((400, 800, 1_500)),
    )


def with_race(plan: Plan, rng: Random) -> Plan:
    """The plan with a race perhaps, in a quiet history."""
    drawn = rng.random() / RACE_SHARE
    if drawn >= 3:
        return plan
    if drawn >= 2.5:
        return replace(plan, race=FEW, faults=(), broker_count=3, min_in_sync=2, duration_ms=9_000, transactional_ids=1)
    if drawn >= 1.5:
        return _hurried(plan)
    race = rng.choice(RACES) if drawn < 1 else ELIGIBLE
    min_in_sync = 1 if race == "fenced" else 2
    if race == ELIGIBLE:
        plan = replace(plan, broker_count=3)
    return replace(plan, race=race, faults=("sever connections",), duration_ms=9_000, min_in_sync=min_in_sync, flushes_each=False)


def _hurried(plan: Plan) -> Plan:
    """Several producers whose transactions follow one another without a pause, each to several partitions."""
    others = {"idempotent_producers": 1, "committers": 0, "has_careless": False}
    return replace(plan, race=HURRIED, faults=(), duration_ms=1_500, think_ms=0, partition_count=3, transactional_ids=3, **others)
