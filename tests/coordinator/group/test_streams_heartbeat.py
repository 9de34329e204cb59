"""StreamsGroupHeartbeat: the exact answer, then the exact records; topics, tasks that move, sessions, and reloads."""

from dataclasses import replace

import pytest

from odradek.coordinator.group.consumer.topics import SubscribedTopic, group_hash, topic_hash
from odradek.coordinator.group.streams.member import KEYS, NOTHING_OWNED, assignment_record, group_tombstones
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records import streams_groups as records
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_heartbeat import (
    Endpoint,
    EndpointToPartitions,
    KeyValue,
    RequestEndpoint,
    Status,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicPartition,
    Topology,
)
from tests.coordinator.group.bed import Answer
from tests.coordinator.group.streams_bed import NOTHING, STATELESS, WORD_COUNT, StreamsBed, task_ids

CONFIGS = (records.LastAssignmentConfig("num.standby.replicas", "0"),)


@pytest.fixture
def bed():
    """A topic ``t`` of two partitions, and assignments that are never too early."""
    bed = StreamsBed()
    bed.topic("t", 2)
    return bed


def settled(bed, *members, **options):
    """Members that join one after the other, and have their tasks."""
    for member_id in members:
        bed.granted(member_id, 0, **options)
        bed.make_internal_topics()
    for _ in range(4):
        for member_id in members:
            bed.again(member_id, owned=owned(bed, member_id))
    bed.records()


def owned(bed, member_id):
    active, standby, warmup = bed.streams_group().members[member_id].assigned.without_epochs()
    return {
        role: {name: sorted(indexes) for name, indexes in tasks.items()}
        for role, tasks in (("active", active), ("standby", standby), ("warmup", warmup))
    }


def tasks_of(bed):
    """The active tasks of each member."""
    return {member_id: owned(bed, member_id)["active"] for member_id in bed.streams_group().members}


def snapshot(group):
    """Return all that is persistent."""
    topology = group.topology.get()
    return (
        group.epoch.get(),
        group.metadata_hash.get(),
        group.target_metadata.get(),
        group.basis.get(),
        None if topology is None else topology.value,
        dict(group.members.items()),
        dict(group.targets.items()),
        dict(group.static_members.items()),
        dict(group.active_holders.items()),
        dict(group.standby_holders.items()),
    )


def hash_of(bed, *names):
    topics = [bed.topics.by_name[name] for name in names]
    return group_hash(
        [(each.name, topic_hash(SubscribedTopic(each.topic_id, each.name, each.partition_count))) for each in topics]
    )


