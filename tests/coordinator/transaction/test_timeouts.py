"""What time ends: open transactions, and transactional ids."""

from odradek.coordinator.transaction.config import NO_TIMEOUT_MS
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode

from .bed import A0, TIMEOUT_MS

INTERVAL_MS = 10_000
DAY_MS = 24 * 60 * 60 * 1000
EXPIRATION_MS = 7 * DAY_MS


def test_a_transaction_past_its_timeout_is_aborted_and_its_producer_fenced(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.advance(TIMEOUT_MS + INTERVAL_MS)
    assert bed.markers == [(A0, 100, 1, "abort")]
    assert bed.state() is TransactionState.COMPLETE_ABORT
    assert bed.commit(producer) == ErrorCode.PRODUCER_FENCED


def test_a_transaction_within_its_timeout_is_left_alone(bed):
    bed.add(bed.init(), A0)
    bed.advance(TIMEOUT_MS)
    assert bed.state() is TransactionState.ONGOING


def test_a_transaction_that_was_open_before_a_crash_times_out_all_the_same(bed):
    bed.add(bed.init(), A0)
    bed.crash()
    bed.advance(TIMEOUT_MS + INTERVAL_MS)
    assert bed.state() is TransactionState.COMPLETE_ABORT


def test_a_transaction_that_an_outside_manager_ends_has_no_timeout(bed):
    producer = bed.init(timeout_ms=NO_TIMEOUT_MS)
    bed.add(producer, A0)
    bed.crash()
    bed.advance(DAY_MS)
    assert bed.state() is TransactionState.ONGOING
    bed.commit(producer)
    assert bed.markers == [(A0, 100, 0, "commit")]


def test_a_transaction_that_an_outside_manager_ends_is_aborted_for_the_next_producer(bed):
    bed.add(bed.init(timeout_ms=NO_TIMEOUT_MS), A0)
    assert bed.init(timeout_ms=NO_TIMEOUT_MS) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.markers == [(A0, 100, 1, "abort")]


def test_the_next_producer_of_the_id_may_have_a_timeout_again(bed):
    bed.init(timeout_ms=NO_TIMEOUT_MS)
    producer = bed.init()
    bed.add(producer, A0)
    bed.advance(TIMEOUT_MS + INTERVAL_MS)
    assert bed.state() is TransactionState.COMPLETE_ABORT


def test_a_fence_that_cannot_be_written_is_tried_again(bed):
    bed.add(bed.init(), A0)
    bed.advance(TIMEOUT_MS)
    bed.log.failures.append(OSError("disk"))
    bed.advance(INTERVAL_MS)
    assert bed.state() is TransactionState.ONGOING
    bed.advance(INTERVAL_MS)
    assert bed.state() is TransactionState.COMPLETE_ABORT


def test_without_an_open_transaction_nobody_looks_for_timeouts(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.commit(producer)
    bed.advance(INTERVAL_MS)
    assert not bed.shard.transactions.context.is_scheduled("abort-timed-out")


def test_an_id_that_nobody_uses_is_forgotten(bed):
    bed.init()
    bed.advance(EXPIRATION_MS + 3_600_000)
    assert bed.value() is None
    assert bed.written_states() == ["EMPTY", None]
    assert bed.shard.transactions.pending == {}
    bed.crash()
    assert bed.value() is None


def test_an_id_in_use_is_kept(bed):
    producer = bed.init()
    bed.advance(EXPIRATION_MS - 1)
    bed.init(producer)
    bed.advance(DAY_MS)
    assert bed.state() is TransactionState.EMPTY


def test_an_open_transaction_without_a_timeout_never_expires(bed):
    producer = bed.init(timeout_ms=2**31 - 1)
    bed.add(producer, A0)
    bed.advance(2 * EXPIRATION_MS)
    assert bed.state() is TransactionState.ONGOING
