"""Start offsets of share groups: altered, deleted, and deleted with their group; what other groups' requests find."""

import pytest

from odradek.coordinator.group.registry import group_filter
from odradek.coordinator.group.share import offsets
from odradek.protocol.coordinator_records.share_groups import ShareGroupStatePartitionMetadataValue, TopicInfo
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from odradek.protocol.message_types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from odradek.protocol.message_types.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from odradek.timing.reply import Reply
from tests.coordinator.group.share_bed import ShareBed
from tests.coordinator.long_work import finished

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def bed():
    """The group ``g`` of ``m``, that reads the two partitions of ``t``."""
    bed = ShareBed(assignment_interval_ms=0)
    bed.topic("t", 2)
    bed.granted("m", 0)
    bed.initialize()
    bed.granted("m", 2)
    bed.records()
    return bed


def alter(bed, by_topic, group_id="g"):
    return alter_each(bed, by_topic.items(), group_id)


def alter_each(bed, named, group_id="g"):
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                for index, offset in by_index.items()
            ],
        )
        for name, by_index in named
    ]
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    return bed.operate(lambda groups: offsets.alter(groups, request))


def delete(bed, *names):
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    request = DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)
    return bed.operate(lambda groups: offsets.delete(groups, request))


def test_offsets_of_a_group_with_members_cannot_be_changed(bed):
    for outcome in (
        alter(bed, {"t": {0: 5}}),
        delete(bed, "t"),
        bed.operate(lambda groups: offsets.begin_deletion(groups, "g")),
    ):
        assert isinstance(outcome, KafkaError)
        assert outcome.code == ErrorCode.NON_EMPTY_GROUP
    assert bed.records() == []


def test_altered_partitions_are_initializing_until_the_share_coordinator_has_them(bed):
    topic_id = bed.topics.by_name["t"].topic_id
    bed.beat_share("m", -1)
    altered = alter(bed, {"t": {0: 5, 2: 7, -1: 7}, "no": {0: 1}})
    assert [(each.topic_name, [(p.partition_index, p.error_code) for p in each.partitions]) for each in altered.topics] == [
        ("t", [(0, ErrorCode.NONE), (2, UNKNOWN), (-1, UNKNOWN)]),
        ("no", [(0, UNKNOWN)]),
    ]
    assert altered.states == (bed.share_group().epoch.get(), {topic_id: {0: 5}})
    assert bed.share_group().states.initializing[topic_id].partitions == {0}
    bed.operate(lambda groups: offsets.note_initialized(groups, "g", altered.states.partitions()))
    assert not bed.share_group().states.initializing
    # A topic that is named twice is one.
    again = alter_each(bed, [("t", {0: 3}), ("t", {1: 4})])
    assert ([len(each.partitions) for each in again.topics], again.states.start_offsets) == ([2], {topic_id: {0: 3, 1: 4}})


def test_a_missing_group_is_created_by_its_offsets(bed):
    altered = alter(bed, {"t": {1: 3}}, group_id="new")
    assert altered.states.state_epoch == 1
    assert (bed.share_group("new").state, bed.share_group("new").epoch.get()) == ("Empty", 1)
    bed.restart()
    assert bed.share_group("new").states.initializing


def test_deleted_topics_are_deleting_until_the_share_coordinator_has_dropped_them(bed):
    topic_id = bed.topics.by_name["t"].topic_id
    bed.topic("idle", 1)
    bed.beat_share("m", -1)
    bed.records()
    for _ in range(2):
        # The second time stands for a deletion that was not finished.
        deletion = delete(bed, "t", "idle", "no")
        assert deletion.partitions == {topic_id: {0, 1}}
        assert [(each.topic_name, each.error_code) for each in deletion.refused] == [("idle", UNKNOWN), ("no", UNKNOWN)]
    assert [record.value for record in bed.records()] == [
        ShareGroupStatePartitionMetadataValue((), (), (TopicInfo(topic_id, "t"),))
    ] * 2
    bed.operate(lambda groups: offsets.note_deleted(groups, "g", {topic_id}))
    assert [record.value for record in bed.records()] == [ShareGroupStatePartitionMetadataValue((), (), ())]

    # A member that comes back begins anew.
    bed.granted("m", 0)
    assert bed.states[0].start_offsets == {topic_id: {0: -1, 1: -1}}


def test_a_group_is_deleted_after_all_its_states(bed):
    topic_id = bed.topics.by_name["t"].topic_id
    bed.beat_share("m", -1)
    assert bed.operate(lambda groups: offsets.begin_deletion(groups, "g")) == {topic_id: {0, 1}}
    assert bed.share_group().states[:3] == ({}, {}, {topic_id})
    bed.write(lambda shard: shard.delete_group("g"), Reply())
    assert bed.share_group() is None
    bed.restart()
    assert bed.share_group() is None
    assert bed.operate(lambda groups: offsets.begin_deletion(groups, "g")) == {}


def test_share_groups_are_listed_and_described_as_committed(bed):
    topic_id = bed.topics.by_name["t"].topic_id
    listing = bed.runtime.read(
        0, lambda shard, offset: shard.list_groups(group_filter(["stable"]), group_filter(["Share"]), offset)
    )
    assert [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in finished(listing)] == [
        ("g", "share", "Stable", "share")
    ]
    bed.log.held_back = True
    bed.beat_share("m", -1)
    described = finished(bed.runtime.read(0, lambda shard, offset: shard.describe_share_group("g", offset)))
    assignment = Assignment(topic_partitions=[TopicPartitions(topic_id=topic_id, topic_name="t", partitions=[0, 1])])
    member = Member(
        member_id="m",
        member_epoch=3,
        client_id="c",
        client_host="/127.0.0.1",
        subscribed_topic_names=["t"],
        assignment=assignment,
    )
    assert described == DescribedGroup(
        group_id="g", group_state="Stable", group_epoch=3, assignment_epoch=3, assignor_name="simple", members=[member]
    )
    with pytest.raises(KafkaError):
        finished(bed.runtime.read(0, lambda shard, offset: shard.describe_share_group("no", offset)))


def test_members_of_the_classic_protocol_and_commits_are_refused(bed):
    for _ in range(2):
        refused = bed.join("x").response
        assert (refused.error_code, refused.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
        assert bed.heartbeat("x") == ErrorCode.UNKNOWN_MEMBER_ID
        for member_id in list(bed.share_group().members):
            bed.beat_share(member_id, -1)
        assert bed.share_group().state == "Empty"
