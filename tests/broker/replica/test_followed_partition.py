"""What a follower does with its leader's answers."""

import errno

import pytest

from odradek.broker.replica.followed_partition import Followed, FollowedPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch
from odradek.protocol.records import Record, build_batch
from tests.broker.replica.replication_bed import FIRST, ReplicationBed
from tests.memory_filesystem import MemoryFile

EPOCH = 9


class Bed:
    """A follower whose log has epochs: 0 up to offset 4, 2 up to 7, 5 up to 10."""

    def __init__(self):
        self.partition = ReplicationBed().partition
        self.log = self.partition.log
        for epoch, count in ((0, 4), (2, 3), (5, 3)):
            for _ in range(count):
                self.log.append(build_batch([Record(timestamp=0, value=b"v")]), leader_epoch=epoch, now_ms=0)
        self.partition.become_follower(FIRST, EPOCH)
        self.followed = FollowedPartition(self.partition)

    def take(self, **fields):
        return self.followed.take(fetch.PartitionData(**{"high_watermark": 3, "log_start_offset": 0} | fields), 0)

    def diverge(self, epoch, end_offset):
        return self.take(diverging_epoch=fetch.EpochEndOffset(epoch, end_offset))


@pytest.fixture
def bed():
    return Bed()


def batch_at(offset, epoch):
    return build_batch([Record(timestamp=0, value=b"w")], base_offset=offset, leader_epoch=epoch)


def test_a_follower_asks_for_what_is_behind_its_end_and_names_its_last_epoch(bed):
    asked = bed.followed.request(100)
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch, asked.partition_max_bytes) == (
        10,
        5,
        EPOCH,
        100,
    )


def test_an_empty_log_begins_again_where_the_leaders_first_batch_does_whose_start_lies_within_it(bed):
    bed.partition.begin_anew_at(25, 0)
    batch = build_batch([Record(timestamp=0, value=b"w")] * 10, base_offset=20, leader_epoch=6)
    assert bed.take(records=batch, log_start_offset=25, high_watermark=30) is Followed.FETCHED
    assert (bed.log.log_start_offset, bed.log.log_end_offset) == (25, 30)
    assert bed.take(records=batch, log_start_offset=25, high_watermark=30) is Followed.STOPPED


def test_a_follower_goes_on_when_a_full_disk_has_room_again_and_tells_of_it_once(bed, monkeypatch, told):
    def append(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(MemoryFile, "append", append)
        for _ in range(3):
            assert bed.take(records=batch_at(10, 6)) is Followed.BACK_OFF
    assert len(told) == 1
    assert bed.take(records=batch_at(10, 6)) is Followed.FETCHED
    assert bed.log.log_end_offset == 11


@pytest.mark.parametrize(
    ("epoch", "end_offset", "cut_to"),
    [
        (5, 8, 8),
        (5, 30, 10),
        # The leader's epoch 2 is longer than the follower's, and shorter.
        (2, 9, 7),
        (2, 5, 5),
        # An epoch that the follower does not have.
        (4, 9, 7),
        (3, 5, 5),
        (1, 6, 4),
    ],
)
def test_a_log_is_cut_where_neither_has_what_the_other_lacks(bed, epoch, end_offset, cut_to):
    bed.diverge(epoch, end_offset)
    assert bed.log.log_end_offset == cut_to


def test_a_log_is_not_cut_to_the_high_watermark(bed):
    bed.take(high_watermark=2)
    bed.diverge(5, 9)
    assert (bed.log.log_end_offset, bed.partition.high_watermark) == (9, 2)


def test_batches_are_appended_and_the_leaders_high_watermark_and_start_are_taken_over(bed):
    assert bed.take(records=batch_at(10, 6), high_watermark=11, log_start_offset=3) is Followed.FETCHED
    assert (bed.log.log_end_offset, bed.partition.high_watermark, bed.log.log_start_offset) == (11, 11, 3)


def test_a_high_watermark_comes_without_records_too(bed):
    bed.take(high_watermark=8)
    assert bed.partition.high_watermark == 8


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, Followed.OUT_OF_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, Followed.STOPPED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Followed.BACK_OFF),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Followed.BACK_OFF),
        (ErrorCode.UNKNOWN_TOPIC_ID, Followed.BACK_OFF),
    ],
)
def test_an_error_of_the_leaders_changes_nothing(bed, error, outcome):
    assert bed.take(error_code=error, high_watermark=-1) is outcome
    assert (bed.log.log_end_offset, bed.partition.high_watermark) == (10, 0)


def test_damaged_batches_come_again(bed):
    damaged = bytearray(batch_at(10, 6))
    damaged[-1] ^= 1
    assert bed.take(records=bytes(damaged)) is Followed.BACK_OFF
    assert bed.log.log_end_offset == 10


def test_batches_that_do_not_follow_stop_the_follower(bed):
    assert bed.take(records=batch_at(4, 6)) is Followed.STOPPED
    assert bed.log.log_end_offset == 10


@pytest.mark.parametrize("change", ["leads", "other epoch", "offline"])
def test_an_answer_to_an_epoch_that_is_over_changes_nothing(bed, change):
    if change == "leads":
        bed.partition.become_leader(EPOCH + 1)
    elif change == "other epoch":
        bed.partition.become_follower(3, EPOCH + 1)
    else:
        bed.partition.take_offline("broken")
    assert bed.diverge(0, 1) is Followed.STOPPED
    assert bed.take(records=batch_at(10, 6)) is Followed.STOPPED
    assert bed.followed.begin_at(20, 30, 0) is Followed.STOPPED
    assert bed.log.log_end_offset == 10


@pytest.mark.parametrize(("start", "end", "found"), [(0, 6, (0, 6)), (20, 30, (20, 20)), (5, 30, (0, 10))])
def test_out_of_range_a_follower_goes_back_to_the_leaders_end_or_begins_at_its_start(bed, start, end, found):
    bed.followed.begin_at(start, end, 0)
    assert (bed.log.log_start_offset, bed.log.log_end_offset) == found


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID])
def test_a_leader_that_does_not_know_yet_that_it_leads_is_no_warning(bed, error, told):
    bed.take(error_code=error)
    assert told == []
    bed.take(error_code=error)
    bed.take(error_code=error)
    assert told == [f"the leader answered {error.name}"]


@pytest.fixture
def told(monkeypatch):
    """The reasons of warnings."""
    found = []
    monkeypatch.setattr(
        "odradek.broker.replica.followed_partition.broker_log.warn", lambda _, **what: found.append(what["reason"])
    )
    return found
