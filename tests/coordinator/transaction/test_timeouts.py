"""What time ends: open transactions, and transactional ids."""

from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transactions import NO_TIMEOUT_MS
from tests.coordinator.transaction.bed import A0, TIMEOUT_MS

INTERVAL_MS = 10_000
DAY_MS = 24 * 60 * 60 * 1000
EXPIRATION_MS = 7 * DAY_MS


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


def test_an_id_in_use_is_kept(bed):
    producer = bed.init()
    bed.advance(EXPIRATION_MS - 1)
    bed.init(producer)
    bed.advance(DAY_MS)
    assert bed.state() is TransactionState.EMPTY
