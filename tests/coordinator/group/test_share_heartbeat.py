"""ShareGroupHeartbeat: the exact answer, then the exact records; sessions, topics that come and go, and reloads."""

import pytest

from odradek.coordinator.group.consumer.topics import SubscribedTopic, group_hash, topic_hash
from odradek.coordinator.group.share import offsets
from odradek.coordinator.group.share.member import KEYS
from odradek.coordinator.group.share.state_partitions import SharePartitionStates
from odradek.protocol.coordinator_records.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    SharePartitions,
    TopicPartitionsInfo,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.share_group_heartbeat import Assignment, ShareGroupHeartbeatResponse, TopicPartitions
from tests.coordinator.group.offsets_bed import DAY_MS
from tests.coordinator.group.share_bed import ShareBed


@pytest.fixture
def bed():
    """A topic ``t`` of two partitions, and assignments that are never too early."""
    bed = ShareBed(assignment_interval_ms=0)
    bed.topic("t", 2)
    return bed


def join(bed, *members, **options):
    """Members that join one after the other, and have their partitions."""
    for member_id in members:
        bed.granted(member_id, 0, **options)
    bed.initialize()
    for _ in range(2):
        for member_id in members:
            bed.granted(member_id, bed.share_group().members[member_id].member_epoch)
    bed.records()


def assigned(bed):
    group = bed.share_group()
    return {
        member_id: {bed.topics.name_of(topic_id): sorted(indexes) for topic_id, indexes in member.assigned.items()}
        for member_id, member in group.members.items()
    }


def snapshot(group):
    """Return the states without ``noted_ms``, which is the time of a replay."""
    return (
        group.epoch.get(),
        group.metadata_hash.get(),
        group.target_metadata.get(),
        dict(group.members.items()),
        dict(group.targets.items()),
        dict(group.name_counts.items()),
        group.states._replace(noted_ms=0),
    )


def test_the_first_heartbeat_asks_for_the_states_and_a_later_one_assigns_the_partitions(bed):
    topic_id = bed.topics.by_name["t"].topic_id
    metadata_hash = group_hash([("t", topic_hash(SubscribedTopic(topic_id, "t", 2)))])
    info = TopicPartitionsInfo(topic_id, "t", (0, 1))

    assert bed.beat_share("m", 0) == ShareGroupHeartbeatResponse(
        member_id="m", member_epoch=2, heartbeat_interval_ms=5_000, assignment=Assignment(topic_partitions=[])
    )
    assert [tuple(record) for record in bed.records()] == [
        (ShareGroupMemberMetadataKey("g", "m"), ShareGroupMemberMetadataValue(None, "c", "/127.0.0.1", ("t",))),
        (ShareGroupMetadataKey("g"), ShareGroupMetadataValue(2, metadata_hash)),
        (ShareGroupTargetAssignmentMemberKey("g", "m"), ShareGroupTargetAssignmentMemberValue(())),
        (ShareGroupTargetAssignmentMetadataKey("g"), ShareGroupTargetAssignmentMetadataValue(2, bed.clock.now_ms())),
        (ShareGroupCurrentMemberAssignmentKey("g", "m"), ShareGroupCurrentMemberAssignmentValue(2, 0, 0, ())),
        (ShareGroupStatePartitionMetadataKey("g"), ShareGroupStatePartitionMetadataValue((info,), (), ())),
    ]
    assert bed.states == [SharePartitionStates(2, {topic_id: {0: -1, 1: -1}})]
    assert bed.granted("m", 2) == (2, None)
    assert bed.records() == []

    bed.initialize()
    assert [tuple(record) for record in bed.records()] == [
        (ShareGroupStatePartitionMetadataKey("g"), ShareGroupStatePartitionMetadataValue((), (info,), ()))
    ]
    assert bed.beat_share("m", 2) == ShareGroupHeartbeatResponse(
        member_id="m",
        member_epoch=3,
        heartbeat_interval_ms=5_000,
        assignment=Assignment(topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=[0, 1])]),
    )
    partitions = (SharePartitions(topic_id, (0, 1)),)
    assert [tuple(record) for record in bed.records()] == [
        (ShareGroupMetadataKey("g"), ShareGroupMetadataValue(3, metadata_hash)),
        (ShareGroupTargetAssignmentMemberKey("g", "m"), ShareGroupTargetAssignmentMemberValue(partitions)),
        (ShareGroupTargetAssignmentMetadataKey("g"), ShareGroupTargetAssignmentMetadataValue(3, bed.clock.now_ms())),
        (ShareGroupCurrentMemberAssignmentKey("g", "m"), ShareGroupCurrentMemberAssignmentValue(3, 2, 0, partitions)),
    ]
    assert bed.granted("m", 3) == (3, None)
    assert bed.granted("m", 3, names=["t"]) == (3, {"t": [0, 1]})
    assert bed.records() == []


def test_epochs_not_a_members_own_are_fenced_and_the_last_one_is_answered_again(bed):
    join(bed, "m")
    epoch = bed.share_group().members["m"].member_epoch
    assert bed.granted("m", epoch - 1) == (epoch, None)
    assert bed.granted("m", 0) == (epoch, {"t": [0, 1]})
    assert [bed.denied("m", each) for each in (1, epoch + 1)] == [ErrorCode.FENCED_MEMBER_EPOCH] * 2


