"""What a follower's Fetch reads, and what the leader learns by it."""

import pytest

from odradek.broker.replica.fetch_partitions import FetchPartitions
from odradek.broker.replica.follower_fetch import FollowerFetchRead
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch
from tests.broker.replica.replication_bed import FIRST, LEADER, LEADER_EPOCH, SECOND, TOPIC_ID, ReplicationBed
from tests.memory_filesystem import MemoryFileSystem


def read_of(bed, node_id=FIRST, offset=0, *, epoch=LEADER_EPOCH, last_fetched_epoch=-1, broker_epoch=20):
    asked = fetch.FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    partitions = FetchPartitions()
    partitions.ask([fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[asked])], topic_keys_are_ids=True)
    return FollowerFetchRead(
        partitions,
        lambda _: bed.partition,
        min_bytes=1,
        max_bytes=1 << 20,
        node_id=node_id,
        broker_epoch=broker_epoch,
        now_ms=bed.replication.now_ms,
        told_by=LEADER,
    )


def answer(read):
    [(_, data)], _ = read.read()
    return data


def test_a_follower_reads_what_is_not_replicated_yet(bed):
    bed.append(3)
    data = answer(read_of(bed))
    assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 0)
    assert bytes(data.records.read()) == bytes(bed.log.read(0, 1 << 20, upper_offset=3, min_one_batch=True).read())


def test_a_follower_that_has_all_moves_the_high_watermark_and_is_told_so(bed):
    bed.append(3)
    answer(read_of(bed, SECOND, 3, broker_epoch=30))
    assert answer(read_of(bed, FIRST, 3)).high_watermark == bed.high_watermark == 3


def test_a_fetch_waits_at_the_end_of_the_log_and_not_at_the_high_watermark(bed):
    bed.append()
    read = read_of(bed, offset=1)
    assert not read.read()[1]
    assert not read.has_enough()
    bed.append()
    assert read.has_enough()


def test_only_the_first_read_of_a_fetch_tells_what_the_follower_has(bed):
    read = read_of(bed, offset=0)
    read.read()
    fetched_ms = bed.replication.now_ms
    bed.append()
    bed.replication.now_ms += 500
    read.read()
    assert bed.followers.follower(FIRST).last_caught_up_ms == fetched_ms
    assert bed.followers.follower(FIRST).log_end_offset == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epoch": LEADER_EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": LEADER_EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"offset": 9}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"node_id": 8}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"node_id": 8, "epoch": -1}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"broker_epoch": 19}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_fetch_that_is_refused_tells_nothing(bed, fields, error):
    bed.append()
    data = answer(read_of(bed, **fields))
    assert data.error_code == error
    assert bed.followers.follower(FIRST).broker_epoch is None


def test_a_reader_at_a_wrong_leader_or_epoch_is_told_of_the_right_one(bed):
    assert answer(read_of(bed, epoch=LEADER_EPOCH - 1)).current_leader == (LEADER, LEADER_EPOCH)
    bed.partition.become_follower(SECOND, LEADER_EPOCH + 1)
    data = answer(read_of(bed))
    assert (data.error_code, data.current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, (SECOND, LEADER_EPOCH + 1))


def test_a_follower_whose_log_diverges_is_told_where_and_counts_for_nothing():
    bed = ReplicationBed(records=2)
    bed.append()
    data = answer(read_of(bed, offset=3, last_fetched_epoch=0))
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
    assert bed.followers.follower(FIRST).broker_epoch is None


def test_a_follower_that_had_led_without_writing_is_told_the_epoch_before():
    """Kafka's leaders note their epoch when they are elected, and ask for it when they follow."""
    bed = ReplicationBed(records=2)
    data = answer(read_of(bed, offset=2, last_fetched_epoch=LEADER_EPOCH - 1))
    assert data.error_code == ErrorCode.NONE
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)


def test_a_disk_that_does_not_take_a_leaders_epoch_is_reported(monkeypatch):
    bed = ReplicationBed(records=2)
    reported = []
    bed.log._parts.errors.on_error = reported.append

    def refuse(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(MemoryFileSystem, "write_atomic", refuse)
    bed.partition.become_leader(LEADER_EPOCH + 1, bed.followers)
    assert [str(error) for error in reported] == ["no space left"]


@pytest.mark.parametrize(("epoch", "error"), [(3, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)])
def test_the_leader_of_the_only_replica_knows_no_follower(bed, epoch, error):
    alone = Partition("t", 0, TOPIC_ID, 3, bed.log, lambda _: None)
    bed.partition = alone
    assert answer(read_of(bed, epoch=epoch)).error_code == error
