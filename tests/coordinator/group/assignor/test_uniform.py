"""``uniform``: the same number for all, and little that moves."""

from dataclasses import replace

from hypothesis import given

from odradek.coordinator.group.assignor.builtin import assign_uniform
from tests.coordinator.group.assignor.assignments import kept, plain, sizes
from tests.coordinator.group.assignor.groups import T, U, V, group_of, groups, with_targets


@given(groups(alike=True))
def test_members_that_subscribe_to_the_same_have_the_same_number_or_one_more(group):
    found = sizes(group, assign_uniform(group)).values()
    assert max(found) - min(found) <= 1


@given(groups(alike=True))
def test_as_much_stays_as_equal_sizes_allow(group):
    had = [
        sum(len(indexes) for topic_id, indexes in member.assignment.items() if topic_id in member.topic_ids)
        for member in group.members.values()
    ]
    low, extra = divmod(sum(topic.partition_count for topic in group.topics.values()), len(had))
    most = sum(min(size, low) for size in had) + min(extra, sum(size > low for size in had))
    assert kept(group, assign_uniform(group)) == most


@given(groups(alike=False))
def test_no_partition_would_be_better_off_with_another_subscriber(group):
    found = assign_uniform(group)
    has = sizes(group, found)
    for member_id, partitions in found.items():
        for topic_id, indexes in partitions.items():
            if indexes:
                others = [has[other] for other, member in group.members.items() if topic_id in member.topic_ids]
                assert has[member_id] - min(others) <= 1


@given(groups(alike=True))
def test_those_that_stay_lose_nothing_when_one_leaves(group):
    settled = with_targets(group, assign_uniform(group))
    left = dict(list(settled.members.items())[1:])
    after = replace(settled, members=left)
    assert kept(after, assign_uniform(after)) == sum(len(i) for m in left.values() for i in m.assignment.values())


def test_new_partitions_are_given_out_by_topic_and_index_and_the_last_member_gets_one_more():
    found = assign_uniform(group_of({T: 3, U: 2}, {"b": {T, U}, "a": {T, U}}))
    assert plain(found) == {"a": {T: {0, 1}}, "b": {T: {2}, U: {0, 1}}}


def test_who_has_one_more_keeps_it():
    found = assign_uniform(group_of({T: 5}, {"a": ({T}, {T: {0, 1}}, None), "b": ({T}, {T: {2, 3, 4}}, None)}))
    assert plain(found) == {"a": {T: {0, 1}}, "b": {T: {2, 3, 4}}}


def test_of_those_that_have_too_many_the_last_go():
    found = assign_uniform(group_of({T: 3, U: 3}, {"a": ({T, U}, {T: {0, 1, 2}, U: {0, 1, 2}}, None), "b": {T, U}}))
    assert plain(found) == {"a": {T: {0, 1, 2}}, "b": {U: {0, 1, 2}}}


def test_what_a_member_has_of_other_topics_counts():
    found = assign_uniform(group_of({T: 3, U: 3}, {"a": {T}, "b": {T, U}}))
    assert plain(found) == {"a": {T: {0, 1, 2}}, "b": {U: {0, 1, 2}}}


def test_of_the_richest_the_last_partition_goes_to_the_poorest():
    targets = {"a": {T: {0, 1, 2, 3}}, "b": {U: {0}}, "c": {}}
    members = {"a": ({T, U}, targets["a"], None), "b": ({U, V}, targets["b"], None), "c": ({T}, targets["c"], None)}
    found = assign_uniform(group_of({T: 4, U: 1, V: 1}, members))
    assert plain(found) == {"a": {T: {0, 1}}, "b": {U: {0}, V: {0}}, "c": {T: {2, 3}}}
