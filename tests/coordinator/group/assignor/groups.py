"""Groups for assignors: made by hand, and drawn by hypothesis."""

from dataclasses import replace
from random import Random
from uuid import UUID

from hypothesis import strategies as st

from odradek.coordinator.group.assignor.spec import GroupSpec, MemberSubscription
from odradek.coordinator.group.consumer.topics import SubscribedTopic

T, U, V = (UUID(int=number) for number in (1, 2, 3))


def group_of(topics, members, *, is_homogeneous=None):
    """A group: partitions by topic; of each member the topics, or the topics, the targets, and the instance id."""
    subscriptions = {}
    for member_id, given in members.items():
        topic_ids, targets, instance_id = given if isinstance(given, tuple) else (given, {}, None)
        subscriptions[member_id] = MemberSubscription(
            topic_ids=frozenset(topic_ids),
            assignment={topic_id: frozenset(indexes) for topic_id, indexes in targets.items() if indexes},
            instance_id=instance_id,
        )
    alike = len({member.topic_ids for member in subscriptions.values()}) <= 1
    wanted = frozenset().union(*(member.topic_ids for member in subscriptions.values()))
    return GroupSpec(
        members=subscriptions,
        topics={
            topic_id: SubscribedTopic(topic_id, str(topic_id), count) for topic_id, count in topics.items() if topic_id in wanted
        },
        is_homogeneous=alike if is_homogeneous is None else is_homogeneous,
    )


def with_targets(group, assignment):
    """The group, which has been given the assignment."""
    members = {
        member_id: replace(
            member, assignment={each: frozenset(indexes) for each, indexes in assignment.get(member_id, {}).items()}
        )
        for member_id, member in group.members.items()
    }
    return replace(group, members=members)


@st.composite
def groups(draw, *, alike=None, consistent=True):
    """A group with targets. ``alike`` members subscribe to the same. Targets not ``consistent`` overlap and overreach."""
    drawn = Random(draw(st.integers(0, 2**32)))
    topics = {UUID(int=drawn.getrandbits(128)): draw(st.integers(1, 9)) for _ in range(draw(st.integers(1, 5)))}
    names = st.text("abz\u00e9\uffee\U0001f600", min_size=1, max_size=5)
    member_ids = draw(st.lists(names, min_size=1, max_size=9, unique=True))
    some = st.frozensets(st.sampled_from(sorted(topics)))
    is_alike = draw(st.booleans()) if alike is None else alike
    same = draw(some)
    members = {}
    targets = {member_id: {} for member_id in member_ids}
    for topic_id, count in topics.items():
        for index in range(count if consistent else count + 2):
            for _ in range(1 if consistent else drawn.randrange(1, 3)):
                member_id = drawn.choice([None, *member_ids])
                if member_id is not None:
                    targets[member_id].setdefault(topic_id, set()).add(index)
    for number, member_id in enumerate(member_ids):
        instance_id = f"i-{9 - number}" if drawn.random() < 0.5 else None
        members[member_id] = (same if is_alike else draw(some), targets[member_id], instance_id)
    return group_of(topics, members, is_homogeneous=is_alike)
