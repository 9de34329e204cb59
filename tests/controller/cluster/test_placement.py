"""Where partitions go: spread over racks and brokers, on brokers that live, or on those that are named."""

from collections import Counter
from random import Random

import pytest

from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.controller.metadata.placement import PlacedBroker, StripedPlacer
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.cases import each_case
from tests.controller.cluster.clusters import Cluster, directory
from tests.controller.metadata.doubles import done

NINE = [PlacedBroker(number, "abc"[number % 3], False) for number in range(9)]


def create(cluster, name="t", partitions=-1, factor=-1, assignments=()):
    [result] = done(cluster.controller.create_topics([NewTopic(name, partitions, factor, list(enumerate(assignments)))]))
    return result.error.code if result.error is not None else (result.partition_count, result.replication_factor)


@each_case("seed", range(20))
def test_each_partition_is_on_different_brokers_of_all_racks(seed):
    for replicas in StripedPlacer(NINE, Random(seed)).place(50, 3):
        assert len(set(replicas)) == 3
        assert {number % 3 for number in replicas} == {0, 1, 2}


@each_case("seed", range(20))
def test_leaders_and_replicas_are_spread_evenly(seed):
    without_racks = [broker._replace(rack=None) for broker in NINE]
    placed = StripedPlacer(without_racks, Random(seed)).place(9, 3)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {1}
    assert set(Counter(broker for replicas in placed for broker in replicas).values()) == {3}


@each_case("seed", range(20))
def test_a_fenced_broker_leads_nothing_and_comes_last(seed):
    brokers = [PlacedBroker(1, None, False), PlacedBroker(2, None, False), PlacedBroker(3, None, True)]
    for replicas in StripedPlacer(brokers, Random(seed)).place(20, 3):
        assert replicas[2] == 3
    for replicas in StripedPlacer(brokers, Random(seed)).place(20, 2):
        assert set(replicas) == {1, 2}


@each_case("seed", range(10))
def test_every_number_of_replicas_that_there_are_brokers_for_can_be_placed(seed):
    random = Random(seed)
    brokers = [PlacedBroker(number, random.choice("abc"), random.random() < 0.4) for number in range(random.randrange(1, 12))] + [
        PlacedBroker(99, "d", False)
    ]
    for factor in range(1, len(brokers) + 1):
        for replicas in StripedPlacer(brokers, random).place(30, factor):
            assert len(set(replicas)) == factor
            assert not next(each.is_fenced for each in brokers if each.broker_id == replicas[0])


@each_case(
    ("brokers", "factor"),
    [([], 1), ([PlacedBroker(1, None, True)], 1), ([PlacedBroker(1, None, False)], 2), ([PlacedBroker(1, None, False)], 0)],
)
def test_too_few_brokers_are_told(brokers, factor):
    with pytest.raises(KafkaError) as refused:
        StripedPlacer(brokers, Random(1)).place(1, factor)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_new_partition_is_led_by_its_first_replica_and_all_that_live_are_in_sync(cluster):
    cluster.start(1, 2)
    cluster.register(3, log_dirs=[directory(3, 1), directory(3, 2)])
    assert create(cluster, "t", 4, 3) == (4, 3)
    for index in range(4):
        partition = cluster.partition("t", index)
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (partition.replicas[0], 0, 0)
        assert set(partition.isr) == {1, 2}
        assert partition.replicas[2] == 3
        places = dict(zip(partition.replicas, partition.directories, strict=True))
        # Of two directories the broker itself chooses.
        assert (places[1], places[2], places[3].int) == (directory(1), directory(2), 1)


def test_what_is_not_asked_for_is_as_configured():
    cluster = Cluster({"num.partitions": "5", "default.replication.factor": "2"})
    cluster.start(1, 2, 3)
    assert create(cluster) == (5, 2)


def test_a_topic_without_enough_brokers_is_refused(cluster):
    assert create(cluster) == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.register(1)
    assert create(cluster) == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.unfence(1)
    assert create(cluster, factor=2) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert create(cluster) == (1, 1)


@each_case(
    "assignments", [[(1, 9)], [(1, 1)], [()], [(1, 2), (1,)], [(3,)]], ids=["unknown", "twice", "nobody", "uneven", "fenced"]
)
def test_an_assignment_that_cannot_be_is_refused(assignments):
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.register(3)
    assert create(cluster, assignments=assignments) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_who_is_fenced_is_not_in_sync_of_an_assignment(cluster):
    cluster.start(1, 2)
    cluster.register(3)
    assert create(cluster, assignments=[(3, 2, 1)]) == (1, 3)
    assert cluster.state() == (2, 0, (2, 1), (), 0)


def test_a_topic_grows_by_partitions_with_as_many_replicas(cluster):
    cluster.start(1, 2, 3)
    cluster.create("t", (1, 2))
    [grown] = done(cluster.controller.create_partitions([NewPartitions("t", 3)]))
    assert grown.error is None
    assert [len(set(cluster.partition("t", index).replicas)) for index in (1, 2)] == [2, 2]
    for assignments, error in (([(1, 2, 3)], 39), ([(1, 9)], 39), ([(3, 1)], None)):
        [grown] = done(cluster.controller.create_partitions([NewPartitions("t", 4, assignments)]))
        assert (grown.error.code if grown.error else None) == error
    assert cluster.state("t", 3) == (3, 0, (3, 1), (), 0)


def test_a_broker_says_which_directory_a_replica_is_in(cluster):
    cluster.register(1, log_dirs=[directory(1, 1), directory(1, 2)])
    cluster.start(2)
    cluster.unfence(1)
    topic = cluster.create("t", (1, 2))
    records = cluster.new_records(lambda: cluster.place(1, directory(1, 2)))
    assert records == [
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, directories=(directory(1, 2), directory(2)))
    ]
    assert cluster.new_records(lambda: cluster.place(1, directory(1, 2))) == []
    assert cluster.place(1, directory(1, 2), index=0) == ErrorCode.NONE
    cluster.create("other", (2,))
    assert cluster.place(1, directory(1, 2), "other") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.place(1, directory(1, 2), index=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_replica_in_a_directory_that_has_failed_meanwhile_does_not_lead(cluster):
    cluster.register(1, log_dirs=[directory(1, 1), directory(1, 2)])
    cluster.start(2)
    cluster.unfence(1)
    topic = cluster.create("t", (1, 2))
    cluster.heartbeat(1, offline_log_dirs=[directory(1, 2)])
    records = cluster.new_records(lambda: cluster.place(1, directory(1, 2)))
    assert records == [
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, directories=(directory(1, 2), directory(2))),
        PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, isr=(2,), leader=2),
    ]