def test_the_first_heartbeat_asks_for_internal_topics(bed):
    detail = "Internal topics are missing: counts, words"
    assert bed.beat_streams("m", 0) == StreamsGroupHeartbeatResponse(
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=5_000,
        task_offset_interval_ms=60_000,
        acceptable_recovery_lag=10_000,
        status=[Status(status_code=3, status_detail=detail)],
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    topology = records.StreamsGroupTopologyValue(
        0,
        (
            records.Subtopology("0", ("t",), (), (), ("words",), (), ()),
            records.Subtopology(
                "1", (), (), (records.TopicInfo("counts", 0, 0, ()),), (), (records.TopicInfo("words", 0, 0, ()),), ()
            ),
        ),
    )
    member = records.StreamsGroupMemberMetadataValue(None, None, "c", "/127.0.0.1", 60_000, 0, "p-m", None, ())
    assert [tuple(record) for record in bed.records()] == [
        (records.StreamsGroupMemberMetadataKey("g", "m"), member),
        (records.StreamsGroupTopologyKey("g"), topology),
        (records.StreamsGroupMetadataKey("g"), records.StreamsGroupMetadataValue(2, hash_of(bed, "t"), -1, CONFIGS)),
        (
            records.StreamsGroupTargetAssignmentMemberKey("g", "m"),
            records.StreamsGroupTargetAssignmentMemberValue((), (), ()),
        ),
        (
            records.StreamsGroupTargetAssignmentMetadataKey("g"),
            records.StreamsGroupTargetAssignmentMetadataValue(2, bed.clock.now_ms()),
        ),
        (
            records.StreamsGroupCurrentMemberAssignmentKey("g", "m"),
            records.StreamsGroupCurrentMemberAssignmentValue(2, 0, 1, (), (), (), (), (), ()),
        ),
    ]
    assert bed.streams_group().state == "NotReady"
    assert [(each.name, each.partition_count) for each in bed.missing] == [("counts", 2), ("words", 2)]


def test_a_heartbeat_after_the_internal_topics_are_made_assigns_tasks(bed):
    bed.beat_streams("m", 0)
    bed.records()
    bed.make_internal_topics()

    assert bed.beat_streams("m", 2, owned=NOTHING) == StreamsGroupHeartbeatResponse(
        member_id="m",
        member_epoch=3,
        heartbeat_interval_ms=5_000,
        task_offset_interval_ms=60_000,
        acceptable_recovery_lag=10_000,
        status=[],
        active_tasks=[TaskIds(subtopology_id="0", partitions=[0, 1]), TaskIds(subtopology_id="1", partitions=[0, 1])],
        standby_tasks=[],
        warmup_tasks=[],
    )
    target = (records.TargetTaskIds("0", (0, 1)), records.TargetTaskIds("1", (0, 1)))
    assigned = (records.TaskIds("0", (0, 1), (3, 3)), records.TaskIds("1", (0, 1), (3, 3)))
    assert [tuple(record) for record in bed.records()] == [
        (
            records.StreamsGroupMetadataKey("g"),
            records.StreamsGroupMetadataValue(3, hash_of(bed, "t", "words", "counts"), 0, CONFIGS),
        ),
        (
            records.StreamsGroupTargetAssignmentMemberKey("g", "m"),
            records.StreamsGroupTargetAssignmentMemberValue(target, (), ()),
        ),
        (
            records.StreamsGroupTargetAssignmentMetadataKey("g"),
            records.StreamsGroupTargetAssignmentMetadataValue(3, bed.clock.now_ms()),
        ),
        (
            records.StreamsGroupCurrentMemberAssignmentKey("g", "m"),
            records.StreamsGroupCurrentMemberAssignmentValue(3, 2, 1, assigned, (), (), (), (), ()),
        ),
    ]
    assert bed.streams_group().state == "Stable"
    assert bed.again("m") == (3, None)
    assert bed.records() == []


def test_a_second_member_waits_until_the_first_has_given_its_tasks_up(bed):
    settled(bed, "a")
    assert bed.granted("b", 0)[1] == {}
    epoch = bed.epoch_of("a")
    kept = {"active": {"0": [0], "1": [0]}}
    mine = {"active": {"0": [0, 1], "1": [0, 1]}}
    # It is told what to keep, and stays in its epoch until it owns no more than that. It may not have had the answer.
    assert bed.again("a", owned=mine) == (epoch, kept)
    assert bed.again("a", owned=mine) == (epoch, kept)
    assert bed.again("a") == (epoch, None)
    assert bed.again("b", owned=NOTHING)[1] is None
    assert bed.streams_group().state == "Reconciling"
    assert bed.again("a", owned=kept) == (epoch + 1, None)
    assert bed.again("b", owned=NOTHING) == (epoch + 1, {"active": {"0": [1], "1": [1]}})
    assert bed.streams_group().state == "Stable"


def test_a_member_that_gives_no_tasks_up_in_time_is_removed(bed):
    settled(bed, "a")
    bed.granted("b", 0)
    bed.again("a", owned=owned(bed, "a"))
    for _ in range(2):
        bed.advance(30_000)
        bed.again("b")
        if "a" in bed.streams_group().members:
            bed.again("a", owned={"active": {"0": [0, 1], "1": [0, 1]}})
    assert list(bed.streams_group().members) == ["b"]
    assert bed.denied("a", 3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_standbys_are_in_another_process_and_become_active_without_a_revocation(bed):
    bed.streams_config = bed.streams_config._replace(num_standby_replicas=1)
    settled(bed, "a", "b")
    tasks = tasks_of(bed)
    assert {member_id: owned(bed, member_id)["standby"] for member_id in tasks} == {
        "a": {"1": tasks["b"]["1"]},
        "b": {"1": tasks["a"]["1"]},
    }
    bed.beat_streams("a", -1)
    assert bed.again("b", owned=owned(bed, "b"))[1] == {"active": {"0": [0, 1], "1": [0, 1]}}


def test_source_topics_that_are_missing_or_do_not_fit_are_told(bed):
    missing = Status(status_code=1, status_detail="Source topics gone are missing.")
    topology = Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=["t", "gone"])])
    assert bed.beat_streams("m", 0, topology=topology).status == [missing]
    assert bed.beat_streams("m", 2).status == [missing]
    bed.topic("gone", 1)
    assert bed.again("m")[1] == {"active": {"0": [0, 1]}}

    bed.topic("words", 3)
    bed.topic("counts", 3)
    detail = "Existing topic words has different number of partitions: expected 2, found 3"
    assert bed.beat_streams("m", 0, group_id="h").status == [Status(status_code=2, status_detail=detail)]


