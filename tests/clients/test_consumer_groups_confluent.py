"""librdkafka's consumers of the consumer protocol (KIP-848)."""

import time

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.conftest import CLIENT_TIMEOUT_S

SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.session.timeout.ms": 2_000,
    "group.consumer.min.session.timeout.ms": 1_000,
}
PARTITIONS = 6


@pytest.fixture
def broker(broker_process):
    """A broker whose members' sessions are short, with a topic ``t``."""
    broker = broker_process(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic("t", num_partitions=PARTITIONS, replication_factor=1)])["t"].result(CLIENT_TIMEOUT_S)
    return broker


@pytest.fixture
def join(broker):
    """Makes members of the group ``g``, and closes them in the end."""
    members = []

    def make(*topics, **config):
        settings = {"bootstrap.servers": broker.address, "group.id": "g", "group.protocol": "consumer"}
        member = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False, **config})
        member.subscribe(list(topics) or ["t"])
        members.append(member)
        return member

    yield make
    for member in members:
        member.close()


def poll_until(members, condition):
    """The records that the members got by then."""
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    found = []
    while not condition():
        assert time.monotonic() < deadline, [sorted(each.partition for each in member.assignment()) for member in members]
        for member in members:
            message = member.poll(0.02)
            if message is not None:
                assert message.error() is None or not message.error().fatal(), message.error()
                found += [] if message.error() else [message.value()]
    return found


def is_shared_out(members, partitions=PARTITIONS):
    held = [each.partition for member in members for each in member.assignment()]
    return sorted(held) == list(range(partitions)) and all(member.assignment() for member in members)


def positions(members):
    return [each for member in members for each in member.position(member.assignment())]


def produce(broker, count):
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(count):
        producer.produce("t", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0


def test_members_share_partitions_out_and_read_every_record_once(broker, join):
    members = [join() for _ in range(3)]
    poll_until(members, lambda: is_shared_out(members))
    produce(broker, 60)
    found = poll_until(members, lambda: sum(max(0, each.offset) for each in positions(members)) == 60)
    assert sorted(found, key=int) == [b"%d" % number for number in range(60)]
    for member in members:
        member.commit(asynchronous=False)
    committed = members[0].committed([TopicPartition("t", index) for index in range(PARTITIONS)], CLIENT_TIMEOUT_S)
    assert [each.offset for each in committed] == [10] * PARTITIONS


def test_a_group_is_described_with_its_members(broker, join):
    members = [join() for _ in range(3)]
    admin = AdminClient({"bootstrap.servers": broker.address})

    def is_stable():
        group = admin.describe_consumer_groups(["g"])["g"].result(CLIENT_TIMEOUT_S)
        told = (group.type, group.state, len(group.members))
        return told == (ConsumerGroupType.CONSUMER, ConsumerGroupState.STABLE, 3)

    poll_until(members, is_stable)


def test_a_member_that_leaves_gives_its_partitions_to_the_others(join):
    members = [join() for _ in range(3)]
    poll_until(members, lambda: is_shared_out(members))
    members.pop().close()
    poll_until(members, lambda: is_shared_out(members))


def test_a_regular_expression_is_resolved_by_the_broker(join):
    member = join("^t.*")
    poll_until([member], lambda: is_shared_out([member]))


def test_members_go_on_after_the_broker_was_killed(broker, join):
    produce(broker, 6)
    members = [join() for _ in range(3)]
    found = poll_until(members, lambda: is_shared_out(members))
    broker.kill9()
    broker.start()
    produce(broker, 6)
    seen = list(found)
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while len(seen) < 12 and time.monotonic() < deadline:
        for member in members:
            message = member.poll(0.05)
            if message is not None:
                assert message.error() is None or not message.error().fatal(), message.error()
                seen += [] if message.error() else [message.value()]
    assert len(seen) == 12
    assert is_shared_out(members)
