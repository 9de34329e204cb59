"""librdkafka's consumer groups and what its admin client says of groups, by way of confluent-kafka, over real sockets."""

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.groups.behaviour import FencedBehaviour, GroupBehaviour, pytest_generate_tests  # noqa: F401  found here


class TestLibrdkafka(FencedBehaviour, GroupBehaviour):
    make = "librdkafka"
    assignors = ("range", "roundrobin", "cooperative-sticky")


@pytest.fixture
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.address, "log_level": 0})


@pytest.fixture
def left_group(group):
    """A group that has processed ten records of each partition, committed that, and has no members any more."""
    group.fill(10)
    member = group.member("librdkafka", "left")
    group.wait_until_processed()
    member.stop()
    group.observer.wait_until_state(group.group_id, "Empty")
    return group


def only(futures):
    """The result of a request's one future, or the code of its error."""
    (future,) = futures.values()
    try:
        return future.result(CLIENT_TIMEOUT_S)
    except KafkaException as error:
        return error.args[0].code()


def committed(admin, group):
    """Offsets by partition, as ListConsumerGroupOffsets has them."""
    listed = only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group.group_id)]))
    return {each.partition: each.offset for each in listed.topic_partitions}


def alter(admin, group, offsets):
    """The offsets by partition after an alteration, or the codes of the errors."""
    asked = [TopicPartition(group.topic, partition, offset) for partition, offset in offsets.items()]
    altered = only(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group.group_id, asked)]))
    if isinstance(altered, int):
        return altered
    return {each.partition: each.error.code() if each.error else each.offset for each in altered.topic_partitions}


def test_a_groups_members_and_what_they_are_assigned_are_described(admin, group):
    group.member("librdkafka", "a")
    group.member("librdkafka", "b", instance_id="static-b")
    group.settle("a", "b")
    described = only(admin.describe_consumer_groups([group.group_id], include_authorized_operations=True))
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    assert (described.coordinator.id, described.is_simple_consumer_group) == (1, False)
    assert described.authorized_operations
    members = {member.client_id: member for member in described.members}
    assert {name: (each.host, each.group_instance_id) for name, each in members.items()} == {
        "a": ("/127.0.0.1", None),
        "b": ("/127.0.0.1", "static-b"),
    }
    assert {
        name: {(each.topic, each.partition) for each in member.assignment.topic_partitions} for name, member in members.items()
    } == {name: {(group.topic, index) for index in group.journal.holdings[name].partitions} for name in "ab"}


def test_a_group_that_nobody_has_heard_of_is_dead(admin):
    assert only(admin.describe_consumer_groups(["never-there"])).state == ConsumerGroupState.DEAD


def test_groups_are_listed_by_state_and_by_type(admin, group, left_group):
    other = type(group)(group.broker, group.topic, 4, group._stack)
    other.ends = group.ends
    other.member("librdkafka", "stays")
    other.wait_until_shared("stays")

    def listed(**filters):
        result = admin.list_consumer_groups(**filters).result(CLIENT_TIMEOUT_S)
        assert result.errors == []
        mine = {group.group_id, other.group_id}
        return {each.group_id: each.state for each in result.valid if each.group_id in mine}

    empty, stable = ConsumerGroupState.EMPTY, ConsumerGroupState.STABLE
    assert listed() == {group.group_id: empty, other.group_id: stable}
    assert listed(states={stable}) == {other.group_id: stable}
    assert listed(types={ConsumerGroupType.CLASSIC}) == {group.group_id: empty, other.group_id: stable}
    assert listed(types={ConsumerGroupType.CONSUMER}) == {}


def test_committed_offsets_are_listed_and_altered(admin, left_group):
    assert committed(admin, left_group) == dict.fromkeys(range(4), 10)
    assert alter(admin, left_group, {0: 3, 2: 0}) == {0: 3, 2: 0}
    assert committed(admin, left_group) == {0: 3, 1: 10, 2: 0, 3: 10}
    left_group.journal.granted.clear()
    left_group.member("librdkafka", "again")
    left_group.journal.wait_for(lambda: left_group.journal.processed_by["again"] == 17, "7 and 10 records processed again")


def test_offsets_of_a_group_with_members_are_not_altered(admin, group):
    group.member("librdkafka", "a")
    group.settle("a")
    assert alter(admin, group, {0: 0}) == {0: KafkaError.UNKNOWN_MEMBER_ID}


def test_a_group_is_deleted_with_its_offsets_when_its_members_are_gone(admin, left_group):
    left_group.journal.granted.clear()
    assert only(admin.delete_consumer_groups([left_group.group_id])) is None
    assert committed(admin, left_group) == {}
    assert only(admin.delete_consumer_groups([left_group.group_id])) == KafkaError.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted(admin, group):
    group.member("librdkafka", "a")
    group.settle("a")
    assert only(admin.delete_consumer_groups([group.group_id])) == KafkaError.NON_EMPTY_GROUP


def test_a_consumer_that_assigns_itself_its_partitions_commits_and_resumes(broker, left_group):
    """Without a generation: a place for offsets is all it needs of a group. Metadata comes back as it was."""
    config = {"bootstrap.servers": broker.address, "group.id": left_group.group_id, "enable.auto.commit": False}
    consumer = Consumer(config)
    place = TopicPartition(left_group.topic, 1, 10, metadata="half-way")
    consumer.commit(offsets=[place], asynchronous=False)
    (found,) = consumer.committed([TopicPartition(left_group.topic, 1)], CLIENT_TIMEOUT_S)
    consumer.close()
    assert (found.offset, found.metadata) == (10, "half-way")


def test_a_commit_with_too_much_metadata_is_refused(broker, new_topic, new_name):
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": new_name(), "enable.auto.commit": False})
    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=[TopicPartition(new_topic(), 0, 1, metadata="x" * 4097)], asynchronous=False)
    consumer.close()
    assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
