"""Consumers read from the replica in their rack: the leader sends them there, and followers answer them (KIP-392)."""

from random import Random

import pytest

from odradek.broker.replica.delayed_fetch import FetchRead, ReplicaSelector
from odradek.broker.replica.fetch_partitions import FetchPartitions
from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.partition import Partition
from odradek.controller.metadata.cluster_view import ClusterNode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch
from tests.broker.replica.replication_bed import FIRST, LEADER, LEADER_EPOCH, SECOND, TOPIC_ID, ReplicationBed

RACKS = {LEADER: "a", FIRST: "b", SECOND: "c"}
NOBODY = -1


def selector(rack, racks=None):
    nodes = [ClusterNode(node_id, "host", 1, its_rack) for node_id, its_rack in (racks or RACKS).items()]
    return ReplicaSelector(rack, nodes, LEADER)


@pytest.fixture
def bed():
    """Four records, replicated: FIRST lacks the last one."""
    made = ReplicationBed()
    for _ in range(4):
        made.append()
    made.fetch(SECOND, 4)
    made.fetch(FIRST, 3)
    return made


def asked(offset, epoch=-1):
    partition = fetch.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch, last_fetched_epoch=-1
    )
    return [fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])]


def read_of(partition, offset=0, *, epoch=-1, **options):
    partitions = FetchPartitions()
    partitions.ask(asked(offset, epoch), topic_keys_are_ids=True)
    return FetchRead(partitions, lambda _: partition, min_bytes=1, max_bytes=1 << 20, committed_only=False, **options)


def answer(read):
    [(_, data)], is_enough = read.read()
    return data, is_enough


@pytest.mark.parametrize(("rack", "replica"), [("a", NOBODY), ("b", FIRST), ("c", SECOND), ("elsewhere", NOBODY)])
def test_the_leader_sends_a_consumer_to_the_replica_in_its_rack(bed, rack, replica):
    assert selector(rack).select(bed.partition, 2) == replica


def test_of_two_in_its_rack_it_is_the_more_advanced_or_else_the_one_that_caught_up_last(bed):
    both = selector("b", {LEADER: "a", FIRST: "b", SECOND: "b"})
    assert both.select(bed.partition, 1) == SECOND
    bed.fetch(FIRST, 4)
    bed.replication.now_ms += 10
    bed.fetch(FIRST, 4)
    assert both.select(bed.partition, 1) == FIRST


def test_a_replica_that_lacks_the_offset_or_is_not_in_sync_is_not_read_from(bed):
    assert selector("b").select(bed.partition, 4) == NOBODY
    bed.followers.committed((LEADER, FIRST, SECOND), (LEADER, SECOND), 100)
    assert selector("b").select(bed.partition, 2) == NOBODY


def test_what_a_follower_has_deleted_is_not_read_from_it(bed):
    bed.partition.fetched_by_follower(FIRST, 20, 4, 3)
    assert selector("b").select(bed.partition, 2) == NOBODY
    assert selector("b").select(bed.partition, 3) == FIRST


def test_a_broker_that_cannot_be_reached_is_not_read_from(bed):
    assert selector("b", {LEADER: "a", SECOND: "c"}).select(bed.partition, 2) == NOBODY


def test_a_consumer_is_sent_away_at_once_without_records(bed):
    data, is_enough = answer(read_of(bed.partition, 2, selector=selector("b")))
    assert is_enough
    assert (data.preferred_read_replica, data.records, data.high_watermark) == (FIRST, b"", 3)


def test_a_consumer_that_is_near_or_at_an_old_epoch_is_answered_as_ever(bed):
    data, _ = answer(read_of(bed.partition, 0, selector=selector("a")))
    assert data.preferred_read_replica == NOBODY
    assert data.records
    data, _ = answer(read_of(bed.partition, 2, epoch=LEADER_EPOCH - 1, selector=selector("b")))
    assert (data.error_code, data.preferred_read_replica) == (ErrorCode.FENCED_LEADER_EPOCH, NOBODY)


def test_a_session_tells_of_the_replica_though_nothing_else_has_changed(bed):
    sessions = FetchSessions(10, Random(1))
    context = sessions.open(fetch.FetchRequest(session_epoch=0, topics=asked(2)), True, 0)
    session_id = 0
    for epoch in (1, 2):
        for each in context.partitions:
            each.target = bed.partition
        read = FetchRead(
            context.partitions,
            lambda _: bed.partition,
            min_bytes=1,
            max_bytes=1 << 20,
            committed_only=False,
            selector=selector("b"),
        )
        assert [data.preferred_read_replica for _, data in context.select(read.read()[0])] == [FIRST]
        session_id = session_id or context.session_id
        context = sessions.open(fetch.FetchRequest(session_id=session_id, session_epoch=epoch), True, 0)


@pytest.fixture
def follower(bed):
    """A follower with four records, of which it knows three to be replicated."""
    data = bytes(bed.log.read(0, 1 << 20, upper_offset=4, min_one_batch=True).read())
    made = ReplicationBed()
    made.partition.become_follower(SECOND, LEADER_EPOCH + 1)
    made.partition.append_as_follower(data, 3, 0)
    return made.partition


def test_a_follower_answers_up_to_the_high_watermark_it_knows(follower):
    data, is_enough = answer(read_of(follower, 3, any_replica=True))
    assert (data.error_code, data.high_watermark, is_enough) == (ErrorCode.NONE, 3, False)
    follower.append_as_follower(b"", 4, 0)
    data, is_enough = answer(read_of(follower, 3, any_replica=True))
    assert (data.high_watermark, is_enough) == (4, True)
    assert data.records


@pytest.mark.parametrize(
    ("offset", "epoch", "error"),
    [
        (3, -1, ErrorCode.NONE),
        (4, -1, ErrorCode.NONE),
        (5, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
        (0, LEADER_EPOCH + 2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_follower_checks_what_a_consumer_asks_as_a_leader_does(follower, offset, epoch, error):
    assert answer(read_of(follower, offset, epoch=epoch, any_replica=True))[0].error_code == error


def test_an_older_consumer_is_sent_to_the_leader(follower):
    assert answer(read_of(follower))[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_never_sends_a_consumer_elsewhere(follower):
    assert selector("c").select(follower, 0) == NOBODY


def test_who_waits_at_a_leader_that_is_none_any_more_is_answered_at_once(bed):
    any_replica = read_of(bed.partition, 4, any_replica=True)
    with_epoch = read_of(bed.partition, 4, epoch=LEADER_EPOCH, any_replica=True)
    leader_only = read_of(bed.partition, 4)
    bed.fetch(FIRST, 4)
    for read in (any_replica, with_epoch, leader_only):
        read.read()
    assert not leader_only.has_enough()
    bed.partition.become_follower(SECOND, LEADER_EPOCH + 1)
    assert [read.has_enough() for read in (any_replica, with_epoch, leader_only)] == [False, True, True]


def test_the_leader_of_the_only_replica_has_nobody_to_send_to(bed):
    alone = Partition("t", 0, TOPIC_ID, 3, bed.log, lambda _: None)
    assert selector("b").select(alone, 0) == NOBODY
