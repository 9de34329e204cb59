"""A group whose members are replaced one by one, under records that are written all the time."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.rolling_groups.members import CONSUMER, GROUP, TOPIC, Books, Member

# What the broker has to be started with: members are to learn of each other soon.
SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
}
_CLIENT_TIMEOUT_S = 15.0
_PATIENCE_S = 60.0
# One member waits for records while the others have a look.
_WAIT_S = 0.005

MakeMember = Callable[[str, str, Mapping[str, object], Books], Member]


class Rolling:
    """Members that are polled in turn while records are written, one a turn. ``make_member`` may make faulty ones."""

    def __init__(self, address: str, partitions: int, make_member: MakeMember = Member) -> None:
        self.books = Books()
        self.members: list[Member] = []
        self.written = 0
        self.read = 0
        self.replaced = 0
        self.partitions = partitions
        self._address = address
        self._make_member = make_member
        self._made = 0
        # They outlive the broker, and would tell of that.
        settings = {"bootstrap.servers": address, "log_level": 0}
        self._admin = AdminClient(settings)
        self._producer = Producer(settings)

    def __enter__(self) -> Self:
        topic = NewTopic(TOPIC, num_partitions=self.partitions, replication_factor=1)
        self._admin.create_topics([topic])[TOPIC].result(_CLIENT_TIMEOUT_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for member in self.members:
            member.consumer.close()

    def add(self, config: Mapping[str, object]) -> None:
        """One more member."""
        self._made += 1
        self.members.append(self._make_member(f"member {self._made}", self._address, config, self.books))

    def poll_until(self, condition: Callable[[], bool], *, writes: bool = True) -> None:
        """Raises TimeoutError if that does not come."""
        deadline = time.monotonic() + _PATIENCE_S
        while not condition() or any(member.uncommitted for member in self.members):
            if time.monotonic() > deadline:
                raise TimeoutError(str([sorted(member.held) for member in self.members]))
            if writes:
                self._producer.produce(TOPIC, b"%d" % self.written, partition=self.written % self.partitions)
                self.written += 1
            self._producer.poll(0)
            for place, member in enumerate(self.members):
                self.read += member.poll(0 if place else _WAIT_S)

    def is_shared_out(self) -> bool:
        """Whether every partition has an owner, and every member partitions."""
        held = [member.held for member in self.members]
        return all(held) and sum(map(len, held)) == self.partitions

    def is_at_rest(self) -> bool:
        """Whether it is shared out, and every member has come to the group's epoch.

        Where the group becomes a classic one, its generation is that epoch. A classic member that is behind is told
        ILLEGAL_GENERATION, by Kafka as well, and gives up what it has without a commit.
        """
        if not self.is_shared_out():
            return False
        described = self._admin.describe_consumer_groups([GROUP])[GROUP].result(_CLIENT_TIMEOUT_S)
        return bool(described.state == ConsumerGroupState.STABLE)

    def gather(self, count: int, config: Mapping[str, object]) -> None:
        """The first members, which have read from every partition when this returns.

        A partition that has no committed offset yet may be read by librdkafka from its start a second time, half a second later.
        """
        for _ in range(count):
            self.add(config)
        self.poll_until(self.is_shared_out, writes=False)
        self.poll_until(lambda: self.read > 2 * self.partitions)
        self.finish()

    def roll_to(self, config: Mapping[str, object]) -> None:
        """Replace the members one by one, each new one before an old one goes."""
        for _ in range(len(self.members)):
            self.add(config)
            self.poll_until(self.is_at_rest)
            self.members.pop(0).consumer.close()
            self.poll_until(self.is_shared_out)
            self.replaced += 1

    def finish(self) -> None:
        """Let all that is written be read."""
        if self._producer.flush(_CLIENT_TIMEOUT_S):
            raise TimeoutError("records are not acknowledged")
        self.poll_until(lambda: self.read >= self.written and self.committed() >= self.written, writes=False)

    def kind(self) -> ConsumerGroupType:
        """The type of the group."""
        (group,) = self._admin.list_consumer_groups().result(_CLIENT_TIMEOUT_S).valid
        found: ConsumerGroupType = group.type
        return found

    def committed(self) -> int:
        """The sum of the group's offsets."""
        partitions = [TopicPartition(TOPIC, index) for index in range(self.partitions)]
        return sum(each.offset for each in self.members[0].consumer.committed(partitions, _CLIENT_TIMEOUT_S))


def there_and_back(rolling: Rolling, members: int, classic: Mapping[str, object]) -> list[str]:
    """A classic group becomes a consumer group and a classic group again. What of it must not be."""
    rolling.gather(members, classic)
    kinds = [rolling.kind()]
    for config in (CONSUMER, classic):
        rolling.roll_to(config)
        kinds.append(rolling.kind())
    rolling.finish()
    found = rolling.books.violations(rolling.written)
    if kinds != [ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER, ConsumerGroupType.CLASSIC]:
        found.append(f"the group was {', '.join(kind.name for kind in kinds)}")
    if rolling.committed() != rolling.written:
        found.append(f"{rolling.committed()} is committed, of {rolling.written}")
    return found