def test_malformed_heartbeats_and_unknown_groups_and_members_are_refused(bed):
    invalid = ErrorCode.INVALID_REQUEST
    assert bed.denied("", 0) == bed.denied("m", 0, group_id="") == bed.denied("m", 0, rack_id="") == invalid
    assert bed.denied("m", 0, names=[]) == bed.denied("m", -2) == invalid
    assert bed.denied("m", 1) == bed.denied("m", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    bed.accepted("c", 0, group_id="consumers")
    assert bed.denied("m", 0, group_id="consumers") == ErrorCode.GROUP_ID_NOT_FOUND
    join(bed, "m")
    assert bed.refused("c", 0, group_id="g") == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.denied("n", 3) == bed.denied("n", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    bed.share_config = bed.share_config._replace(max_size=1)
    assert bed.denied("n", 0) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bed.granted("m", 0)[1] == {"t": [0, 1]}


def test_members_share_partitions_and_each_has_one_at_least(bed):
    join(bed, "a", "b", "c")
    assert assigned(bed) == {"a": {"t": [0, 1]}, "b": {"t": [0]}, "c": {"t": [1]}}
    bed.beat_share("a", -1)
    for member_id in "bc":
        bed.granted(member_id, bed.share_group().members[member_id].member_epoch)
    assert assigned(bed) == {"b": {"t": [0]}, "c": {"t": [1]}}
    bed.beat_share("b", -1)
    assert bed.granted("c", bed.share_group().members["c"].member_epoch)[1] == {"t": [0, 1]}


def test_a_member_that_leaves_or_is_silent_is_removed(bed):
    join(bed, "a", "b")
    epoch = bed.share_group().epoch.get()
    assert bed.beat_share("b", -1) == ShareGroupHeartbeatResponse(member_id="b", member_epoch=-1)
    *removed, raised = bed.records()
    assert removed == KEYS.member_tombstones("g", "b")
    assert (raised.key, raised.value.epoch) == (ShareGroupMetadataKey("g"), epoch + 1)

    bed.advance(44_000)
    bed.granted("a", bed.share_group().members["a"].member_epoch)
    bed.advance(44_000)
    assert bed.share_group().state == "Stable"
    bed.advance(1_000)
    assert (bed.share_group().state, bed.shard.share.sessions_expired) == ("Empty", 1)


def test_an_empty_group_stays_for_its_progress_is_with_the_share_coordinator(bed):
    join(bed, "a")
    bed.beat_share("a", -1)
    bed.records()

    bed.advance(30 * DAY_MS)

    assert (bed.records(), bed.share_group().state) == ([], "Empty")


def test_a_second_assignment_waits_for_its_interval(bed):
    bed.share_config = bed.share_config._replace(assignment_interval_ms=1_000)
    bed.granted("a", 0)
    bed.initialize()
    assert bed.granted("a", 2) == (2, None)
    assert (bed.share_group().epoch.get(), bed.share_group().assignment_epoch) == (3, 2)
    bed.advance(1_000)
    assert bed.granted("a", 2) == (3, {"t": [0, 1]})
    # A group that has been empty does not wait.
    bed.beat_share("a", -1)
    assert (bed.share_group().epoch.get(), bed.share_group().assignment_epoch) == (4, 4)
    assert bed.granted("b", 0) == (5, {"t": [0, 1]})


def test_topics_that_appear_grow_vanish_and_come_back(bed):
    join(bed, "m", names=["t", "u"])
    epoch = bed.share_group().epoch.get()
    known = bed.topics.by_name["t"].topic_id

    # A new topic begins where its leader says, the new partitions of a known one at their first record.
    new = bed.topic("u", 1)
    bed.topic("t", 3)
    bed.granted("m", epoch)
    (states,) = bed.states
    assert states.start_offsets == {new: {0: -1}, known: {2: 0}}
    bed.initialize()
    assert bed.granted("m", epoch + 1)[1] == {"t": [0, 1, 2], "u": [0]}

    bed.drop_topic("t")
    bed.operate(lambda groups: groups.drop_topics({known}))
    assert bed.granted("m", epoch + 2)[1] == {"u": [0]}
    again = bed.topic("t", 1)
    assert again != known
    bed.granted("m", bed.share_group().members["m"].member_epoch)
    assert bed.states[0].start_offsets == {again: {0: -1}}
    bed.initialize()
    assert bed.granted("m", bed.share_group().members["m"].member_epoch)[1] == {"t": [0], "u": [0]}


def test_a_lost_initialization_is_asked_for_again_and_a_failed_one_at_once(bed):
    bed.granted("m", 0)
    bed.states.clear()
    bed.advance(29_999)
    bed.granted("m", 2)
    assert bed.states == []
    bed.advance(1)
    bed.granted("m", 2)
    (states,) = bed.states
    bed.states.clear()
    topic_id = bed.topics.by_name["t"].topic_id
    # As in Kafka, the topic counts as known by then, like one that has grown.
    assert states == (2, {topic_id: {0: 0, 1: 0}})
    bed.operate(lambda groups: offsets.note_failed(groups, "g", states.partitions()))
    assert bed.share_group().states.initializing == {}
    bed.granted("m", 2)
    assert bed.states == [(2, {topic_id: {0: -1, 1: -1}})]


def test_a_reload_has_the_same_group_and_begins_its_sessions_anew(bed):
    join(bed, "a", "b", names=["t"])
    bed.topic("t", 3)
    bed.granted("a", bed.share_group().members["a"].member_epoch)
    before = snapshot(bed.share_group())
    bed.restart()
    assert snapshot(bed.share_group()) == before
    bed.advance(45_000)
    assert bed.share_group().state == "Empty"


def test_a_failed_append_takes_nothing_along(bed):
    join(bed, "a")
    before = snapshot(bed.share_group())
    bed.log.failure = ErrorCode.NOT_COORDINATOR
    assert bed.denied("b", 0) == ErrorCode.NOT_COORDINATOR
    bed.log.failure = None
    assert snapshot(bed.share_group()) == before
