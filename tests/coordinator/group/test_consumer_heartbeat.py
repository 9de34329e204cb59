"""ConsumerGroupHeartbeat: the exact answer, then the exact records."""

import pytest

from odradek.coordinator.group.consumer.member import KEYS
from odradek.coordinator.group.consumer.topics import SubscribedTopic, group_hash, topic_hash
from odradek.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    OwnedPartitions,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions
from tests.coordinator.group.consumer_bed import ConsumerBed


@pytest.fixture
def bed():
    """A topic ``t`` of four partitions, and assignments that are never too early."""
    bed = ConsumerBed(assignment_interval_ms=0)
    bed.topic("t", 4)
    return bed


def join(bed, *members, **options):
    """Members that join one after the other, and come to their targets."""
    for member_id in members:
        bed.accepted(member_id, 0, **options)
    for _ in range(3):
        settle(bed, *members)
    bed.records()


def settle(bed, *members):
    """A heartbeat of each, which owns what it may have."""
    group = bed.group()
    for member_id in members:
        known = group.members[member_id]
        owned = {bed.topics.name_of(topic_id): sorted(indexes) for topic_id, indexes in known.assigned.items()}
        bed.accepted(member_id, known.member_epoch, owned={name: each for name, each in owned.items() if name is not None})


def assigned(bed, member_id):
    return {
        bed.topics.name_of(topic_id): sorted(indexes) for topic_id, indexes in bed.group().members[member_id].assigned.items()
    }


def epochs(bed):
    return bed.group().epoch.get(), bed.group().assignment_epoch


def test_the_first_member_gets_everything_in_one_answer(bed):
    topic_id = bed.topics.by_name["t"].topic_id

    assert bed.beat("m", 0) == ConsumerGroupHeartbeatResponse(
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=5_000,
        assignment=Assignment(topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=[0, 1, 2, 3])]),
    )
    assert [tuple(record) for record in bed.records()] == [
        (
            ConsumerGroupMemberMetadataKey("g", "m"),
            ConsumerGroupMemberMetadataValue(None, None, "c", "/127.0.0.1", ("t",), "", 60_000, None),
        ),
        (
            ConsumerGroupMetadataKey("g"),
            ConsumerGroupMetadataValue(2, group_hash([("t", topic_hash(SubscribedTopic(topic_id, "t", 4)))])),
        ),
        (ConsumerGroupTargetAssignmentMemberKey("g", "m"), ConsumerGroupTargetAssignmentMemberValue(((topic_id, (0, 1, 2, 3)),))),
        (ConsumerGroupTargetAssignmentMetadataKey("g"), ConsumerGroupTargetAssignmentMetadataValue(2, bed.clock.now_ms())),
        (
            ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
            ConsumerGroupCurrentMemberAssignmentValue(2, 0, 0, (OwnedPartitions(topic_id, (0, 1, 2, 3), (2, 2, 2, 2)),), ()),
        ),
    ]


def test_a_full_heartbeat_is_told_the_assignment(bed):
    join(bed, "m")
    full = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "owned": {"t": [0]}}
    assert bed.accepted("m", 2, **full) == (2, {"t": [0, 1, 2, 3]})
    assert bed.records() == []


def test_a_second_assignment_waits_for_its_interval(bed):
    bed.group_config = bed.group_config._replace(assignment_interval_ms=1_000)
    bed.accepted("a", 0)
    assert bed.accepted("b", 0) == (2, {})
    assert (epochs(bed), bed.group().state) == ((3, 2), "Assigning")
    bed.advance(1_000)
    assert bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]}) == (2, {"t": [0, 1]})
    assert epochs(bed) == (3, 3)


