"""What a history of transactions is to be: how many producers, partitions and shards, how fast, and what goes wrong how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

LONGEST_HOLD_MS = 1_200

# Each with the mean time between two of its kind, ms; a history has some of them.
_FAULTS = {
    "kill at a moment": 800,
    "kill at a write": 400,
    "stop": 1_000,
    "flush": 300,
    "compact": 200,
    "look": 100,
    "move a transaction shard": 400,
    "move a group shard": 700,
    "fail an append": 250,
    "take a partition offline": 500,
    "hold a high watermark": 400,
    "delete a topic": 800,
    "start a zombie": 400,
    "stall a producer": 400,
    "kill a producer": 500,
    "commit offsets without a transaction": 300,
    "delete a group": 1_000,
    "repeat an old marker": 250,
}


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """A transactional id. ``first_epoch`` is the one it has from before the history, None for a new id.

    ``is_two_phase``: an outside manager ends its transactions, which have no timeout (KIP-939).
    """

    transactional_id: str
    timeout_ms: int
    first_epoch: int | None
    bumping_share: float
    is_two_phase: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """One history's. Times in ms."""

    producers: tuple[ProducerPlan, ...]
    topics: tuple[tuple[str, int], ...]
    groups: tuple[str, ...]
    transaction_shards: int
    group_shards: int
    duration_ms: int
    tick_ms: int
    longest_latency_ms: int
    think_ms: int
    patience_ms: int
    abort_interval_ms: int
    expiration_ms: int
    segment_bytes: int
    repeat_share: float
    loss_share: float
    abort_share: float
    bumps_epochs_at_start: bool
    faults: dict[str, int]

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Those that producers write to."""
        return [(topic, index) for topic, count in self.topics for index in range(count)]


def draw(rng: Random) -> Plan:
    """A plan."""
    bumping_share = rng.choice((0.0, 0.5, 1.0, 1.0))
    producers = tuple(
        ProducerPlan(
            transactional_id=f"id{number}",
            timeout_ms=rng.choice((700, 1_500, 4_000)),
            first_epoch=rng.choice((None, None, None, 7, 32_763, 32_765)),
            bumping_share=bumping_share,
            is_two_phase=rng.random() < 0.1,
        )
        for number in range(rng.choice((1, 1, 2, 2, 3)))
    )
    kinds = rng.sample(list(_FAULTS), rng.choice((0, 1, 2, 3, 5, 8)))
    return Plan(
        producers=producers,
        topics=rng.choice(((("t", 1),), (("t", 2),), (("t", 2), ("u", 1)))),
        groups=rng.choice((("g",), ("g", "h"))),
        transaction_shards=rng.choice((1, 1, 2)),
        group_shards=rng.choice((1, 1, 2)),
        duration_ms=rng.choice((500, 900, 1_600)),
        tick_ms=rng.choice((1, 1, 10)),
        longest_latency_ms=rng.choice((0, 5, 60)),
        think_ms=rng.choice((20, 60, 150)),
        patience_ms=rng.choice((600, 2_000)),
        abort_interval_ms=rng.choice((200, 1_000)),
        expiration_ms=rng.choice((900, 60_000, 60_000, 60_000)),
        segment_bytes=rng.choice((700, 2_000, 1_000_000)),
        repeat_share=rng.choice((0.0, 0.0, 0.05, 0.2)),
        loss_share=rng.choice((0.0, 0.0, 0.03, 0.1)),
        abort_share=rng.choice((0.1, 0.3)),
        bumps_epochs_at_start=rng.random() < 0.5,
        faults={kind: _FAULTS[kind] for kind in sorted(kinds)},
    )
