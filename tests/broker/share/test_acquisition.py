"""Acquiring records: which records a member gets, and how they are told."""

import pytest

from odradek.broker.share.acquisition import RECORD_LIMIT, ReadBatch
from odradek.broker.share.in_flight import ShareLimits
from odradek.broker.share.read_batches import slice_of
from odradek.coordinator.share.state import PartitionState, StateBatch
from odradek.storage.log.local_log import LogSlice
from tests.broker.share.bed import ACCEPT, GAP, RELEASE, Bed
from tests.memory_filesystem import MemoryFile


def test_members_get_different_records_in_whole_record_batches():
    bed = Bed((0, 9), (10, 19), (20, 29))
    assert bed.fetch("a", most=5) == [(0, 9, 1)]
    assert bed.fetch("b", most=15) == [(10, 29, 1)]
    assert bed.fetch("c") == []
    assert bed.states() == [0, "0-9 ACQUIRED 1 a", "10-29 ACQUIRED 1 b"]


def test_a_batch_size_divides_the_records_at_record_batches():
    bed = Bed((0, 3), (4, 7), (8, 11), (12, 15))
    assert bed.fetch(batch_size=5) == [(0, 7, 1), (8, 15, 1)]
    assert [batch.first_offset for batch in bed.window.batches] == [0, 8]


def test_the_record_limit_is_never_exceeded():
    bed = Bed((0, 9), (10, 19))
    assert bed.fetch(most=4, mode=RECORD_LIMIT) == [(0, 3, 1)]
    # The rest of the record batch is in the window, but was never delivered.
    assert bed.states() == [0, "0-3 ACQUIRED 1 m", "4-9 AVAILABLE 0"]
    assert bed.fetch("n", most=8, mode=RECORD_LIMIT) == [(4, 9, 1), (10, 11, 1)]
    assert bed.fetch(most=100, mode=RECORD_LIMIT) == [(12, 19, 1)]


def test_the_limit_of_locks_counts_the_whole_window_and_admits_records_within_it():
    bed = Bed((0, 9), (10, 19), (20, 29), limits=ShareLimits(partition_max_record_locks=15))
    assert bed.fetch() == [(0, 19, 1)]
    assert bed.fetch() == []
    assert bed.acknowledge((5, 6, RELEASE)) is None
    assert bed.fetch() == [(5, 6, 2)]
    assert bed.acknowledge((0, 9, ACCEPT)) is None
    assert (bed.window.start_offset, bed.window.in_flight_records) == (10, 10)
    assert bed.fetch() == [(20, 29, 1)]


def test_released_records_are_told_apart_by_delivery_count_and_batch_in_flight():
    bed = Bed((0, 4), (5, 9))
    bed.fetch(batch_size=5)
    bed.acknowledge((0, 1, RELEASE))
    assert bed.fetch() == [(0, 1, 2)]
    bed.acknowledge((1, 1, RELEASE), (3, 6, RELEASE))
    # Of one batch 1 was delivered twice, 3 and 4 once; 5 and 6 are of the next batch.
    assert bed.fetch() == [(1, 1, 3), (3, 4, 2), (5, 6, 2)]


def test_records_at_half_of_their_deliveries_are_given_in_smaller_and_smaller_numbers():
    bed = Bed((0, 15), limits=ShareLimits(delivery_count_limit=5))
    sizes = []
    for _ in range(5):
        acquired = bed.fetch()
        sizes.append(sum(last - first + 1 for first, last, _ in acquired))
        assert bed.release() == [None]
    # Deliveries 1 to 3 whole, the fourth in halves, the last one by one.
    assert sizes[:3] == [16, 16, 16]
    assert sizes[3] == 8
    assert sizes[4] == 1
    assert all(run.delivery_count <= 5 for run in bed.window.runs())
    while bed.window.batches:
        acquired = bed.fetch()
        assert acquired
        bed.release()
    assert bed.window.start_offset == 16


def test_with_a_limit_of_two_deliveries_no_record_is_throttled():
    bed = Bed((0, 9), limits=ShareLimits(delivery_count_limit=2))
    assert bed.fetch() == [(0, 9, 1)]
    bed.release()
    assert bed.fetch() == [(0, 9, 2)]
    bed.release()
    assert bed.states() == [10]


def test_a_throttled_batch_is_not_given_together_with_others():
    bed = Bed((0, 3), (4, 7), limits=ShareLimits(delivery_count_limit=4))
    bed.fetch(batch_size=4)
    bed.acknowledge((4, 7, RELEASE))
    assert bed.fetch() == [(4, 7, 2)]
    bed.acknowledge((0, 7, RELEASE))
    assert bed.fetch() == [(0, 3, 2)]
    assert bed.fetch() == [(4, 5, 3)]


def test_records_that_compaction_removed_are_archived():
    bed = Bed((0, 9), (10, 19))
    bed.fetch()
    bed.release()
    # The log has nothing before 5 any more: a read from 0 begins there.
    assert bed.fetch(batches=[ReadBatch(5, 9, 0, 0), ReadBatch(10, 19, 0, 0)]) == [(5, 19, 2)]
    assert bed.states() == [5, "0-4 ARCHIVED 1", "5-19 ACQUIRED 2 m"]
    assert bed.window.delivery_complete_count == 0
    assert bed.acknowledge((5, 19, ACCEPT)) is None
    assert bed.states() == [20]


