"""InitProducerId, AddPartitionsToTxn and EndTxn beyond the tables of test_answers and the scenarios."""

from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.coordinator.transaction.operations import NO_PRODUCER
from odradek.coordinator.transaction.states import LAST_EPOCH, TransactionState
from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import ErrorCode
from tests.coordinator.transaction.bed import A0, A1, B0, ID, TIMEOUT_MS


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


def test_an_append_that_fails_leaves_nothing_pending(bed):
    bed.log.failures.append(OSError("disk"))
    assert bed.init() == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bed.value() is None
    assert bed.init() == (101, 0)


def test_a_second_init_while_the_first_is_being_written_is_concurrent(bed):
    bed.log.held_back = True
    assert bed.init() is None
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS


def test_after_the_last_epoch_comes_a_new_producer_id(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    assert bed.init() == (101, 0)


def test_a_repeated_request_for_a_new_producer_id_is_given_the_same_one(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    assert bed.init((100, LAST_EPOCH)) == (101, 0)
    assert bed.init((100, LAST_EPOCH)) == (101, 0)


def test_fencing_the_last_epoch_leads_to_a_new_producer_id(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    bed.add((100, LAST_EPOCH), A0)
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.markers == [(A0, 100, LAST_EPOCH + 1, "abort")]
    assert (bed.value().producer_id, bed.value().producer_epoch) == (101, 0)


# AddPartitionsToTxn: what the transaction is going to write to.
def test_the_first_partitions_begin_a_transaction(bed):
    producer = bed.init()
    bed.advance(5)
    assert bed.add(producer, A0, A1, version=2) is None
    (name, value) = bed.records()[-1]
    now_ms = bed.clock.now_ms()
    assert name == ID
    assert (value.status, value.partitions) == (TransactionState.ONGOING, {A0, A1})
    assert (value.start_ms, value.last_update_ms, value.client_transaction_version) == (now_ms, now_ms, 2)


def test_more_partitions_keep_the_time_of_the_start(bed):
    producer = bed.init()
    bed.add(producer, A0)
    start_ms = bed.clock.now_ms()
    bed.advance(5)
    bed.add(producer, B0)
    assert (bed.value().partitions, bed.value().start_ms) == ({A0, B0}, start_ms)


def test_an_append_that_fails_adds_nothing(bed):
    producer = bed.init()
    bed.log.failures.append(OSError("disk"))
    assert bed.add(producer, A0) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bed.state() is TransactionState.EMPTY
    assert bed.add(producer, A0) is None


# EndTxn: two phases, and every state's answer to a commit and an abort, in both versions.
def test_the_next_request_of_the_same_turn_finds_the_transaction_complete(bed):
    producer = bed.init()
    for _ in range(3):
        assert bed.add(producer, A0, run=False) is None
        assert bed.commit(producer, run=False) == NO_PRODUCER
    assert bed.verify(producer, A0) == {A0: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(bed.markers) == 3


def test_the_answer_is_there_when_the_call_returns_and_the_markers_when_the_turn_ends(bed):
    producer = bed.init()
    bed.add(producer, A0, A1)
    assert bed.commit(producer, run=False) == NO_PRODUCER
    assert (bed.markers, bed.written_states()[-1]) == ([], "PREPARE_COMMIT")
    bed.logs.turn()
    assert [partition for partition, *_ in bed.markers] == [A0, A1]
    assert bed.written_states()[-1] == "COMPLETE_COMMIT"


def test_when_the_answer_has_come_the_next_transaction_may_begin(bed):
    producer = bed.init()
    for _ in range(3):
        bed.add(producer, A0)
        answers = []
        reply = bed.runtime.write(0, lambda shard: shard.end_txn(ID, producer, commit=True, client_version=0))
        reply.when_done(answers.append)
        bed.logs.turn()
        assert (answers, bed.shard.transactions.pending) == ([NO_PRODUCER], {})
        assert bed.written_states()[-1] == "COMPLETE_COMMIT"


def test_after_the_last_epoch_a_new_client_gets_a_new_producer_id(bed):
    bed.init()
    put(bed, producer_epoch=LAST_EPOCH)
    last = (100, LAST_EPOCH)
    bed.add(last, A0, version=2)
    assert bed.commit(last, version=2) == (101, 0)
    assert bed.markers == [(A0, 100, LAST_EPOCH + 1, "commit")]
    prepare, complete = (value for _, value in bed.records()[-2:])
    assert (prepare.producer_id, prepare.producer_epoch, prepare.next_producer_id) == (100, LAST_EPOCH + 1, 101)
    assert (complete.producer_id, complete.producer_epoch) == (101, 0)
    assert (complete.previous_producer_id, complete.next_producer_id) == (100, -1)
    assert bed.commit(last, version=2) == (101, 0)


def test_a_fence_at_the_last_epoch_there_is_stays_with_it_and_gives_a_new_producer_id(bed):
    producer = bed.init()
    bed.add(producer, A0)
    put(bed, producer_epoch=LAST_EPOCH + 1)
    assert bed.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.markers == [(A0, 100, LAST_EPOCH + 1, "abort")]
    assert bed.init() == (101, 1)


def test_an_abort_of_nothing_has_no_markers(bed):
    producer = bed.init()
    assert bed.abort(producer, version=2) == (100, 1)
    assert bed.markers == []
    assert bed.value().start_ms == bed.clock.now_ms()
