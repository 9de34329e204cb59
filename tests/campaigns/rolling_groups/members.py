"""librdkafka's consumers, of either protocol, that commit what they have processed before they give a partition up.

What the members of a group had and did, as they tell it themselves, and what of it must not be.

lost       a record that was written, and that no member processed
doubled    a record that was processed twice
two owners a partition that was assigned to a member before another had given it up
"""

from collections import Counter
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition


class Books:
    """Of one group. Each number written is one record; members are told apart by name."""

    def __init__(self) -> None:
        self.owners: dict[int, str] = {}
        self.processed: Counter[int] = Counter()
        self.two_owners: list[str] = []
        self.assignments = 0

    def assigned(self, member: str, partitions: list[int]) -> None:
        """A member has these partitions from now on."""
        for partition in partitions:
            self.assignments += 1
            owner = self.owners.get(partition)
            if owner not in (None, member):
                self.two_owners.append(f"partition {partition} is {member}'s, and {owner} has not given it up")
            self.owners[partition] = member

    def given_up(self, member: str, partitions: list[int]) -> None:
        """A member has committed what it processed of these partitions, and will read no more of them."""
        for partition in partitions:
            if self.owners.get(partition) == member:
                del self.owners[partition]

    def violations(self, written: int) -> list[str]:
        """All that must not be, once everything written had time to be processed."""
        lost = [number for number in range(written) if not self.processed[number]]
        doubled = [number for number, times in sorted(self.processed.items()) if times > 1]
        return [
            *(f"record {number} is lost" for number in lost),
            *(f"record {number} is doubled" for number in doubled),
            *self.two_owners,
        ]


GROUP = "g"
TOPIC = "t"
CONSUMER = {"group.protocol": "consumer"}
_CLASSIC = {"group.protocol": "classic", "heartbeat.interval.ms": 100, "session.timeout.ms": 6_000}
COOPERATIVE = "cooperative-sticky"
# What a commit is told that crosses a rebalance.
_CROSSING = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.STALE_MEMBER_EPOCH}


def classic(strategy: str) -> dict[str, object]:
    """The configs of a member of the classic protocol."""
    return {**_CLASSIC, "partition.assignment.strategy": strategy}


class Member:
    """A consumer that commits what it has read: as it reads, and at the latest when a partition is taken away from it.

    A commit that crosses a JoinGroup is of a generation that is over. Then the member still has the partition, and commits again.

    It assigns partitions itself. What the Python client does instead asks librdkafka for its rebalance protocol, and that
    may never be answered while a consumer closes.
    """

    def __init__(self, name: str, address: str, config: Mapping[str, object], books: Books) -> None:
        self.name = name
        self.uncommitted: dict[int, int] = {}
        self._is_committing = False
        self._failure: KafkaError | None = None
        self.held: set[int] = set()
        self._books = books
        self._is_incremental = (
            config["group.protocol"] == "consumer" or config.get("partition.assignment.strategy") == COOPERATIVE
        )
        settings = {"bootstrap.servers": address, "group.id": GROUP, "auto.offset.reset": "earliest"}
        own = {"enable.auto.commit": False, "on_commit": self._on_commit, "log_level": 0}
        self.consumer = Consumer({**settings, **own, **config})
        self.consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        indexes = [each.partition for each in partitions]
        if self._is_incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        self.held.update(indexes)
        self._books.assigned(self.name, indexes)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.commit()
        self._on_lost(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        indexes = [each.partition for each in partitions]
        self.held.difference_update(indexes)
        self.give_up(indexes)
        if self._is_incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def give_up(self, indexes: list[int]) -> None:
        """The partitions are not the member's any more."""
        self._books.given_up(self.name, indexes)

    def poll(self, timeout_s: float) -> bool:
        """Process one record and commit; false if there is none."""
        message = self.consumer.poll(timeout_s)
        is_read = message is not None and message.error() is None
        if message is not None and is_read:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            self.uncommitted[partition] = offset + 1
            self.process(int(value))
        self._commit_soon()
        if self._failure is not None:
            raise KafkaException(self._failure)
        return is_read

    def process(self, number: int) -> None:
        """Do with a record what it is there for."""
        self._books.processed[number] += 1

    def _commit_soon(self) -> None:
        """Commit what is processed, and go on: an answer may have to wait for that to a JoinGroup, and so for all members."""
        if self.uncommitted and not self._is_committing:
            self._is_committing = True
            self.consumer.commit(offsets=self._offsets(), asynchronous=True)

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        self._is_committing = False
        if error is None:
            for each in offsets:
                if self.uncommitted.get(each.partition) == each.offset:
                    del self.uncommitted[each.partition]
        elif error.code() not in _CROSSING:
            self._failure = error

    def commit(self) -> None:
        """Commit what is processed and not yet committed."""
        if self.uncommitted:
            try:
                self.consumer.commit(offsets=self._offsets(), asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in _CROSSING:
                    raise
            else:
                self.uncommitted.clear()

    def _offsets(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition, offset) for partition, offset in self.uncommitted.items()]
