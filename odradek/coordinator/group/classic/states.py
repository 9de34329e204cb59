"""The states of a classic group, and the one table of the transitions between them."""

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
