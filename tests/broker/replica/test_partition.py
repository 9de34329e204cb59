"""A partition's two roles, the high watermark that follows from them, and what acknowledges a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.replica.delayed_produce import DelayedProduce
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.roles import NO_LEADER, Follower
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records import Record, build_batch
from odradek.storage.log.log_config import LogConfig
from tests.broker.replica.replication_bed import TOPIC_ID, memory_log


class Bed:
    """A partition on a log in memory, whose fetches are counted instead of woken."""

    def __init__(self, config=None):
        self.woken = 0
        self.moved = 0
        self.log = memory_log(config=config)
        self.partition = Partition("t", 0, TOPIC_ID, 3, self.log, self._wake)
        self.partition.on_high_watermark = self._on_high_watermark

    def _wake(self, _):
        self.woken += 1

    def _on_high_watermark(self):
        self.moved += 1

    def append(self, count=1):
        batch = build_batch([Record(timestamp=0, value=b"v") for _ in range(count)])
        return self.partition.append(batch, 0).last_offset


@given(st.lists(st.integers(1, 3), max_size=5))
def test_the_only_replica_makes_the_high_watermark(appends):
    bed = Bed()
    for count in appends:
        bed.append(count)
    assert bed.partition.high_watermark == sum(appends)


@pytest.fixture
def bed():
    return Bed()


def test_who_waits_is_told_when_the_high_watermark_moves(bed):
    bed.append()
    assert (bed.woken, bed.moved) == (1, 1)


def test_acks_1_keep_what_flush_messages_promises():
    bed = Bed(LogConfig(flush_messages=1))
    bed.log.flush_state.on_flush_due = lambda _: None
    last_offset = bed.append()
    assert not bed.partition.is_acknowledged(last_offset, 1)
    assert bed.partition.high_watermark == 0
    bed.log.flush_state.flush(0)
    bed.partition.flushed()
    assert bed.partition.is_acknowledged(last_offset, 1)
    assert bed.partition.high_watermark == 1


def appends(bed):
    marker = EndTxnMarker(1, 0, 0, True, 0)
    return [
        bed.append,
        lambda: bed.partition.append_internal([(b"k", b"v")], 0),
        lambda: bed.partition.append_marker(marker, 0),
        bed.partition.require_leader_log,
    ]


@pytest.mark.parametrize("number", range(4), ids=["append", "internal", "marker", "read"])
def test_a_follower_serves_nobody(bed, number):
    bed.partition.become_follower(2, 4)
    with pytest.raises(KafkaError) as caught:
        appends(bed)[number]()
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bed.log.log_end_offset == 0


def test_a_follower_has_what_its_leader_has_and_its_high_watermark_up_to_there():
    leading, following = Bed(), Bed()
    following.partition.become_follower(1, 3)
    leading.append(2)
    leading.append(1)
    batches = leading.log.read(0, 1 << 20, upper_offset=3, min_one_batch=True)
    assert batches is not None
    info = following.partition.append_as_follower(batches.read(), 2, 0)
    assert info is not None
    assert (info.last_offset, following.log.log_end_offset, following.partition.high_watermark) == (2, 3, 2)
    following.partition.append_as_follower(b"", 9, 0)
    assert following.partition.high_watermark == 3


def test_a_follower_that_is_truncated_takes_its_high_watermark_back(bed):
    bed.append()
    bed.append()
    bed.partition.become_follower(2, 4)
    assert bed.partition.truncate_to(1, 0)
    assert (bed.log.log_end_offset, bed.partition.high_watermark) == (1, 1)
    assert not bed.partition.truncate_to(1, 0)


def test_a_leader_does_not_follow(bed):
    bed.append()
    for follow in (lambda: bed.partition.append_as_follower(b"", 0, 0), lambda: bed.partition.truncate_to(0, 0)):
        with pytest.raises(KafkaError) as caught:
            follow()
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bed.log.log_end_offset == 1


def test_a_broker_that_is_elected_leads_at_the_epoch_of_its_election(bed):
    bed.partition.become_follower(2, 4)
    assert (bed.partition.leader_id, bed.partition.leader_epoch, bed.partition.leader) == (2, 4, None)
    bed.partition.become_leader(5)
    bed.append()
    assert (bed.partition.leader_id, bed.partition.follower) == (NO_LEADER, None)
    assert (bed.partition.leader_epoch, bed.log.leader_epochs.latest, bed.partition.high_watermark) == (5, 5, 1)


def test_a_leader_that_is_elected_again_keeps_its_role(bed):
    role = bed.partition.leader
    bed.partition.become_leader(4)
    assert (bed.partition.leader is role, bed.partition.leader_epoch) == (True, 4)


def test_fetches_that_wait_are_woken_where_another_leader_was_elected(bed):
    bed.partition.become_follower(2, 4)
    assert bed.woken == 1


def test_a_produce_that_waits_is_sent_to_the_new_leader():
    bed = Bed(LogConfig(flush_messages=1))
    bed.log.flush_state.on_flush_due = lambda _: None
    last_offset = bed.append()
    answered = []
    operation = DelayedProduce(10.0, [(bed.partition, last_offset)], -1, answered.extend)
    assert not operation.try_complete()
    bed.partition.become_follower(2, 4)
    assert operation.try_complete()
    assert answered == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@given(st.integers(0, 20), st.integers(0, 10))
def test_a_followers_high_watermark_is_its_leaders_as_far_as_its_log_has_come(told, count):
    log = memory_log()
    if count:
        log.append(build_batch([Record(timestamp=0, value=b"v") for _ in range(count)]), leader_epoch=0, now_ms=0)
    follower = Follower(2)
    follower.leader_high_watermark = told
    assert follower.high_watermark(log, 0) == min(told, count)


@given(st.lists(st.integers(0, 50), unique=True))
def test_any_of_a_topics_partitions_may_be_here(indexes):
    partitions = Partitions()
    for index in indexes:
        partitions.add(Partition("t", index, TOPIC_ID, 0, None, lambda _: None))
    assert sorted(each.index for each in partitions) == sorted(partitions.of_topic("t")) == sorted(indexes)
    assert partitions.named(TOPIC_ID.bytes) == partitions.of_topic("t")
    for index in range(51):
        found = partitions.get("t", index)
        assert (found is not None and found.index == index) == (index in indexes)
    assert [each.index for each in partitions.remove_topic("t")] == indexes
    assert (len(partitions), partitions.of_topic("t"), partitions.named(TOPIC_ID.bytes)) == (0, {}, {})


def test_a_partition_is_taken_in_once():
    partitions = Partitions()
    partitions.add(Partition("t", 5, TOPIC_ID, 0, None, lambda _: None))
    with pytest.raises(ValueError, match="t-5"):
        partitions.add(Partition("t", 5, TOPIC_ID, 0, None, lambda _: None))
