"""Replicas move: what is recorded at the beginning and at the end, what is listed meanwhile, and how a move is cancelled."""

import pytest

from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.message_types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.controller.cluster.clusters import Cluster, directory
from tests.controller.metadata.doubles import done


@pytest.fixture
def cluster():
    made = Cluster()
    made.start(1, 2, 3, 4)
    made.create("t", (1, 2, 3), (2, 3, 1))
    return made


def reassign(cluster, replicas, name="t", index=0, *, allow=True):
    topic = ReassignableTopic(name, [ReassignablePartition(index, replicas)])
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=allow, topics=[topic])
    response = done(cluster.controller.alter_partition_reassignments(request))
    assert (response.error_code, response.allow_replication_factor_change) == (0, allow)
    return response.responses[0].partitions[0].error_code


def listed(cluster, topics=None):
    return done(cluster.controller.list_partition_reassignments(ListPartitionReassignmentsRequest(topics=topics))).topics


def record(cluster, **what):
    return PartitionChangeRecord(partition_id=0, topic_id=cluster.partition().topic_id, **what)


def test_a_replica_cannot_be_assigned_to_a_broker_whose_directories_are_all_cordoned(cluster):
    cluster.heartbeat(4, cordoned_log_dirs=[directory(4)])
    assert reassign(cluster, [1, 2, 4]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    [assigned] = done(cluster.controller.create_topics([NewTopic("assigned", -1, -1, [(0, (4,))])]))
    [grown] = done(cluster.controller.create_partitions([NewPartitions("t", 3, [(1, 2, 4)])]))
    assert [each.error.code for each in (assigned, grown)] == [ErrorCode.INVALID_REPLICA_ASSIGNMENT] * 2
    cluster.heartbeat(4, cordoned_log_dirs=[])
    assert reassign(cluster, [1, 2, 4]) == ErrorCode.NONE


def test_a_move_begins_with_all_replicas_and_ends_when_the_new_one_is_in_sync(cluster):
    [begun] = cluster.new_records(lambda: reassign(cluster, [1, 2, 4]))
    assert begun == record(
        cluster,
        replicas=(1, 2, 4, 3),
        removing_replicas=(3,),
        adding_replicas=(4,),
        directories=(directory(1), directory(2), directory(4), directory(3)),
    )
    [ended] = cluster.new_records(lambda: cluster.propose([1, 2, 3, 4]))
    assert ended == record(
        cluster,
        isr=(1, 2, 4),
        leader=1,
        replicas=(1, 2, 4),
        removing_replicas=(),
        adding_replicas=(),
        directories=(directory(1), directory(2), directory(4)),
    )


def test_a_move_that_needs_nobody_to_catch_up_is_done_at_once(cluster):
    assert cluster.new_records(lambda: reassign(cluster, [3, 1, 2])) == [
        record(cluster, replicas=(3, 1, 2), directories=(directory(3), directory(1), directory(2)))
    ]
    [shrunk] = cluster.new_records(lambda: reassign(cluster, [3, 2]))
    assert (shrunk.replicas, shrunk.isr, shrunk.leader) == ((3, 2), (2, 3), 3)
    assert listed(cluster) == []


def test_a_move_to_where_the_replicas_are_changes_nothing(cluster):
    assert cluster.new_records(lambda: reassign(cluster, [1, 2, 3])) == []


def test_moves_are_listed_while_they_are_under_way(cluster):
    reassign(cluster, [4, 2])
    expected = [OngoingTopicReassignment("t", [OngoingPartitionReassignment(0, (4, 2, 1, 3), (4,), (1, 3))])]
    assert listed(cluster) == expected
    assert listed(cluster, [ListPartitionReassignmentsTopics("t", [1, 0, 9])]) == expected
    assert listed(cluster, [ListPartitionReassignmentsTopics("t", [1]), ListPartitionReassignmentsTopics("u", [0])]) == []


def test_a_cancelled_move_leaves_the_partition_as_it_was(cluster):
    before = cluster.partition()
    reassign(cluster, [4, 2])
    reverted = cluster.new_records(lambda: reassign(cluster, None))
    assert reverted == [
        record(
            cluster,
            leader=1,
            replicas=(2, 1, 3),
            removing_replicas=(),
            adding_replicas=(),
            directories=(directory(2), directory(1), directory(3)),
        )
    ]
    assert set(cluster.partition().replicas) == set(before.replicas)
    assert cluster.partition().isr == before.isr
    assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def only_the_new_replica_is_in_sync(cluster, **configs):
    cluster.create("moved", (1, 2), **configs)
    reassign(cluster, [4, 3], "moved")
    cluster.propose([1, 2, 4], "moved")
    for broker_id in (1, 2):
        cluster.expire(broker_id)
    assert cluster.state("moved")[2] == (4,)


def test_a_move_is_not_cancelled_where_a_replica_that_is_not_in_sync_would_lead(cluster):
    only_the_new_replica_is_in_sync(cluster)
    assert reassign(cluster, None, "moved") == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_it_is_where_that_is_allowed(cluster):
    only_the_new_replica_is_in_sync(cluster, unclean_leader_election_enable="true")
    assert reassign(cluster, None, "moved") == ErrorCode.NONE
    assert set(cluster.partition("moved").replicas) == {1, 2}


@pytest.mark.parametrize("replicas", [[], [1, 1], [1, 9]])
def test_a_target_that_is_no_assignment_is_refused(cluster, replicas):
    assert reassign(cluster, replicas) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_what_is_not_there_is_not_moved(cluster):
    assert reassign(cluster, [1], index=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(cluster, [1], "nobody") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_number_of_replicas_stays_where_it_may_not_change(cluster):
    assert reassign(cluster, [1, 2], allow=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, [1, 2, 4], allow=False) == ErrorCode.NONE
    # The one that is to be removed does not count.
    assert reassign(cluster, [1, 4, 3], allow=False) == ErrorCode.NONE


def test_replicas_may_move_to_a_broker_that_is_fenced_and_wait_for_it(cluster):
    cluster.expire(4)
    assert reassign(cluster, [1, 2, 4]) == ErrorCode.NONE
    assert cluster.partition().adding_replicas == (4,)
