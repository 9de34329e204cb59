"""What an assignor of a third party is given, and what of its assignments is refused."""

from types import MappingProxyType

import pytest

from odradek.coordinator.group.assignor.spec import InvalidAssignment, checked
from tests.cases import each_case
from tests.coordinator.group.assignor.groups import T, U, group_of

GROUP = group_of({U: 1, T: 2}, {"n": {T}, "m": ({T, U}, {T: {0}}, None)})


def given(assignment):
    return checked(lambda _: assignment)(GROUP)


@each_case(
    "assignment",
    [{}, {"m": {}}, {"m": {T: {0}, U: {0}}, "n": {T: {1}}}, {"n": {T: [0, 1]}}, MappingProxyType({"n": {T: range(2)}})],
    ids=["nothing", "an-empty-member", "everything", "a-list", "a-range"],
)
def test_an_assignment_that_fits_is_taken(assignment):
    assert given(assignment) == assignment


@each_case(
    ("assignment", "reason"),
    [
        (None, "a NoneType is not an assignment by member id"),
        ({"x": {}}, "x is not a member"),
        ({"n": {U: {0}}}, f"n does not subscribe to topic {U}"),
        ({"n": {T: {2}}}, f"topic {T} has no partition 2"),
        ({"n": {T: {-1}}}, f"topic {T} has no partition -1"),
        ({"n": {T: {"0"}}}, f"topic {T} has no partition '0'"),
        ({"n": {T: {True}}}, f"topic {T} has no partition True"),
        ({"n": {T: {0}}, "m": {T: {0}}}, f"n and m both get partition 0 of topic {T}"),
    ],
)
def test_an_assignment_that_does_not_fit_is_refused(assignment, reason):
    with pytest.raises(InvalidAssignment) as refused:
        given(assignment)
    assert str(refused.value) == reason


def test_what_an_assignor_raises_goes_through():
    def assign(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        checked(assign)(GROUP)


def test_members_and_topics_come_in_the_order_of_their_ids_and_cannot_be_changed():
    seen = []
    checked(lambda group: seen.append(group) or {})(GROUP)
    [group] = seen
    assert list(group.members) == ["m", "n"]
    assert list(group.topics) == [T, U]
    assert (group.members["m"].assignment, group.topics, group.is_homogeneous) == ({T: {0}}, GROUP.topics, False)
    for mapping in (group.members, group.topics, group.members["m"].assignment):
        with pytest.raises(TypeError):
            mapping["m"] = {}
