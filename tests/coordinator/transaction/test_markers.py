"""The second phase: every partition gets its marker, sooner or later, and nobody else waits for it."""

import pytest

from odradek.coordinator.transaction.markers import RETRY_BACKOFF_MS
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode

from .bed import A0, A1, B0, Bed


@pytest.fixture
def bed():
    return Bed()


def test_a_partition_that_cannot_be_written_to_is_tried_until_it_can(bed):
    producer = bed.init()
    bed.add(producer, A0, B0)
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    bed.commit(producer)
    bed.advance(50 * RETRY_BACKOFF_MS)
    assert (bed.state(), bed.markers) == (TransactionState.PREPARE_COMMIT, [(B0, 100, 0, "commit")])
    bed.refusals.clear()
    bed.advance(RETRY_BACKOFF_MS)
    assert (bed.state(), bed.markers[1:]) == (TransactionState.COMPLETE_COMMIT, [(A0, 100, 0, "commit")])
    assert bed.add(producer, A1) is None


def test_a_transaction_that_waits_for_a_partition_holds_up_no_other(bed):
    stuck, free = bed.init(), bed.init(transactional_id="free")
    bed.add(stuck, A0)
    bed.add(free, B0, transactional_id="free")
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    bed.commit(stuck)
    bed.commit(free, transactional_id="free")
    assert (bed.state(), bed.state("free")) == (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED],
)
def test_a_partition_that_needs_no_marker_any_more_is_passed_over(bed, code):
    producer = bed.init()
    bed.add(producer, A0, B0)
    bed.refusals[A0] = code
    bed.abort(producer)
    assert (bed.state(), bed.markers) == (TransactionState.COMPLETE_ABORT, [(B0, 100, 0, "abort")])


def test_a_partition_that_is_deleted_while_its_marker_waits_is_waited_for_no_more(bed):
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    producer = bed.init()
    bed.add(producer, A0)
    bed.commit(producer)
    assert bed.state() is TransactionState.PREPARE_COMMIT
    bed.refusals[A0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    bed.advance(RETRY_BACKOFF_MS)
    assert (bed.state(), bed.markers) == (TransactionState.COMPLETE_COMMIT, [])


def test_many_markers_leave_the_loop_to_others_in_between(bed):
    producer = bed.init()
    partitions = [("many", index) for index in range(1000)]
    bed.add(producer, *partitions)
    assert bed.commit(producer) is not None
    assert 0 < len(bed.markers) < 1000
    for _ in range(10):
        bed.advance(1)
    assert [partition for partition, *_ in bed.markers] == partitions
    assert bed.state() is TransactionState.COMPLETE_COMMIT


def test_complete_that_cannot_be_written_is_tried_again(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.log.failures += [(None, True), OSError("disk")]
    bed.commit(producer)
    assert bed.written_states()[-1] == "PREPARE_COMMIT"
    assert bed.add(producer, A0) == ErrorCode.CONCURRENT_TRANSACTIONS
    bed.advance(RETRY_BACKOFF_MS)
    assert bed.written_states()[-1] == "COMPLETE_COMMIT"
    assert bed.add(producer, A0) is None


def test_a_shard_that_is_let_go_writes_no_more_markers(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    bed.commit(producer)
    bed.runtime.unload(0)
    bed.refusals.clear()
    bed.advance(60_000)
    assert bed.markers == []
