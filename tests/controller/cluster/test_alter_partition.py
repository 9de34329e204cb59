"""Leaders propose in-sync replicas: what is taken, and each reason to refuse it."""

from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.controller.cluster.clusters import Cluster
from tests.controller.metadata.doubles import done


@pytest.fixture
def cluster():
    made = Cluster()
    made.start(1, 2, 3, 4)
    made.create("t", (1, 2, 3), min_insync_replicas="2")
    return made


def test_a_follower_leaves_and_comes_back_and_the_leader_is_told_the_state(cluster):
    topic_id = cluster.partition().topic_id
    answers = []
    records = cluster.new_records(lambda: answers.append(cluster.propose([1, 2])))
    assert records == [PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=(1, 2))]
    assert answers == [PartitionData(0, ErrorCode.NONE, 1, 0, (1, 2), 0, 1)]
    assert cluster.propose([3, 2, 1]) == PartitionData(0, ErrorCode.NONE, 1, 0, (3, 2, 1), 0, 2)


def test_a_proposal_that_changes_nothing_is_answered_and_writes_nothing(cluster):
    answers = []
    assert cluster.new_records(lambda: answers.append(cluster.propose([1, 2, 3]))) == []
    assert answers == [PartitionData(0, ErrorCode.NONE, 1, 0, (1, 2, 3), 0, 0)]


@pytest.mark.parametrize(
    ("isr", "what", "error"),
    [
        ([1, 2], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1, 2], {"leader": 2}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_proposal_that_is_wrong_is_refused_and_writes_nothing(cluster, isr, what, error):
    answers = []
    assert cluster.new_records(lambda: answers.append(cluster.propose(isr, **what))) == []
    assert answers == [PartitionData(0, error)]


def test_nobody_is_in_sync_who_is_fenced_or_stops_or_is_another_incarnation(cluster):
    cluster.heartbeat(3, want_fence=True)
    assert cluster.propose([1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.unfence(3)
    states = [BrokerState(1, -1), BrokerState(3, cluster.epoch(3) - 1)]
    assert cluster.propose([], new_isr_with_epochs=states).error_code == ErrorCode.INELIGIBLE_REPLICA
    states = [BrokerState(1, -1), BrokerState(3, -1)]
    assert cluster.propose([], new_isr_with_epochs=states).error_code == ErrorCode.NONE
    cluster.create("led", (2, 1))
    cluster.heartbeat(2, want_shut_down=True)
    assert cluster.propose([1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_partitions_that_are_not_there_are_told_by_themselves(cluster):
    known = cluster.partition().topic_id
    unknown = UUID(int=1)
    topics = [
        RequestTopicData(unknown, [RequestPartitionData(0)]),
        RequestTopicData(known, [RequestPartitionData(8), RequestPartitionData(0, 0, [BrokerState(1, -1)])]),
    ]
    response = done(cluster.controller.alter_partition(AlterPartitionRequest(1, cluster.epoch(1), topics), 3))
    told = [(each.topic_id, [one.error_code for one in each.partitions]) for each in response.topics]
    assert told == [(unknown, [ErrorCode.UNKNOWN_TOPIC_ID]), (known, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE])]


def test_a_broker_at_another_epoch_is_refused_as_a_whole(cluster):
    response = done(cluster.controller.alter_partition(AlterPartitionRequest(1, cluster.epoch(1) + 1, []), 3))
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_that_is_moved_away_is_told_that_another_leads(cluster):
    target = ReassignableTopic("t", [ReassignablePartition(0, [4, 2])])
    done(cluster.controller.alter_partition_reassignments(AlterPartitionReassignmentsRequest(topics=[target])))
    assert cluster.partition().replicas == (4, 2, 1, 3)
    assert cluster.propose([1, 2, 3, 4]) == PartitionData(0, ErrorCode.NEW_LEADER_ELECTED)
    assert (cluster.partition().replicas, cluster.state()) == ((4, 2), (4, 1, (2, 4), (), 2))