def test_gaps_in_the_stored_state_are_acquired_once_more():
    stored = PartitionState(2, 1, 0, 5, (StateBatch(5, 9, 2, 1), StateBatch(15, 19, 0, 1)))
    bed = Bed((0, 29), state=stored)
    assert bed.window.next_fetch_offset() == 0
    assert bed.window.delivery_complete_count == 5
    assert bed.fetch() == [(0, 4, 1), (10, 14, 1), (15, 19, 2), (20, 29, 1)]
    assert bed.window.open_gap is None
    assert bed.acknowledge((0, 4, ACCEPT)) is None
    assert bed.window.start_offset == 10


def test_a_gap_that_the_log_does_not_fill_holds_nothing_up():
    stored = PartitionState(2, 1, 5, 5, (StateBatch(8, 12, 2, 1),))
    limits = ShareLimits(partition_max_record_locks=5)
    bed = Bed((0, 4), (8, 12), (13, 14), state=stored, limits=limits)
    # Compaction has removed 5 to 7. The window is full of records that are done with.
    assert bed.fetch() == []
    assert bed.fetch() == [(13, 14, 1)]
    assert bed.window.start_offset == 13
    # Retention has removed the gap.
    bed = Bed((8, 14), state=stored, limits=limits)
    bed.window.log_starts_at(7)
    assert (bed.window.start_offset, bed.window.next_fetch_offset()) == (7, 7)


def test_records_of_aborted_transactions_do_not_fill_the_window():
    bed = Bed((0, 4), limits=ShareLimits(partition_max_record_locks=5))
    aborted = [ReadBatch(0, 4, 0, 1, 7, is_transactional=True)]
    woken = bed.woken
    assert bed.fetch(batches=aborted, aborted=[(7, 0)]) == []
    # Other fetches that wait have room, too.
    assert (bed.states(), bed.woken) == ([5], woken + 1)
    bed.log.append((5, 9))
    assert bed.fetch() == [(5, 9, 1)]


def test_a_response_has_records_even_if_the_log_lost_all_that_are_acquired():
    whole = LogSlice(MemoryFile(), 0, 60)
    batches = [ReadBatch(0, 4, 0, 20), ReadBatch(8, 9, 20, 40)]
    for first, last, length in ((0, 4, 20), (4, 8, 60), (9, 9, 40), (5, 7, 60)):
        assert len(slice_of(whole, batches, first, last)) == length


def test_the_start_offset_comes_to_a_gap_and_does_not_pass_it():
    stored = PartitionState(2, 1, 0, 5, (StateBatch(0, 4, 2, 1), StateBatch(10, 14, 2, 1), StateBatch(15, 19, 0, 1)))
    bed = Bed((0, 19), state=stored)
    assert bed.window.start_offset == 5
    assert bed.fetch(most=3, mode=RECORD_LIMIT) == [(5, 7, 1)]
    assert bed.acknowledge((5, 7, ACCEPT)) is None
    assert bed.window.start_offset == 8
    assert bed.fetch() == [(8, 9, 1), (15, 19, 2)]
    assert bed.acknowledge((8, 9, ACCEPT)) is None
    assert bed.window.start_offset == 15


def test_nothing_below_the_start_offset_is_acquired_anew_if_the_log_begins_within_a_batch():
    bed = Bed((0, 4))
    assert bed.fetch() == [(0, 4, 1)]
    bed.window.log_starts_at(8)
    assert bed.fetch(batches=[ReadBatch(5, 11, 0, 0)], most=2, mode=RECORD_LIMIT) == [(8, 9, 1)]
    assert bed.fetch(batches=[ReadBatch(5, 11, 0, 0)]) == [(10, 11, 1)]


@pytest.mark.parametrize("is_split", [False, True])
def test_records_of_aborted_transactions_are_archived_and_not_told(is_split):
    batches = [
        ReadBatch(0, 4, 0, 0, producer_id=1, is_transactional=True),
        ReadBatch(5, 9, 0, 0, producer_id=2, is_transactional=True),
        ReadBatch(10, 10, 0, 0, producer_id=1, is_transactional=True, is_abort=True),
        ReadBatch(11, 14, 0, 0, producer_id=1, is_transactional=True),
        ReadBatch(15, 15, 0, 0),
    ]
    bed = Bed((0, 15))
    if is_split:
        bed.fetch()
        bed.acknowledge((15, 15, RELEASE))
        bed.release()
    told = bed.fetch(batches=batches, aborted=[(1, 0)])
    assert [(first, last) for first, last, _ in told] == [(5, 15)] if not is_split else [(5, 14), (15, 15)]
    assert (bed.window.start_offset, bed.window.delivery_complete_count) == (5, 0)
    # The client acknowledges the marker as a gap.
    assert bed.acknowledge((5, 9, ACCEPT), (10, 10, GAP), (11, 15, ACCEPT)) is None
    assert bed.states() == [16]


def test_a_new_group_begins_where_its_config_says():
    bed = Bed((0, 9), (10, 19), state=PartitionState(0, 0, -1, 0, ()), start_offset=10)
    assert bed.fetch() == [(10, 19, 1)]
    assert bed.window.start_offset == 10
