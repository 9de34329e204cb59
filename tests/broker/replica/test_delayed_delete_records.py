"""Records are deleted when every replica that could lead has forgotten them."""

import pytest

from odradek.broker.replica.delayed_produce import DelayedDeleteRecords
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Purgatory, Timer
from tests.broker.replica.replication_bed import FIRST, LEADER_EPOCH, SECOND, TOPIC_ID, ReplicationBed

TIMEOUT_MS = 1_000


class Bed(ReplicationBed):
    """Five records, replicated; who waits for followers is in a purgatory."""

    def __init__(self):
        self.clock = VirtualClock()
        self.purgatory = Purgatory("Produce", Timer(self.clock))
        self.outcomes = []
        super().__init__()
        for _ in range(5):
            self.append()
        self.follow(FIRST, 0)
        self.follow(SECOND, 0)

    def _wake(self, partition):
        self.purgatory.check_and_complete(partition)

    def follow(self, node_id, log_start_offset):
        self.partition.fetched_by_follower(node_id, self.replication.epochs[node_id], 5, log_start_offset)

    def delete(self, offset):
        self.log.delete_records_before(offset)
        operation = DelayedDeleteRecords(self.clock.monotonic_ms() + TIMEOUT_MS, [(self.partition, offset)], self.outcomes.extend)
        self.purgatory.try_complete_else_watch(operation, [self.partition])


@pytest.fixture
def bed():
    return Bed()


def test_it_is_over_when_the_last_follower_has_followed(bed):
    bed.delete(3)
    bed.follow(FIRST, 3)
    assert (bed.outcomes, bed.partition.low_watermark) == ([], 0)
    bed.follow(SECOND, 4)
    assert bed.outcomes == [(3, ErrorCode.NONE)]


def test_a_follower_that_is_not_alive_is_not_waited_for(bed):
    bed.follow(FIRST, 3)
    del bed.replication.epochs[SECOND]
    bed.delete(3)
    assert bed.outcomes == [(3, ErrorCode.NONE)]


def test_followers_that_are_too_slow_are_told(bed):
    bed.delete(3)
    bed.follow(FIRST, 3)
    bed.follow(SECOND, 2)
    bed.clock.advance(TIMEOUT_MS)
    assert bed.outcomes == [(2, ErrorCode.REQUEST_TIMED_OUT)]


def test_a_leader_that_is_none_any_more_knows_nothing_of_followers(bed):
    bed.delete(3)
    bed.partition.become_follower(SECOND, LEADER_EPOCH + 1)
    assert bed.outcomes == [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_a_partition_that_goes_offline_is_told(bed):
    bed.delete(3)
    bed.partition.take_offline("its disk failed")
    assert bed.outcomes == [(-1, ErrorCode.KAFKA_STORAGE_ERROR)]


def test_the_only_replica_waits_for_nobody(bed):
    bed.partition = Partition("t", 0, TOPIC_ID, 3, bed.log, lambda _: None)
    bed.delete(3)
    assert bed.outcomes == [(3, ErrorCode.NONE)]
