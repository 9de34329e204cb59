"""InitProducerId: who becomes the producer, and who is not any more."""

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transitions import LAST_EPOCH
from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import ErrorCode

from .bed import A0, ID, TIMEOUT_MS


def put(bed, **changes):
    """Let the id be in a state that takes thousands of transactions to get to."""
    value = bed.value()._replace(**changes)
    bed.ask(lambda _: CoordinatorResult([CoordinatorRecord(TransactionLogKey(ID), value)], None))


def test_a_new_transactional_id_gets_a_producer_id_and_epoch_0(bed):
    assert bed.init() == (100, 0)
    assert bed.records() == [
        (
            ID,
            TransactionLogValue(
                100, 0, TIMEOUT_MS, TransactionState.EMPTY, frozenset(), bed.clock.now_ms(), previous_producer_id=100
            ),
        )
    ]


def test_each_init_bumps_the_epoch(bed):
    assert [bed.init() for _ in range(3)] == [(100, 0), (100, 1), (100, 2)]


def test_an_append_that_fails_leaves_nothing_pending(bed):
    bed.log.failures.append(OSError("disk"))
    assert bed.init() == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bed.value() is None
    assert bed.init() == (101, 0)


def test_a_second_init_while_the_first_is_being_written_is_concurrent(bed):
    bed.log.held_back = True
    assert bed.init() is None
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS


def test_the_producer_bumps_its_own_epoch_by_naming_it(bed):
    producer = bed.init()
    assert bed.init(producer) == (100, 1)


def test_a_repeated_bump_is_given_the_same_answer(bed):
    producer = bed.init()
    assert bed.init(producer) == bed.init(producer) == (100, 1)


def test_a_repeated_bump_after_somebody_else_came_is_fenced(bed):
    producer = bed.init()
    bed.init(producer)
    bed.init()
    assert bed.init(producer) == ErrorCode.PRODUCER_FENCED


def test_a_producer_of_another_id_is_fenced(bed):
    bed.init()
    assert bed.init((7, 0)) == ErrorCode.PRODUCER_FENCED


def test_an_older_epoch_is_fenced(bed):
    producer = bed.init()
    bed.init()
    bed.init()
    assert bed.init(producer) == ErrorCode.PRODUCER_FENCED


def test_after_the_last_epoch_comes_a_new_producer_id(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    assert bed.init() == (101, 0)


def test_a_repeated_request_for_a_new_producer_id_is_given_the_same_one(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    assert bed.init((100, LAST_EPOCH)) == (101, 0)
    assert bed.init((100, LAST_EPOCH)) == (101, 0)


def test_an_open_transaction_is_aborted_with_its_producer_fenced(bed):
    producer = bed.init()
    bed.add(producer, A0)
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.markers == [(A0, 100, 1, "abort")]
    assert bed.written_states() == ["EMPTY", "ONGOING", "PREPARE_ABORT", "COMPLETE_ABORT"]
    assert bed.add(producer, A0) == ErrorCode.PRODUCER_FENCED
    assert bed.init() == (100, 2)


def test_fencing_the_last_epoch_leads_to_a_new_producer_id(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    bed.add((100, LAST_EPOCH), A0)
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.markers == [(A0, 100, LAST_EPOCH + 1, "abort")]
    assert (bed.value().producer_id, bed.value().producer_epoch) == (101, 0)


def test_while_markers_are_missing_an_init_is_concurrent(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    bed.commit(producer)
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS
