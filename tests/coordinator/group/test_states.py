from itertools import product

import pytest

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.states import PERMITTED, GroupState, IllegalTransition, can_rebalance, check_transition
from tests.cases import each_case

_ALLOWED = {
    ("Empty", "PreparingRebalance"),
    ("Empty", "Dead"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("PreparingRebalance", "Empty"),
    ("PreparingRebalance", "Dead"),
    ("CompletingRebalance", "Stable"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("CompletingRebalance", "Dead"),
    ("Stable", "PreparingRebalance"),
    ("Stable", "Dead"),
}


@each_case(("current", "target"), list(product(GroupState, GroupState)))
def test_every_transition_is_in_the_table_or_raises(current, target):
    if (current.value, target.value) in _ALLOWED:
        check_transition("g", current, target)
    else:
        with pytest.raises(IllegalTransition, match="group g"):
            check_transition("g", current, target)


def test_the_table_has_every_state():
    assert set(PERMITTED) == set(GroupState)


def test_a_group_can_rebalance_from_where_the_table_leads_there():
    assert {state for state in GroupState if can_rebalance(state)} == {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    }


def test_a_transition_is_remembered_with_its_time_and_the_state_before():
    group = ClassicGroup("g", GroupState.EMPTY, 0, 5)
    group.transition_to(GroupState.PREPARING_REBALANCE, 7)
    assert (group.state, group.previous_state, group.state_since_ms) == (GroupState.PREPARING_REBALANCE, GroupState.EMPTY, 7)


def test_a_refused_transition_changes_nothing():
    group = ClassicGroup("g", GroupState.EMPTY, 0, 5)
    with pytest.raises(IllegalTransition):
        group.transition_to(GroupState.STABLE, 7)
    assert (group.state, group.state_since_ms) == (GroupState.EMPTY, 5)
