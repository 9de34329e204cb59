"""The states of a classic group, the one table of the transitions between them, and the notes on its rebalances.

The notes and counters of rebalances, for logs and metrics, hold the cause, the members that joined and left, the duration and
the frequency.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class GroupState(StrEnum):
    """The states, with their names in DescribeGroups and ListGroups."""

    EMPTY = "Empty"  # no members; lives on while it has offsets
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for its members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"  # every member may have its assignment
    DEAD = "Dead"  # deleted, or gone to another coordinator


class IllegalTransition(Exception):
    """An internal error: a group was about to make a transition that the table does not permit."""


PERMITTED: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}


def check_transition(group_id: str, current: GroupState, target: GroupState) -> None:
    """Raise ``IllegalTransition`` unless the table permits the transition from ``current`` to ``target``."""
    if target not in PERMITTED[current]:
        raise IllegalTransition(f"group {group_id} cannot go from {current} to {target}")


def can_rebalance(state: GroupState) -> bool:
    """Return whether a group in ``state`` can begin a rebalance."""
    return GroupState.PREPARING_REBALANCE in PERMITTED[state]


# Upper bounds of the latency histogram's buckets. The last bucket counts longer latencies.
LATENCY_BOUNDS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000)
# The most joined or departed members named in one line. All of them are counted.
NAMED_MEMBERS: Final = 20


class RebalanceCause(StrEnum):
    """The kinds of reason, for counting. The reason itself is a sentence that includes the client's words (KIP-800)."""

    MEMBER_ADDED = "member_added"
    MEMBER_REJOINED = "member_rejoined"
    MEMBER_CHANGED = "member_changed"
    LEADER_REJOINED = "leader_rejoined"
    STATIC_MEMBER_CHANGED = "static_member_changed"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    SYNC_EXPIRED = "sync_expired"
    APPEND_FAILED = "append_failed"
    OVER_CAPACITY = "over_capacity"
    DOWNGRADED = "downgraded"


@dataclass(slots=True)
class RebalanceNotes:
    """One rebalance from its first cause on; ``started_ms`` is monotonic. Later causes add nothing."""

    cause: RebalanceCause
    why: str
    started_ms: float


@dataclass(slots=True)
class GroupCounters:
    """Counters of one shard's classic groups since it was loaded. Plain numbers, read on demand.

    ``latency_buckets`` counts by ``LATENCY_BOUNDS_MS``; ``last_rebalance_ms`` is monotonic, None before the first.
    """

    rebalances_completed: int = 0
    rebalances_abandoned: int = 0
    rebalances_by_cause: dict[RebalanceCause, int] = field(default_factory=dict)
    latency_sum_ms: float = 0.0
    latency_max_ms: float = 0.0
    latency_buckets: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS_MS) + 1))
    last_rebalance_ms: float | None = None
    heartbeats: int = 0
    sessions_expired: int = 0

    def note_begun(self, cause: RebalanceCause) -> None:
        """Count the beginning of a rebalance."""
        self.rebalances_by_cause[cause] = self.rebalances_by_cause.get(cause, 0) + 1

    def note_completed(self, took_ms: float, now_ms: float) -> None:
        """Count a rebalance that ended in a stable group."""
        self.rebalances_completed += 1
        self.latency_sum_ms += took_ms
        self.latency_max_ms = max(self.latency_max_ms, took_ms)
        self.latency_buckets[bisect_left(LATENCY_BOUNDS_MS, took_ms)] += 1
        self.last_rebalance_ms = now_ms


def named(member_ids: Iterable[str]) -> list[str]:
    """Return the first ``NAMED_MEMBERS`` of the ids, in order, and how many more there are."""
    ordered = sorted(member_ids)
    hidden = len(ordered) - NAMED_MEMBERS
    return ordered if hidden <= 0 else [*ordered[:NAMED_MEMBERS], f"and {hidden} more"]