def test_more_partitions_of_a_source_topic_are_more_tasks(bed):
    bed.topology = STATELESS
    settled(bed, "m")
    bed.topic("t", 3)
    assert bed.again("m", owned=owned(bed, "m"))[1] == {"active": {"0": [0, 1, 2]}}
    bed.drop_topic("t")
    assert bed.again("m", owned=owned(bed, "m"))[1] == {}
    assert bed.streams_group().state == "NotReady"


def test_a_new_group_waits_for_more_members():
    bed = StreamsBed(initial_rebalance_delay_ms=3_000)
    bed.topology = STATELESS
    bed.topic("t", 2)
    delayed = Status(status_code=5, status_detail="Assignment delayed due to the configured initial rebalance delay.")
    answers = [bed.beat_streams(member_id, 0) for member_id in "ab"]
    assert [(answer.member_epoch, answer.status) for answer in answers] == [(1, [delayed])] * 2
    bed.advance(3_000)
    assert bed.streams_group().assignment_epoch == bed.streams_group().epoch.get() == 3
    assert [bed.again(member_id)[1] for member_id in "ab"] == [{"active": {"0": [0]}}, {"active": {"0": [1]}}]


def test_a_second_assignment_waits_for_its_interval(bed):
    bed.topology = STATELESS
    settled(bed, "a")
    bed.streams_config = bed.streams_config._replace(assignment_interval_ms=1_000)
    delayed = Status(status_code=5, status_detail="Assignment delayed due to the configured assignment interval.")
    assert bed.beat_streams("b", 0).status == [delayed]
    bed.advance(1_000)
    bed.again("b")
    # A group that has been empty does not wait.
    for member_id in "ab":
        bed.beat_streams(member_id, -1)
    assert bed.granted("c", 0)[1] == {"active": {"0": [0, 1]}}


