"""What holds of both assignors, whatever the group."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.assignor.builtin import ASSIGNORS
from tests.coordinator.group.assignor.assignments import owners, plain
from tests.coordinator.group.assignor.groups import T, group_of, groups, with_targets

both = pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)


def partitions_wanted(group):
    return {(topic_id, index) for topic_id, topic in group.topics.items() for index in range(topic.partition_count)}


@both
@given(groups())
def test_every_partition_that_is_wanted_goes_to_one_subscriber(assign, group):
    found = owners(assign(group))
    assert found.keys() == partitions_wanted(group)
    for (topic_id, _), members in found.items():
        assert len(members) == 1
        assert topic_id in group.members[members[0]].topic_ids


@both
@given(groups(consistent=False))
def test_targets_that_overlap_or_overreach_are_mended(assign, group):
    found = owners(assign(group))
    assert found.keys() == partitions_wanted(group)
    assert all(len(members) == 1 for members in found.values())


@both
@given(groups(), st.integers())
def test_the_order_of_the_input_does_not_matter(assign, group, seed):
    shuffle = Random(seed)
    members, topics = list(group.members.items()), list(group.topics.items())
    shuffle.shuffle(members)
    shuffle.shuffle(topics)
    assert plain(assign(replace(group, members=dict(members), topics=dict(topics)))) == plain(assign(group))


@both
@given(groups())
def test_an_assignment_stays_while_nothing_changes(assign, group):
    once = assign(group)
    assert plain(assign(with_targets(group, once))) == plain(once)


@both
@given(groups())
def test_the_input_is_left_as_it_is(assign, group):
    before = {member_id: dict(member.assignment) for member_id, member in group.members.items()}
    assign(group)
    assert {member_id: dict(member.assignment) for member_id, member in group.members.items()} == before


@both
@pytest.mark.parametrize(
    "members", [{}, {"m": set()}, {"m": set(), "n": set()}], ids=["nobody", "one-for-nothing", "two-for-nothing"]
)
def test_where_nothing_is_wanted_nothing_is_assigned(assign, members):
    assert plain(assign(group_of({T: 3}, members))) == {}
