"""kafka-python's consumer groups and what its admin client says of groups, over real sockets."""

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove, OffsetSpec
from kafka.errors import GroupSubscribedToTopicError, NoError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata

from tests.clients.groups.behaviour import FencedBehaviour, GroupBehaviour, pytest_generate_tests  # noqa: F401  found here


class TestKafkaPython(FencedBehaviour, GroupBehaviour):
    make = "kafka-python"
    assignors = ("range", "roundrobin", "sticky", "cooperative-sticky")


@pytest.fixture
def admin(broker):
    client = KafkaAdminClient(bootstrap_servers=broker.address)
    yield client
    client.close()


@pytest.fixture
def left_group(group):
    """A group that has processed ten records of each partition, committed that, and has no members any more."""
    group.fill(10)
    member = group.member("kafka-python", "left")
    group.wait_until_processed()
    member.stop()
    group.observer.wait_until_state(group.group_id, "Empty")
    return group


def offsets(admin, group):
    found = admin.list_group_offsets(group.group_id)[group.group_id]
    return {place.partition: each.offset for place, each in found.items()}


def test_a_groups_members_are_described(admin, group):
    group.member("kafka-python", "a")
    group.member("kafka-python", "b", instance_id="static-b")
    group.settle("a", "b")
    described = admin.describe_groups([group.group_id])[group.group_id]
    assert (described["group_state"], described["protocol_type"], described["protocol_data"]) == ("Stable", "consumer", "range")
    assert {member["client_id"]: member["group_instance_id"] for member in described["members"]} == {"a": None, "b": "static-b"}
    assert {member["member_id"] for member in described["members"]} == {group.journal.member_id(name) for name in "ab"}


def test_groups_are_listed_by_state(admin, left_group):
    def listed(**filters):
        return [each for each in admin.list_groups(**filters) if each["group_id"] == left_group.group_id]

    (found,) = listed(states_filter=["Empty"])
    assert (found["group_state"], found["group_type"], found["protocol_type"]) == ("Empty", "classic", "consumer")
    assert listed(states_filter=["Stable"]) == []
    assert listed(types_filter=["classic"]) == [found]


def test_offsets_are_listed_altered_and_reset(admin, left_group):
    places = [TopicPartition(left_group.topic, partition) for partition in range(4)]
    assert offsets(admin, left_group) == dict.fromkeys(range(4), 10)
    altered = admin.alter_group_offsets(left_group.group_id, {places[0]: OffsetAndMetadata(3, "back", -1)})
    assert altered == {places[0]: NoError}
    reset = admin.reset_group_offsets(left_group.group_id, {places[1]: OffsetSpec.EARLIEST, places[2]: 99})
    assert {place.partition: (each["error"], each["offset"]) for place, each in reset.items()} == {
        1: (NoError, 0),
        2: (NoError, 10),
    }
    assert offsets(admin, left_group) == {0: 3, 1: 0, 2: 10, 3: 10}
    left_group.journal.granted.clear()


def test_offsets_of_a_group_with_members_are_not_altered(admin, group):
    group.member("kafka-python", "a")
    group.settle("a")
    place = TopicPartition(group.topic, 0)
    assert admin.alter_group_offsets(group.group_id, {place: OffsetAndMetadata(0, "", -1)}) == {place: UnknownMemberIdError}


def test_offsets_are_deleted_where_nobody_subscribes_to_the_topic(admin, left_group):
    place, stays = TopicPartition(left_group.topic, 0), {1: 10, 2: 10, 3: 10}
    assert admin.delete_group_offsets(left_group.group_id, [place]) == {place: NoError}
    assert offsets(admin, left_group) == stays
    left_group.journal.granted.clear()


def test_offsets_of_a_topic_that_is_subscribed_to_are_not_deleted(admin, group):
    group.member("kafka-python", "a")
    group.settle("a")
    place = TopicPartition(group.topic, 0)
    assert admin.delete_group_offsets(group.group_id, [place]) == {place: GroupSubscribedToTopicError}


def test_a_group_is_deleted_when_its_members_are_gone(admin, left_group):
    left_group.journal.granted.clear()
    assert admin.delete_groups([left_group.group_id]) == {left_group.group_id: "OK"}
    assert offsets(admin, left_group) == {}
    assert admin.delete_groups([left_group.group_id]) == {left_group.group_id: "GroupIdNotFoundError"}


def test_a_group_with_members_is_not_deleted(admin, group):
    group.member("kafka-python", "a")
    group.settle("a")
    assert admin.delete_groups([group.group_id]) == {group.group_id: "NonEmptyGroupError"}


def test_a_static_member_is_removed_by_its_instance_id(admin, group):
    group.member("kafka-python", "stays")
    gone = group.member("kafka-python", "gone", instance_id="static")
    group.settle("stays", "gone")
    static = group.journal.member_id("gone")
    gone.stop()
    removed = MemberToRemove(group_instance_id="static", reason="out of order")
    assert set(admin.remove_group_members(group.group_id, [removed]).values()) == {NoError}
    group.fill(5)
    group.settle("stays")
    # The removal's own rebalance need not be the last: a member may join once more than it has to (docs/compatibility.md).
    (removal,) = [rebalance for rebalance in group.observer.rebalances(group.group_id) if rebalance["left"]]
    assert (removal["cause"], removal["left"]) == ("member_left", [static])
    assert "out of order" in removal["why"]


def test_a_commit_has_its_metadata_back(broker, left_group):
    """From a consumer that assigns itself its partition: all it needs of the group is a place for offsets."""
    consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id=left_group.group_id, enable_auto_commit=False)
    place = TopicPartition(left_group.topic, 1)
    consumer.assign([place])
    consumer.commit({place: OffsetAndMetadata(10, "half-way", -1)})
    found = consumer.committed(place, metadata=True)
    consumer.close()
    assert (found.offset, found.metadata) == (10, "half-way")
