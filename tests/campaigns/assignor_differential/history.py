"""Histories of groups, drawn from a seed: members come, leave, come back under another id and subscribe anew; topics come, grow
and go. Each step is a group that needs an assignment, with that of the step before as its targets.

Topic ids are such that Java's hash table has them in their order: of the topics, Kafka's ``uniform`` iterates over such a table.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from uuid import UUID

from odradek.coordinator.group.assignor.builtin import assign_range, assign_uniform
from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec, MemberSubscription, by_id
from odradek.coordinator.group.consumer.topics import SubscribedTopic
from tests.campaigns.assignor_differential.kafkas import Name
from tests.coordinator.group.assignor.assignments import plain

ASSIGNORS = {"range": assign_range, "uniform": assign_uniform}
STEPS = 10
# As many as the smallest of Java's hash tables has places.
_MOST_TOPICS = 16
_WORD = 32
_WORD_MASK = (1 << _WORD) - 1


def ordered_ids(random: Random, count: int) -> list[UUID]:
    """Topic ids in their order, whose hash in Java is 0, 1, 2 and so on."""
    found = []
    for rank, drawn in enumerate(by_id(UUID(int=random.getrandbits(128)) for _ in range(count))):
        words = [drawn.int >> shift & _WORD_MASK for shift in (96, 64, 32)]
        found.append(UUID(int=drawn.int >> _WORD << _WORD | (words[0] ^ words[1] ^ words[2] ^ rank)))
    return found


class History:
    """A group over time. A ``scale`` of 1 is a small group."""

    def __init__(self, seed: int, scale: int = 1) -> None:
        self._random = random = Random(seed)
        self._scale = scale
        self._unused = ordered_ids(random, _MOST_TOPICS)
        random.shuffle(self._unused)
        self._topics: dict[UUID, SubscribedTopic] = {}
        self._members: dict[str, MemberSubscription] = {}
        # Whether all subscribe to the same.
        self._is_alike = random.random() < 0.5
        self._wanted: frozenset[UUID] = frozenset()
        self._name: Name = random.choice(("uniform", "uniform", "range"))

    def steps(self) -> Iterator[tuple[Name, GroupSpec]]:
        """The assignor and the group of each step."""
        random = self._random
        for _ in range(random.randrange(1, 6)):
            self._make_topic()
        self._subscribe()
        for _ in range(random.choice((1, 2, 3, 5, 8, 13, 40)) * self._scale):
            self._join()
        if random.random() < 0.3:
            self._scatter()
        for _ in range(STEPS):
            group = self._group()
            yield self._name, group
            self._adopt(ASSIGNORS[self._name](group))
            for _ in range(random.choice((1, 1, 1, 2, 4))):
                random.choice(
                    (self._join, self._join, self._leave, self._leave, self._come_back, self._make_topic, self._grow)
                    + ((self._subscribe, self._drop_topic, self._scatter, self._change) if random.random() < 0.4 else ())
                )()

    def _group(self) -> GroupSpec:
        topics = {topic_id: self._topics[topic_id] for member in self._members.values() for topic_id in member.topic_ids}
        subscriptions = {member.topic_ids for member in self._members.values()}
        # Names that do not exist make subscriptions different that come to the same topics.
        is_homogeneous = len(subscriptions) <= 1 and (self._is_alike or self._random.random() < 0.5)
        return GroupSpec(members=dict(self._members), topics=topics, is_homogeneous=is_homogeneous)

    def _adopt(self, assignment: GroupAssignment) -> None:
        given = plain(assignment)
        for member_id, member in self._members.items():
            self._members[member_id] = replace(member, assignment=given.get(member_id, {}))

    # ---------------------------------------------------------------------------------------------------------------- members

    def _join(self) -> None:
        instance_id = self._some_id() if self._random.random() < 0.3 else None
        if instance_id not in {member.instance_id for member in self._members.values()} - {None}:
            self._members[self._some_id()] = MemberSubscription(
                topic_ids=self._some_topics(), assignment={}, instance_id=instance_id
            )

    def _some_id(self) -> str:
        random = self._random
        if random.random() < 0.7:
            return str(UUID(int=random.getrandbits(128)))
        # In UTF-16 the last of these is before the one ahead of it.
        return "".join(random.choices("abz09_\u00e9\uffee\U0001f600", k=random.randrange(1, 12)))

    def _leave(self) -> None:
        if len(self._members) > 1:
            del self._members[self._random.choice(list(self._members))]

    def _come_back(self) -> None:
        """A static member, under another member id."""
        static = [member_id for member_id, member in self._members.items() if member.instance_id is not None]
        if static:
            self._members[self._some_id()] = self._members.pop(self._random.choice(static))

    def _scatter(self) -> None:
        """Targets that no assignor would give: each partition to anybody."""
        members = list(self._members)
        some = self._random.sample(members, self._random.randrange(1, len(members) + 1)) if members else []
        targets: dict[str, dict[UUID, set[int]]] = {member_id: {} for member_id in members}
        for topic_id, topic in self._topics.items():
            for index in range(topic.partition_count):
                if some and self._random.random() < 0.9:
                    targets[self._random.choice(some)].setdefault(topic_id, set()).add(index)
        self._adopt(targets)

    # ---------------------------------------------------------------------------------------------------------- subscriptions

    def _some_topics(self) -> frozenset[UUID]:
        if self._is_alike:
            return self._wanted
        known = list(self._topics)
        chosen = self._random.sample(known, self._random.randrange(len(known) + 1))
        return self._wanted if self._random.random() < 0.4 else frozenset(chosen)

    def _subscribe(self) -> None:
        """Many to other topics; all of them where they are alike."""
        known = list(self._topics)
        self._wanted = frozenset(self._random.sample(known, self._random.randrange(len(known) + 1)))
        for member_id, member in self._members.items():
            if self._is_alike or self._random.random() < 0.5:
                self._members[member_id] = replace(member, topic_ids=self._some_topics())

    def _change(self) -> None:
        """Become a group whose members are alike or not, or one of another assignor."""
        if self._random.random() < 0.5:
            self._name = self._random.choice(("uniform", "range"))
        else:
            self._is_alike = not self._is_alike
            self._subscribe()

    # ----------------------------------------------------------------------------------------------------------------- topics

    def _make_topic(self) -> None:
        if self._unused:
            count = self._random.choice((1, 1, 2, 3, 4, 6, 7, 12, 30)) * self._scale
            topic_id = self._unused.pop()
            self._topics[topic_id] = SubscribedTopic(topic_id, str(topic_id), count)
            if self._random.random() < 0.7:
                self._wanted |= {topic_id}
                for member_id, member in self._members.items():
                    if self._is_alike or self._random.random() < 0.5:
                        self._members[member_id] = replace(member, topic_ids=member.topic_ids | {topic_id})

    def _grow(self) -> None:
        if self._topics:
            topic_id = self._random.choice(list(self._topics))
            topic = self._topics[topic_id]
            self._topics[topic_id] = topic._replace(partition_count=topic.partition_count + self._random.randrange(1, 9))

    def _drop_topic(self) -> None:
        if len(self._topics) > 1:
            topic_id = self._random.choice(list(self._topics))
            del self._topics[topic_id]
            self._wanted -= {topic_id}
            for member_id, member in self._members.items():
                self._members[member_id] = replace(member, topic_ids=member.topic_ids - {topic_id})
