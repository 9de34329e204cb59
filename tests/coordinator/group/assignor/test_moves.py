"""What moves between two target assignments, and why."""

import pytest
from hypothesis import given

from odradek.coordinator.group.assignor.builtin import ASSIGNORS
from odradek.coordinator.group.consumer.explanations import Move, MoveReason, moves
from tests.cases import each_case
from tests.coordinator.group.assignor.assignments import kept, owners
from tests.coordinator.group.assignor.groups import T, U, V, group_of, groups, with_targets


def moved(previous, topics, members, new, *, successors=None, exist=(T, U)):
    return moves(previous, group_of(topics, members), new, successors or {}, set(exist))


@each_case(
    ("previous", "members", "new", "expected"),
    [
        ({}, {"a": {T}}, {"a": {T: {0}}}, Move(T, 0, None, "a", MoveReason.NEW_TOPIC)),
        ({"a": {T: {0}}}, {"a": {T}}, {"a": {T: {0, 1}}}, Move(T, 1, None, "a", MoveReason.NEW_PARTITION)),
        ({"a": {T: {1}}}, {"a": {T}}, {"a": {T: {0, 1}}}, Move(T, 0, None, "a", MoveReason.HAD_NO_OWNER)),
        ({"a": {V: {0}}}, {"a": {T}}, {}, Move(V, 0, "a", None, MoveReason.TOPIC_GONE)),
        ({"b": {T: {0}}}, {"a": {T}}, {"a": {T: {0}}}, Move(T, 0, "b", "a", MoveReason.OWNER_GONE)),
        ({"b": {U: {0}}}, {"a": {T}}, {}, Move(U, 0, "b", None, MoveReason.OWNER_GONE)),
        ({"a": {T: {0}}}, {"a": {U}, "b": {T}}, {"b": {T: {0}}}, Move(T, 0, "a", "b", MoveReason.OWNER_UNSUBSCRIBED)),
        ({"a": {T: {0}}}, {"a": set()}, {}, Move(T, 0, "a", None, MoveReason.OWNER_UNSUBSCRIBED)),
        ({"a": {T: {0, 1}}}, {"a": {T}, "b": {T}}, {"a": {T: {0}}, "b": {T: {1}}}, Move(T, 1, "a", "b", MoveReason.BALANCE)),
    ],
    ids=lambda value: value.reason.name if isinstance(value, Move) else "",
)
def test_a_move_has_a_reason(previous, members, new, expected):
    assert moved(previous, {T: 2, U: 1}, members, new) == [expected]


def test_what_moves_though_its_owner_gets_no_less_moves_by_the_assignors_order():
    members = {"a": {T}, "b": {T}}
    found = moved({"a": {T: {1}}, "b": {T: {0}}}, {T: 2}, members, {"a": {T: {0}}, "b": {T: {1}}})
    assert [(move.partition, move.source, move.target, move.reason.name) for move in found] == [
        (0, "b", "a", "ASSIGNORS_ORDER"),
        (1, "a", "b", "ASSIGNORS_ORDER"),
    ]


def test_a_member_that_unsubscribes_is_not_said_to_have_had_too_much():
    # Of what it still subscribes to, it had one partition, and has one.
    found = moved({"a": {T: {0}, U: {0}}}, {T: 1, U: 2}, {"a": {U}, "b": {T, U}}, {"a": {U: {1}}, "b": {T: {0}, U: {0}}})
    assert [move.reason.name for move in found] == ["OWNER_UNSUBSCRIBED", "ASSIGNORS_ORDER", "NEW_PARTITION"]


def test_what_a_static_member_keeps_under_another_id_does_not_move():
    assert moved({"a": {T: {0}}}, {T: 1}, {"b": {T}}, {"b": {T: {0}}}, successors={"a": "b"}) == []


def test_moves_are_in_the_order_of_topics_and_indexes():
    found = moved({}, {T: 2, U: 2}, {"a": {T, U}}, {"a": {U: {1, 0}, T: {1, 0}}})
    assert [(move.topic_id, move.partition) for move in found] == [(T, 0), (T, 1), (U, 0), (U, 1)]


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)
@given(groups())
def test_the_moves_lead_from_the_old_targets_to_the_new(assign, group):
    previous = {member_id: member.assignment for member_id, member in group.members.items()}
    new = assign(group)
    state = {partition: member_id for partition, [member_id] in owners(previous).items()}
    for move in moves(previous, group, new, {}, set(group.topics)):
        assert state.pop((move.topic_id, move.partition), None) == move.source != move.target
        if move.target is not None:
            state[move.topic_id, move.partition] = move.target
    assert state == {partition: member_id for partition, [member_id] in owners(new).items()}


@given(groups(alike=True))
def test_uniform_moves_nothing_by_its_order_where_members_are_alike(group):
    previous = {member_id: member.assignment for member_id, member in group.members.items()}
    reasons = {move.reason for move in moves(previous, group, ASSIGNORS["uniform"](group), {}, set(group.topics))}
    assert MoveReason.ASSIGNORS_ORDER not in reasons


@given(groups())
def test_what_does_not_move_is_kept(group):
    settled = with_targets(group, ASSIGNORS["uniform"](group))
    previous = {member_id: member.assignment for member_id, member in settled.members.items()}
    new = ASSIGNORS["range"](settled)
    count = sum(1 for move in moves(previous, settled, new, {}, set(settled.topics)) if move.source is not None)
    assert count + kept(settled, new) == len(owners(previous))
