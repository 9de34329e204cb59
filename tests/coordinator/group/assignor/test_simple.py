"""The ``simple`` assignor: every partition has members, the members have alike many, and nobody loses more than must be."""

from random import Random
from uuid import UUID

from odradek.coordinator.group.assignor.simple import assign_simple
from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.topics import SubscribedTopic

TOPICS = {UUID(int=place): SubscribedTopic(UUID(int=place), f"t{place}", count) for place, count in enumerate((3, 1, 5), 1)}


def spec(subscriptions, targets=None):
    targets = targets or {}
    members = {
        member_id: MemberSubscription(topic_ids=frozenset(topic_ids), assignment=targets.get(member_id, {}))
        for member_id, topic_ids in subscriptions.items()
    }
    return GroupSpec(members=members, topics=TOPICS, is_homogeneous=len(set(map(frozenset, subscriptions.values()))) == 1)


def all_partitions(topic_ids):
    return {topic_id: frozenset(range(TOPICS[topic_id].partition_count)) for topic_id in topic_ids}


def holders(given):
    found = {}
    for member_id, partitions in given.items():
        for topic_id, indexes in partitions.items():
            for index in indexes:
                found.setdefault((topic_id, index), set()).add(member_id)
    return found


def sizes(given):
    return sorted(sum(map(len, partitions.values())) for partitions in given.values())


def test_random_histories_of_groups_stay_balanced_and_complete():
    random = Random(41)
    for _ in range(200):
        targets = {}
        assignable = {}
        is_homogeneous = random.random() < 0.5
        shared = random.sample(sorted(TOPICS), random.randint(1, 3))
        for _ in range(6):
            names = random.sample("abcdefghij", random.randint(1, 10))
            subscriptions = {
                each: shared if is_homogeneous else random.sample(sorted(TOPICS), random.randint(1, 3)) for each in names
            }
            assignable = {
                topic_id: frozenset(index for index in indexes if random.random() < 0.8 or index in assignable.get(topic_id, ()))
                for topic_id, indexes in all_partitions(TOPICS).items()
            }
            given = assign_simple(spec(subscriptions, targets), assignable)
            assert given.keys() == subscriptions.keys()
            subscribed = {topic_id for topic_ids in subscriptions.values() for topic_id in topic_ids}
            expected = {(topic_id, index) for topic_id in subscribed for index in assignable[topic_id]}
            assert holders(given).keys() == expected
            for (topic_id, _), members in holders(given).items():
                assert all(topic_id in subscriptions[member_id] for member_id in members)
            if is_homogeneous:
                assert max(sizes(given)) - min(sizes(given)) <= 1
                sharing = -(-len(names) // len(expected)) if expected else 0
                assert all(len(members) <= sharing for members in holders(given).values())
            again = assign_simple(spec(subscriptions, given), assignable)
            assert again == given
            targets = given


def test_more_members_than_partitions_share_them():
    first = UUID(int=1)
    given = assign_simple(spec({each: [first] for each in "abcdefg"}), all_partitions([first]))
    assert sum(sizes(given)) == 9
    assert [len(members) for members in holders(given).values()] == [3, 3, 3]


def test_a_new_member_takes_over_only_its_share():
    topic_ids = [UUID(int=1), UUID(int=3)]
    before = assign_simple(spec(dict.fromkeys("ab", topic_ids)), all_partitions(topic_ids))
    after = assign_simple(spec(dict.fromkeys("abc", topic_ids), before), all_partitions(topic_ids))
    kept = sum(
        len(after[member].get(topic_id, set()) & before[member].get(topic_id, set())) for member in "ab" for topic_id in TOPICS
    )
    assert sizes(before) == [4, 4]
    assert (sizes(after), kept) == ([2, 3, 3], sum(sizes(after)) - sum(map(len, after["c"].values())))


def test_no_members_or_no_partitions_is_an_empty_assignment():
    assert assign_simple(spec({}), all_partitions(TOPICS)) == {}
    assert assign_simple(spec({"a": [UUID(int=1)]}), {}) == {"a": {}}
