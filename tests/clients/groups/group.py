"""A group under test: its members, what they saw, what an observer sees, and what must hold of it whatever happened."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from tests.clients.groups.journal import Journal
from tests.clients.groups.member_process import MemberProcess
from tests.clients.groups.members import EVERY_MAKE, Member, Membership
from tests.clients.groups.observer import Observer, fill, wait_until

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tests.broker_process import BrokerProcess

_group_numbers = count()


class Group:
    """One group on one topic: its members, what they saw, and what an observer sees.

    ``partitions`` of the topic; ``ends`` is how many records each has.
    """

    def __init__(self, broker: BrokerProcess, topic: str, partitions: int, stack: ExitStack) -> None:
        self.group_id = f"group-{next(_group_numbers)}"
        self.broker = broker
        self.topic = topic
        self.partitions = partitions
        self.journal = Journal()
        self.observer = Observer(broker)
        self.ends = dict.fromkeys(range(partitions), 0)
        self._stack = stack
        self._members: list[Member] = []

    def member(self, make: str, name: str, **membership: Any) -> Member:
        """A member in a thread of this process, started."""
        told = Membership(group_id=self.group_id, topic=self.topic, **membership)
        member = EVERY_MAKE[make](name, self.broker.address, told, self.journal).start()
        self._stack.callback(member.stop)
        self._members.append(member)
        return member

    def begin_to_stop(self) -> None:
        """Have all members stop; whoever made the group waits for it."""
        for member in self._members:
            member.begin_to_stop()

    def process(self, make: str, name: str, **membership: Any) -> MemberProcess:
        """A member in a process of its own, started."""
        told = Membership(group_id=self.group_id, topic=self.topic, **membership)
        process = MemberProcess(make, name, self.broker.address, told, self.journal).start()
        self._stack.callback(process.stop)
        return process

    def fill(self, per_partition: int) -> None:
        """Produce that many more records to each partition."""
        fill(self.broker, self.topic, per_partition, self.partitions)
        self.ends = {partition: end + per_partition for partition, end in self.ends.items()}

    def wait_until_shared(self, *names: str) -> None:
        """Until these members share the partitions and the broker takes the group for stable."""
        self.journal.wait_until_shared(*names, partitions=self.partitions)
        self.observer.wait_until_state(self.group_id, "Stable")

    def settle(self, *names: str) -> None:
        """Until they share the partitions, and go on as they do: a client may want one more rebalance when it has metadata."""
        self.wait_until_shared(*names)
        self.fill(1)
        self.wait_until_processed()
        self.wait_until_shared(*names)

    def wait_until_processed(self) -> None:
        self.journal.wait_until_processed(self.ends)

    def wait_until_processed_by(self, name: str) -> None:
        """Until everything is processed and the member has all partitions; one that stalls may believe it still has its own."""
        everything = set(range(self.partitions))
        self.journal.wait_for(lambda: self.journal.holdings[name].partitions == everything, f"{name} holds {everything}")
        self.wait_until_processed()

    def wait_until_committed(self, offsets: dict[tuple[str, int], int]) -> None:
        """Until the broker has exactly these offsets of the group."""
        wait_until(lambda: self.observer.committed(self.group_id) == offsets, f"{offsets} committed by {self.group_id}")

    def wait_until_member_id_is_not(self, name: str, former_id: str) -> None:
        """Until the member goes by another id, and holds something."""
        what = f"{name} goes by another member id than {former_id}"
        self.journal.wait_for(lambda: self.journal.member_id(name) != former_id, what)

    def causes(self) -> list[str]:
        """Why the group has rebalanced, one after the other."""
        return [rebalance["cause"] for rebalance in self.observer.rebalances(self.group_id)]

    def generation(self) -> int:
        return self.observer.generation(self.group_id)

    def check(self) -> None:
        """What must hold of every group, whatever happened to it."""
        twice = self.journal.owned_twice()
        assert not twice, f"owned twice: {twice}; {self.journal}"
        assert self.journal.failures.keys() == self.journal.expected_failures
        assert self.journal.missing(self.ends) == {}
        committed = self.observer.committed(self.group_id)
        assert {
            partition: (granted, committed[self.topic, partition])
            for partition, granted in self.journal.granted.items()
            if committed[self.topic, partition] < granted
        } == {}
