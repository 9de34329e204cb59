"""The plan of a history of a share group: its sizes, its configs, the ways of its members, and the faults with their rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.broker.share.in_flight import ShareLimits

if TYPE_CHECKING:
    from random import Random

# The rate of each kind of fault, per minute.
_RATES = {
    "move a leader": 15.0,
    "crash a broker": 3.0,
    "move a shard": 5.0,
    "crash the coordinator": 3.0,
    "fail an append": 8.0,
    "write an append and fail": 4.0,
    "hold the high watermark": 4.0,
    "delete records": 4.0,
    "die": 6.0,
    "stall": 6.0,
    "cut a connection": 6.0,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """``manners`` are the weights with which members accept, release, reject, renew and abandon a record.

    ``faults`` has the mean time in ms between two faults of a kind. ``lost_share`` is the share of answers that are lost.
    """

    partitions: int
    brokers: int
    shards: int
    members: int
    duration_ms: int
    tick_ms: int
    longest_latency_ms: int
    lost_share: float
    is_remote: bool
    is_earliest: bool
    is_committed_only: bool
    limits: ShareLimits
    manners: tuple[int, int, int, int, int]
    slowness: float
    most_records: int
    has_record_limit: bool
    transactional_share: float
    hole_share: float
    produce_interval_ms: int
    segment_bytes: int
    updates_per_snapshot: int
    prune_interval_ms: int
    faults: dict[str, float]


def draw(rng: Random) -> Plan:
    """Draw a plan."""
    intensity = rng.choice((0.5, 1.0, 2.0))
    brokers = rng.choice((1, 2, 3))
    lock_ms = rng.choice((500, 2_000, 5_000))
    limits = ShareLimits(
        delivery_count_limit=rng.choice((1, 2, 3, 5, 5)),
        partition_max_record_locks=rng.choice((8, 30, 30, 2_000)),
        record_lock_duration_ms=lock_ms,
        has_dead_letters=rng.random() < 0.3,
    )
    return Plan(
        partitions=rng.choice((1, 1, 2)),
        brokers=brokers,
        shards=rng.choice((1, 2)),
        members=rng.randint(1, 4),
        duration_ms=rng.randint(5_000, 20_000),
        tick_ms=rng.choice((1, 5, 50)),
        longest_latency_ms=rng.choice((0, 5, 50, 600)),
        lost_share=rng.choice((0.0, 0.0, 0.05)),
        is_remote=rng.random() < 0.6,
        is_earliest=rng.random() < 0.7,
        is_committed_only=rng.random() < 0.6,
        limits=limits,
        manners=rng.choice(((20, 1, 1, 1, 1), (3, 3, 1, 2, 1), (10, 0, 0, 0, 0), (1, 6, 0, 1, 2))),
        slowness=rng.choice((0.05, 0.3, 1.2)),
        most_records=rng.choice((1, 5, 20, 500)),
        has_record_limit=rng.random() < 0.4,
        transactional_share=rng.choice((0.0, 0.3, 0.6)),
        hole_share=rng.choice((0.0, 0.0, 0.2)),
        produce_interval_ms=rng.choice((150, 500, 1_500)),
        segment_bytes=rng.choice((400, 2_000, 1 << 20)),
        updates_per_snapshot=rng.choice((0, 2, 10, 500)),
        prune_interval_ms=rng.choice((700, 4_000, 300_000)),
        faults={kind: 60_000 / (rate * intensity) for kind, rate in _RATES.items() if rng.random() < 0.5},
    )