def test_a_lost_answer_is_given_again_to_the_previous_epoch(bed):
    join(bed, "a")
    bed.accepted("b", 0)
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    bed.accepted("a", 2, owned={"t": [0, 1]})
    bed.records()

    assert bed.accepted("a", 2, owned={"t": [0]}, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"]) == (3, {"t": [0, 1]})
    assert bed.records() == []
    assert bed.refused("a", 2, owned={"t": [0, 1, 2]}) == ErrorCode.FENCED_MEMBER_EPOCH
    assert bed.refused("a", 2) == ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("epoch", [1, 4])
def test_a_member_with_an_epoch_not_its_own_is_fenced(bed, epoch):
    join(bed, "a")
    assert bed.refused("a", epoch, owned={}) == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_known_member_may_come_with_epoch_0_again(bed):
    join(bed, "a")
    assert bed.accepted("a", 0) == (2, {"t": [0, 1, 2, 3]})
    assert bed.records() == []


def test_a_removed_member_is_unknown_and_may_join_again(bed):
    join(bed, "a", "b")
    bed.advance(45_000)
    assert bed.group().state == "Empty"
    assert bed.refused("a", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.accepted("a", 0) == (6, {"t": [0, 1, 2, 3]})


def test_a_member_that_leaves_is_removed_and_the_next_heartbeat_shares_its_partitions_out(bed):
    join(bed, "a", "b")
    assert bed.beat("b", -1) == ConsumerGroupHeartbeatResponse(member_id="b", member_epoch=-1)
    *removed, epoch = bed.records()
    assert removed == KEYS.member_tombstones("g", "b")
    assert (epoch.key, epoch.value.epoch) == (ConsumerGroupMetadataKey("g"), 4)
    assert bed.accepted("a", 3) == (4, {"t": [0, 1, 2, 3]})
    assert bed.refused("b", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_partitions_up_in_time_is_removed(bed):
    bed.accepted("a", 0, rebalance_timeout_ms=10_000)
    bed.accepted("b", 0)
    assert bed.accepted("a", 2) == (2, {"t": [0, 1]})
    bed.advance(9_999)
    assert set(bed.group().members) == {"a", "b"}
    bed.advance(1)
    assert set(bed.group().members) == {"b"}
    assert bed.accepted("b", 3) == (4, {"t": [0, 1, 2, 3]})


def test_a_member_whose_release_could_not_be_written_still_has_to_give_partitions_up_in_time(bed):
    bed.accepted("a", 0, rebalance_timeout_ms=10_000)
    bed.accepted("b", 0)
    assert bed.accepted("a", 2) == (2, {"t": [0, 1]})
    bed.log.failure = ErrorCode.NOT_COORDINATOR
    bed.refused("a", 2, owned={"t": [0, 1]})
    bed.log.failure = None
    bed.advance(10_000)
    assert set(bed.group().members) == {"b"}


def test_a_member_that_has_given_partitions_up_is_not_removed_when_its_time_is_over(bed):
    bed.accepted("a", 0, rebalance_timeout_ms=10_000)
    bed.accepted("b", 0)
    assert bed.accepted("a", 2) == (2, {"t": [0, 1]})
    bed.accepted("a", 2, owned={"t": [0, 1]})
    bed.advance(10_000)
    assert set(bed.group().members) == {"a", "b"}


def test_a_heartbeat_begins_the_session_anew(bed):
    join(bed, "a")
    for _ in range(3):
        bed.advance(44_000)
        assert bed.accepted("a", 2) == (2, None)
    bed.advance(45_000)
    assert bed.group().state == "Empty"


def test_a_member_that_comes_back_while_its_removal_waits_to_be_committed_has_a_session(bed):
    join(bed, "a")
    bed.log.held_back = True
    bed.advance(45_000)
    assert bed.beat("a", 0) is None
    bed.log.hold_back_no_more()
    assert "a" in bed.group().members
    bed.advance(45_000)
    assert bed.group().state == "Empty"


class TestStaticMembers:
    def test_its_former_self_is_fenced(self, bed):
        join(bed, "a", instance_id="i")
        bed.beat("a", -2, instance_id="i")
        bed.accepted("b", 0, instance_id="i")
        assert bed.refused("a", 2, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
        assert bed.refused("a", -2, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID

    def test_an_instance_id_that_is_in_use_is_not_given_away(self, bed):
        join(bed, "a", instance_id="i")
        assert bed.refused("b", 0, instance_id="i") == ErrorCode.UNRELEASED_INSTANCE_ID
        assert bed.refused("a", 0, instance_id="i") == ErrorCode.UNRELEASED_INSTANCE_ID
        assert bed.refused("a", 2, instance_id="j") == ErrorCode.UNKNOWN_MEMBER_ID

    def test_one_that_does_not_come_back_within_its_session_is_removed(self, bed):
        join(bed, "a", instance_id="i")
        bed.beat("a", -2, instance_id="i")
        bed.advance(45_000)
        assert (bed.group().state, dict(bed.group().static_members.items())) == ("Empty", {})

    def test_one_that_is_away_while_it_must_give_up_partitions_has_its_session_to_come_back(self, bed):
        bed.accepted("a", 0, instance_id="i", rebalance_timeout_ms=10_000)
        bed.accepted("b", 0)
        bed.accepted("a", 2, instance_id="i")
        bed.beat("a", -2, instance_id="i")
        bed.advance(44_000)
        assert "a" in bed.group().members
        bed.advance(1_000)
        assert "a" not in bed.group().members


class TestRefusals:
    @pytest.mark.parametrize(
        ("epoch", "fields"),
        [
            (0, {"group_id": ""}),
            (0, {"instance_id": ""}),
            (0, {"rack_id": " "}),
            (0, {"rebalance_timeout_ms": -1}),
            (0, {"owned": {"t": [0]}}),
            (0, {"subscribed_topic_names": None}),
            (-2, {}),
            (-3, {}),
        ],
    )
    def test_a_request_that_is_none(self, bed, epoch, fields):
        assert bed.refused("m", epoch, **fields) == ErrorCode.INVALID_REQUEST
        assert bed.records() == []

    @pytest.mark.parametrize(("version", "epoch"), [(1, 0), (0, 2), (0, -1)])
    def test_a_request_without_a_member_id(self, bed, version, epoch):
        assert bed.refused("", epoch, version=version) == ErrorCode.INVALID_REQUEST

    def test_in_version_0_the_coordinator_makes_the_member_id(self, bed):
        assert bed.beat("", 0, version=0).member_id == "id-1"
        assert list(bed.group().members) == ["id-1"]

    def test_an_assignor_that_is_not_there(self, bed):
        assert bed.refused("m", 0, server_assignor="mine") == ErrorCode.UNSUPPORTED_ASSIGNOR

    def test_a_group_that_is_not_there(self, bed):
        assert bed.refused("m", 1) == ErrorCode.GROUP_ID_NOT_FOUND
        assert bed.refused("m", -1) == ErrorCode.GROUP_ID_NOT_FOUND

    def test_a_full_group(self, bed):
        join(bed, "a")
        bed.group_config = bed.group_config._replace(max_size=1)
        assert bed.refused("b", 0) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert bed.refused("b", 0, instance_id="i") == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert bed.accepted("a", 2) == (2, None)

    def test_a_static_member_that_is_back_finds_room_in_a_full_group(self, bed):
        join(bed, "a", instance_id="i")
        bed.beat("a", -2, instance_id="i")
        bed.group_config = bed.group_config._replace(max_size=1)
        assert bed.accepted("b", 0, instance_id="i")[0] == 2

    def test_a_classic_group_with_members(self, bed):
        bed.add_member("c")
        assert bed.refused("m", 0) == ErrorCode.GROUP_ID_NOT_FOUND
        assert bed.refused("m", 2) == ErrorCode.GROUP_ID_NOT_FOUND


class TestTopics:
    def test_partitions_that_are_added_are_shared_out_by_the_next_heartbeat(self, bed):
        join(bed, "a")
        bed.topic("t", 6)
        assert bed.accepted("a", 2) == (3, {"t": [0, 1, 2, 3, 4, 5]})

    def test_a_topic_that_appears_is_assigned(self, bed):
        bed.accepted("a", 0, subscribed_topic_names=["t", "u"])
        bed.topic("u", 1)
        assert bed.accepted("a", 2) == (3, {"t": [0, 1, 2, 3], "u": [0]})

    def test_a_topic_that_goes_is_revoked_and_forgotten(self, bed):
        join(bed, "a")
        bed.drop_topic("t")
        assert bed.accepted("a", 2) == (2, {})
        assert bed.accepted("a", 2, owned={}) == (3, None)
        assert bed.group().state == "Stable"

    def test_a_topic_made_anew_is_another(self, bed):
        join(bed, "a")
        old = bed.topics.by_name["t"].topic_id
        bed.drop_topic("t")
        new = bed.topic("t", 1)
        assert bed.accepted("a", 2, owned={}) == (3, {"t": [0]})
        assert list(bed.group().members["a"].assigned) == [new] != [old]

    def test_another_topic_changes_nothing(self, bed):
        join(bed, "a")
        bed.topic("v", 3)
        assert (bed.accepted("a", 2), bed.records()) == ((2, None), [])

    def test_another_subscription_takes_the_topics_away_at_once(self, bed):
        join(bed, "a")
        bed.topic("u", 1)
        bed.group_config = bed.group_config._replace(assignment_interval_ms=60_000)
        assert bed.accepted("a", 2, subscribed_topic_names=["u"], owned={"t": [0, 1, 2, 3]}) == (2, {})
        assert bed.group().state == "Assigning"


class TestRegularExpressions:
    def test_one_is_resolved_beside_the_loop_and_its_topics_are_assigned_after_that(self, bed):
        bed.topic("tea", 1)
        bed.holds_back = True
        assert bed.accepted("a", 0, subscribed_topic_regex="t.*") == (1, {})
        bed.run_what_is_beside()
        assert bed.group().regexes["t.*"].topics == ("t", "tea")
        assert bed.accepted("a", 1) == (2, {"t": [0, 1, 2, 3], "tea": [0]})

    def test_an_invalid_one_is_refused(self, bed):
        assert bed.refused("a", 0, subscribed_topic_regex="(") == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert bed.records() == []

    def test_it_goes_with_its_last_member(self, bed):
        bed.accepted("a", 0, subscribed_topic_regex="t.*")
        bed.accepted("b", 0, subscribed_topic_regex="t.*")
        bed.beat("a", -1)
        assert list(bed.group().regexes) == ["t.*"]
        bed.beat("b", -1)
        assert list(bed.group().regexes) == []

    def test_a_member_that_takes_another_expression_has_its_topics(self, bed):
        bed.topic("u", 1)
        bed.accepted("a", 0, subscribed_topic_regex="t")
        bed.accepted("a", 1)
        bed.advance(10_001)
        bed.beat("a", 2, subscribed_topic_regex="u", owned={"t": [0, 1, 2, 3]})
        assert list(bed.group().regexes) == ["u"]
        settle(bed, "a")
        settle(bed, "a")
        assert assigned(bed, "a") == {"u": [0]}


class TestPersistence:
    def test_a_restart_finds_the_group_as_it_was(self, bed):
        join(bed, "a")
        bed.accepted("b", 0)
        bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
        before = state(bed)
        bed.restart()
        assert state(bed) == before
        assert bed.accepted("a", 2, owned={"t": [0, 1]}) == (3, None)
        assert bed.accepted("b", 3) == (3, {"t": [2, 3]})

    def test_sessions_and_revocations_begin_anew_with_a_restart(self, bed):
        bed.accepted("a", 0, rebalance_timeout_ms=10_000)
        bed.accepted("b", 0)
        bed.accepted("a", 2)
        bed.restart()
        bed.advance(10_000)
        assert set(bed.group().members) == {"b"}
        bed.advance(35_000)
        assert bed.group().state == "Empty"

    def test_a_failed_append_takes_everything_back(self, bed):
        join(bed, "a")
        before = state(bed)
        bed.log.failures.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        assert bed.beat("b", 0).code
        assert state(bed) == before
        assert bed.accepted("b", 0) == (3, {})

    def test_a_removal_that_could_not_be_appended_is_tried_again(self, bed):
        join(bed, "a")
        bed.log.failures.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        bed.advance(45_000)
        assert list(bed.group().members) == ["a"]
        bed.advance(500)
        assert bed.group().state == "Empty"

    def test_a_deleted_group_is_gone(self, bed):
        join(bed, "a")
        bed.beat("a", -1)
        answers = []
        reply = bed.runtime.write(0, lambda shard: shard.delete_group("g"))
        reply.when_done(answers.append)
        bed.turn()
        assert answers[0].error_code == ErrorCode.NONE
        bed.restart()
        assert bed.group() is None
        assert bed.accepted("a", 0)[0] == 2


class TestOtherKinds:
    def test_an_empty_classic_group_makes_way(self, bed):
        (member_id,) = bed.stable("c")
        bed.leave((member_id, None, None))
        assert bed.group().group_type == "classic"
        assert bed.accepted("a", 0) == (2, {"t": [0, 1, 2, 3]})
        assert bed.group().group_type == "consumer"
        bed.restart()
        assert bed.group().group_type == "consumer"

    def test_an_empty_consumer_group_makes_way(self, bed):
        join(bed, "a")
        bed.beat("a", -1)
        bed.add_member("c")
        assert bed.group().group_type == "classic"
        bed.restart()
        assert bed.group().group_type == "classic"

    def test_a_consumer_group_with_members_takes_no_classic_member_in(self, bed):
        join(bed, "a")
        for member_id in ("", "a"):
            assert bed.join(member_id).response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert bed.sync("a").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert bed.heartbeat("a") == ErrorCode.UNKNOWN_MEMBER_ID


def state(bed):
    group = bed.group()
    return (
        epochs(bed),
        group.metadata_hash.get(),
        dict(group.members.items()),
        dict(group.targets.items()),
        dict(group.holders.items()),
        dict(group.name_counts.items()),
    )