def test_malformed_heartbeats_and_unknown_groups_and_members_are_refused(bed):
    invalid = ErrorCode.INVALID_REQUEST
    assert bed.denied("", 0) == bed.denied("m", 0, group_id="") == bed.denied("m", 0, rack_id="") == invalid
    assert bed.denied("m", 0, topology=None) == bed.denied("m", 0, rebalance_timeout_ms=-1) == bed.denied("m", -3) == invalid
    assert bed.denied("m", 1, topology=WORD_COUNT) == bed.denied("m", 0, owned={"active": {"0": [0]}}) == invalid
    assert bed.denied("m", -2) == bed.denied("m", 1, active_tasks=task_ids({})) == invalid
    regex = Topology(subtopologies=[Subtopology(subtopology_id="0", source_topic_regex=["t.*"])])
    assert bed.denied("m", 0, topology=regex) == invalid
    many = [Subtopology(subtopology_id=str(each), source_topics=["t"] * 5) for each in range(501)]
    for places in (501, 401):
        assert bed.denied("m", 0, topology=Topology(subtopologies=many[:places])) == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert bed.denied("m", 1) == bed.denied("m", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    bed.accepted("c", 0, group_id="consumers")
    assert bed.denied("m", 0, group_id="consumers") == ErrorCode.GROUP_ID_NOT_FOUND
    settled(bed, "m")
    assert bed.refused("c", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bed.denied("n", 3) == bed.denied("n", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.denied("m", 3, owned={"active": {"2": [0]}}) == bed.denied("m", 3, owned={"active": {"0": [2]}}) == invalid
    twice = [TaskOffset(subtopology_id="1", partition=0, offset=1)] * 2
    assert bed.denied("m", 3, task_offsets=twice) == invalid
    bed.streams_config = bed.streams_config._replace(max_size=1)
    assert bed.denied("n", 0) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bed.granted("m", 0)[1] == {"active": {"0": [0, 1], "1": [0, 1]}}


def test_epochs_not_a_members_own_are_fenced_and_the_last_one_is_answered_again(bed):
    settled(bed, "m")
    epoch = bed.epoch_of("m")
    # The answer with the new epoch was lost, and the tasks with it.
    assert bed.granted("m", epoch - 1, owned=NOTHING) == (epoch, {"active": {"0": [0, 1], "1": [0, 1]}})
    assert bed.granted("m", 0)[0] == epoch
    assert bed.denied("m", epoch - 1) == bed.denied("m", epoch + 1) == bed.denied("m", 1) == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_topology_changes_only_with_a_new_group_and_an_older_one_is_stale(bed):
    settled(bed, "m", topology=WORD_COUNT._replace(epoch=1))
    other = Topology(epoch=1, subtopologies=WORD_COUNT.subtopologies[:1])
    assert bed.denied("n", 0, topology=other) == bed.denied("n", 0, topology=other._replace(epoch=2)) == ErrorCode.INVALID_REQUEST
    stale = Status(status_code=0, status_detail="The member's topology epoch 0 is behind the group's topology epoch 1.")
    assert bed.beat_streams("n", 0, topology=WORD_COUNT).status == [stale]


def test_a_static_member_is_back_with_its_tasks_under_a_new_id(bed):
    settled(bed, "a", instance_id="i")
    epoch = bed.epoch_of("a")
    assert bed.denied("b", 0, instance_id="i") == ErrorCode.UNRELEASED_INSTANCE_ID
    bed.granted("a", -2, instance_id="i")
    assert [record.value.active_tasks[0].assignment_epochs for record in bed.records()] == [(0, 0)]
    # The same process: nothing changes for the group.
    assert bed.granted("b", 0, instance_id="i", process_id="p-a") == (epoch, {"active": {"0": [0, 1], "1": [0, 1]}})
    assert bed.records()[:3] == KEYS.member_tombstones("g", "a")
    assert bed.denied("a", epoch, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert list(bed.streams_group().members) == ["b"]


def test_a_member_that_leaves_or_is_silent_is_removed(bed):
    settled(bed, "a", "b")
    epoch = bed.streams_group().epoch.get()
    assert bed.beat_streams("b", -1) == StreamsGroupHeartbeatResponse(member_id="b", member_epoch=-1)
    *removed, raised = bed.records()
    assert removed == KEYS.member_tombstones("g", "b")
    assert (raised.key, raised.value.epoch) == (records.StreamsGroupMetadataKey("g"), epoch + 1)
    bed.advance(44_000)
    bed.again("a")
    bed.advance(44_000)
    assert bed.streams_group().state != "Empty"
    bed.advance(1_000)
    assert (bed.streams_group().state, bed.shard.streams.sessions_expired) == ("Empty", 1)
    assert bed.records()[-1].value == records.StreamsGroupTargetAssignmentMetadataValue(bed.streams_group().epoch.get(), 0)


def test_one_member_shuts_the_whole_application_down(bed):
    settled(bed, "a", "b")
    bed.beat_streams("a", -1, shutdown_application=True)
    (status,) = bed.beat_streams("b", bed.epoch_of("b")).status
    assert (status.status_code, "member a encountered a fatal error" in status.status_detail) == (4, True)
    bed.beat_streams("b", -1)
    assert bed.beat_streams("c", 0).status == []


def test_members_learn_the_partitions_of_each_endpoint_once(bed):
    settled(bed, "a", user_endpoint=RequestEndpoint(host="h", port=1))
    entry = EndpointToPartitions(
        user_endpoint=Endpoint(host="h", port=1),
        active_partitions=[TopicPartition(topic="t", partitions=[0, 1]), TopicPartition(topic="words", partitions=[0, 1])],
        standby_partitions=[],
    )
    answer = bed.beat_streams("a", bed.epoch_of("a"))
    assert (answer.endpoint_information_epoch, answer.partitions_by_user_endpoint) == (1, [entry])
    assert bed.beat_streams("a", bed.epoch_of("a"), endpoint_information_epoch=1).partitions_by_user_endpoint is None
    # Without source topics there is nothing to read.
    bed.drop_topic("t")
    (entry,) = bed.beat_streams("a", bed.epoch_of("a"), owned=owned(bed, "a")).partitions_by_user_endpoint
    assert (entry.active_partitions, entry.standby_partitions) == ([], [])


def test_missing_client_tags_are_told_to_clients_that_know_of_them(bed):
    bed.streams_config = bed.streams_config._replace(rack_aware_assignment_tags=("zone", "cluster"))
    bed.topology = STATELESS
    tags = [KeyValue(key="zone", value="a")]
    assert bed.beat_streams("m", 0, client_tags=tags, version=0).status == []
    (status,) = bed.beat_streams("m", 2, version=1).status
    assert (status.status_code, "[cluster]" in status.status_detail) == (6, True)
    assert bed.records()[2].value.last_assignment_configs[1] == ("rack.aware.assignment.tags", "zone,cluster")


def test_a_changed_config_of_the_assignment_raises_the_epoch(bed):
    settled(bed, "a", "b")
    epoch = bed.streams_group().epoch.get()
    bed.streams_config = bed.streams_config._replace(num_standby_replicas=1)
    bed.again("a")
    assert bed.streams_group().epoch.get() == epoch + 1
    bed.again("a")
    assert bed.streams_group().epoch.get() == epoch + 1


def test_a_reload_has_the_same_group_and_begins_its_sessions_anew(bed):
    bed.streams_config = bed.streams_config._replace(num_standby_replicas=1)
    settled(bed, "a", "b", client_tags=[KeyValue(key="zone", value="a")])
    bed.topic("t", 3)
    bed.again("a", owned=owned(bed, "a"))
    before = snapshot(bed.streams_group())
    bed.restart()
    assert snapshot(bed.streams_group()) == before
    bed.advance(45_000)
    assert bed.streams_group().state == "Empty"


def test_an_old_record_of_another_member_of_the_process_frees_no_task(bed):
    settled(bed, "a", "b", process_id="p")
    task, of_b = ("0", 1), owned(bed, "b")
    assert task[1] in of_b["active"][task[0]]
    group = bed.streams_group()
    mine, theirs = group.members["a"], group.members["b"]
    # A log that is read while it is compacted may have a record of a that a later one, which is gone, has overwritten.
    old = replace(mine, assigned=theirs.assigned)
    written = [assignment_record("g", each) for each in (replace(theirs, assigned=NOTHING_OWNED), old, theirs, mine)]
    bed.write(lambda _: CoordinatorResult(written, None), Answer().reply)
    assert group.active_process(task) == "p"


def test_a_failed_append_takes_nothing_along(bed):
    settled(bed, "a")
    before = snapshot(bed.streams_group())
    bed.log.failure = ErrorCode.NOT_COORDINATOR
    assert bed.denied("b", 0) == ErrorCode.NOT_COORDINATOR
    bed.log.failure = None
    assert snapshot(bed.streams_group()) == before


def test_a_failed_append_leaves_no_topology_of_topics_that_were_there_in_between(bed):
    settled(bed, "a")
    bed.drop_topic("words")
    bed.again("a")
    bed.missing = []
    bed.topic("words", 2)
    bed.log.failure = ErrorCode.NOT_COORDINATOR
    assert bed.denied("a", bed.epoch_of("a"), owned=NOTHING) == ErrorCode.NOT_COORDINATOR
    bed.log.failure = None
    bed.drop_topic("words")
    assert bed.again("a", owned=NOTHING)[1] is None
    assert [topic.name for topic in bed.missing] == ["words"]
    assert bed.streams_group().state == "NotReady"


def test_an_empty_group_is_deleted_and_an_empty_classic_one_makes_way(bed):
    bed.join()
    bed.advance(20_000)
    assert bed.shard.groups.find("g").state == "Empty"
    settled(bed, "a")

    def delete():
        answer = Answer()
        bed.write(lambda shard: shard.delete_group("g"), answer.reply)
        return answer.response.error_code

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    bed.beat_streams("a", -1)
    bed.records()
    assert delete() == ErrorCode.NONE
    assert bed.records() == group_tombstones("g", [])
    assert bed.streams_group() is None
    settled(bed, "a")
    bed.beat_streams("a", -1)
    bed.join(version=0)
    assert bed.shard.groups.find("g").group_type == "classic"
