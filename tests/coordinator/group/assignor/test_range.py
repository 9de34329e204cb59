"""``range``: the partitions of each topic in as many ranges as it has subscribers."""

from hypothesis import given

from odradek.coordinator.group.assignor.builtin import assign_range
from tests.coordinator.group.assignor.assignments import plain, sizes
from tests.coordinator.group.assignor.groups import T, U, group_of, groups


@given(groups())
def test_of_each_topic_a_member_has_a_range_as_long_as_others_or_one_longer(group):
    found = assign_range(group)
    for topic_id in group.topics:
        subscribers = [member_id for member_id, member in group.members.items() if topic_id in member.topic_ids]
        ranges = [sorted(found[member_id].get(topic_id, ())) for member_id in subscribers]
        lengths = [len(each) for each in ranges]
        assert max(lengths) - min(lengths) <= 1
        assert all(each == list(range(each[0], each[-1] + 1)) for each in ranges if each)


@given(groups(alike=True))
def test_partitions_of_the_same_index_meet_where_topics_have_as_many(group):
    found = assign_range(group)
    by_count = {}
    for topic_id, topic in group.topics.items():
        ranges = {member_id: frozenset(partitions.get(topic_id, ())) for member_id, partitions in found.items()}
        assert by_count.setdefault(topic.partition_count, ranges) == ranges


@given(groups())
def test_what_members_had_does_not_count(group):
    members = {member_id: (member.topic_ids, {}, member.instance_id) for member_id, member in group.members.items()}
    topics = {topic_id: topic.partition_count for topic_id, topic in group.topics.items()}
    fresh = group_of(topics, members, is_homogeneous=group.is_homogeneous)
    assert plain(assign_range(fresh)) == plain(assign_range(group))


def test_the_first_members_get_one_more():
    assert plain(assign_range(group_of({T: 5}, {"c": {T}, "a": {T}, "b": {T}}))) == {
        "a": {T: {0, 1}},
        "b": {T: {2, 3}},
        "c": {T: {4}},
    }


def test_the_last_members_get_nothing_where_there_are_few_partitions():
    group = group_of({T: 1, U: 2}, {"a": {T, U}, "b": {T, U}, "c": {T, U}})
    assert sizes(group, assign_range(group)) == {"a": 2, "b": 1, "c": 0}


def test_a_static_member_keeps_its_partitions_under_another_id():
    before = assign_range(group_of({T: 4}, {"x": ({T}, {}, "1"), "y": ({T}, {}, "2"), "a": {T}}))
    after = assign_range(group_of({T: 4}, {"z": ({T}, {}, "1"), "y": ({T}, {}, "2"), "a": {T}}))
    assert plain(before) == {"x": {T: {0, 1}}, "y": {T: {2}}, "a": {T: {3}}}
    assert plain(after) == {"z": {T: {0, 1}}, "y": {T: {2}}, "a": {T: {3}}}


def test_members_are_in_the_order_of_javas_strings():
    group = group_of({T: 2}, {"\uffee": {T}, "\U0001f600": {T}})
    assert plain(assign_range(group)) == {"\U0001f600": {T: {0}}, "\uffee": {T: {1}}}
