"""librdkafka's consumers go from the classic protocol to the consumer protocol (KIP-848) and back, one by one, as they read."""

import time
from itertools import chain

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.conftest import CLIENT_TIMEOUT_S

SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
}
PARTITIONS = 6
MEMBERS = 3
CLASSIC = {"group.protocol": "classic", "heartbeat.interval.ms": 100, "session.timeout.ms": 6_000}
# What a commit is told that crosses a rebalance.
CROSSING = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.STALE_MEMBER_EPOCH}
NEXT = {"group.protocol": "consumer"}


class Member:
    """A consumer that commits what it has read: as it reads, and at the latest when a partition is taken away from it.

    A commit that crosses a JoinGroup is of a generation that is over. Then the member still has the partition, and commits again.
    """

    def __init__(self, broker, config):
        settings = {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
        self.consumer = Consumer({**settings, "enable.auto.commit": False, **config})
        self.uncommitted = {}
        self.consumer.subscribe(["t"], on_revoke=lambda *_: self.commit())

    def poll(self):
        message = self.consumer.poll(0.01)
        read = message is not None and message.error() is None
        if read:
            self.uncommitted[message.partition()] = message.offset() + 1
        self.commit()
        return [int(message.value())] if read else []

    def commit(self):
        offsets = [TopicPartition("t", partition, offset) for partition, offset in self.uncommitted.items()]
        if offsets:
            try:
                self.consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in CROSSING:
                    raise
            else:
                self.uncommitted.clear()

    def held(self):
        return [each.partition for each in self.consumer.assignment()]


class Rolling:
    """Members that are polled in turn while records are written."""

    def __init__(self, broker):
        self._broker = broker
        self._producer = Producer({"bootstrap.servers": broker.address})
        self.members = []
        self.read = []
        self.written = 0

    def add(self, config):
        self.members.append(Member(self._broker, config))

    def drop_first(self):
        self.members.pop(0).consumer.close()

    def poll_until(self, condition, *, writes=True):
        deadline = time.monotonic() + CLIENT_TIMEOUT_S
        while not condition() or any(member.uncommitted for member in self.members):
            assert time.monotonic() < deadline, [sorted(member.held()) for member in self.members]
            if writes:
                self._producer.produce("t", b"%d" % self.written, partition=self.written % PARTITIONS)
                self.written += 1
            self._producer.poll(0)
            for member in self.members:
                self.read += member.poll()

    def is_shared_out(self):
        held = [member.held() for member in self.members]
        return all(held) and sorted(chain(*held)) == list(range(PARTITIONS))

    def roll_to(self, config):
        """Replace the members one by one, each new one before an old one goes."""
        for _ in range(MEMBERS):
            self.add(config)
            self.poll_until(self.is_shared_out)
            self.drop_first()
            self.poll_until(self.is_shared_out)

    def finish(self):
        assert self._producer.flush(CLIENT_TIMEOUT_S) == 0
        self.poll_until(lambda: len(self.read) >= self.written, writes=False)


@pytest.fixture
def broker(broker_process):
    broker = broker_process(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic("t", num_partitions=PARTITIONS, replication_factor=1)])["t"].result(CLIENT_TIMEOUT_S)
    return broker


@pytest.fixture
def rolling(broker):
    rolling = Rolling(broker)
    yield rolling
    for member in rolling.members:
        member.consumer.close()


def kind(broker):
    admin = AdminClient({"bootstrap.servers": broker.address})
    (group,) = admin.list_consumer_groups().result(CLIENT_TIMEOUT_S).valid
    return group.type


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_rolls_over_and_back_and_every_record_is_read_once(broker, rolling, strategy):
    classic = {**CLASSIC, "partition.assignment.strategy": strategy}
    for _ in range(MEMBERS):
        rolling.add(classic)
    rolling.poll_until(rolling.is_shared_out, writes=False)
    # A partition that has no committed offset yet may be read by librdkafka from its start a second time, half a second later.
    rolling.poll_until(lambda: len(rolling.read) > 2 * PARTITIONS)
    rolling.finish()
    assert kind(broker) == ConsumerGroupType.CLASSIC

    rolling.roll_to(NEXT)
    assert kind(broker) == ConsumerGroupType.CONSUMER

    rolling.roll_to(classic)
    assert kind(broker) == ConsumerGroupType.CLASSIC

    rolling.finish()
    assert sorted(rolling.read) == list(range(rolling.written))
    assert rolling.written >= 2 * 2 * MEMBERS
    committed = rolling.members[0].consumer.committed(
        [TopicPartition("t", index) for index in range(PARTITIONS)], CLIENT_TIMEOUT_S
    )
    assert sum(each.offset for each in committed) == rolling.written
