"""EndTxn: two phases, and every state's answer to a commit and an abort, in both versions."""

import pytest

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.transaction.end_txn import NOBODY
from odradek.coordinator.transaction.transitions import LAST_EPOCH
from odradek.protocol.coordinator_records import TransactionLogKey
from odradek.protocol.errors import ErrorCode

from .bed import A0, A1, B0, ID

INVALID = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.PRODUCER_FENCED
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(("commit", "result"), [(True, "COMMIT"), (False, "ABORT")])
def test_a_transaction_ends_in_two_phases(bed, commit, result):
    producer = bed.init()
    bed.add(producer, A0, A1, B0)
    assert bed.end(producer, commit) == NOBODY
    assert bed.written_states() == ["EMPTY", "ONGOING", f"PREPARE_{result}", f"COMPLETE_{result}"]
    assert bed.markers == [(partition, 100, 0, result.lower()) for partition in (A0, A1, B0)]
    prepare, complete = (value for _, value in bed.records()[-2:])
    assert (prepare.partitions, complete.partitions) == ({A0, A1, B0}, frozenset())
    assert bed.shard.transactions.pending == {}


def test_no_marker_is_written_where_the_decision_cannot_be_appended(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.log.failures.append(OSError("disk"))
    assert bed.commit(producer) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (bed.markers, bed.written_states()) == ([], ["EMPTY", "ONGOING"])


def test_the_next_request_of_the_same_turn_finds_the_transaction_complete(bed):
    producer = bed.init()
    for _ in range(3):
        assert bed.add(producer, A0, run=False) is None
        assert bed.commit(producer, run=False) == NOBODY
    assert bed.verify(producer, A0) == {A0: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(bed.markers) == 3


def test_the_answer_is_there_when_the_call_returns_and_the_markers_when_the_turn_ends(bed):
    producer = bed.init()
    bed.add(producer, A0, A1)
    assert bed.commit(producer, run=False) == NOBODY
    assert (bed.markers, bed.written_states()[-1]) == ([], "PREPARE_COMMIT")
    bed.logs.turn()
    assert [partition for partition, *_ in bed.markers] == [A0, A1]
    assert bed.written_states()[-1] == "COMPLETE_COMMIT"


def test_no_marker_is_written_before_the_decision_is_committed(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.log.held_back = True
    assert bed.commit(producer) is None
    assert bed.markers == []
    bed.log.held_back = False
    bed.log.release()
    bed.logs.run()
    assert bed.written_states()[-1] == "COMPLETE_COMMIT"


def test_when_the_answer_has_come_the_next_transaction_may_begin(bed):
    producer = bed.init()
    for _ in range(3):
        bed.add(producer, A0)
        answers = []
        reply = bed.runtime.write(0, lambda shard: shard.end_txn(ID, producer, commit=True, client_version=0))
        reply.when_done(answers.append)
        bed.logs.turn()
        assert (answers, bed.shard.transactions.pending) == ([NOBODY], {})
        assert bed.written_states()[-1] == "COMPLETE_COMMIT"


def test_with_each_transaction_a_new_client_gets_the_next_epoch(bed):
    producer = bed.init()
    for epoch in range(1, 4):
        bed.add(producer, A0, version=2)
        producer = bed.commit(producer, version=2)
        assert producer == (100, epoch)
    assert [epoch for _, _, epoch, _ in bed.markers] == [1, 2, 3]


def test_after_the_last_epoch_a_new_client_gets_a_new_producer_id(bed):
    bed.init()
    _put(bed, producer_epoch=LAST_EPOCH)
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
    _put(bed, producer_epoch=LAST_EPOCH + 1)
    assert bed.init() == CONCURRENT
    assert bed.markers == [(A0, 100, LAST_EPOCH + 1, "abort")]
    assert bed.init() == (101, 1)


@pytest.mark.parametrize("version", [0, 2])
def test_nobody_but_the_producer_ends_a_transaction(bed, version):
    producer = bed.init()
    bed.add(producer, A0)
    assert bed.commit((99, 0), version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert bed.commit((100, 1), version=version) == FENCED
    assert bed.commit((100, 0), version=version, transactional_id="other") == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        ("Empty", INVALID, INVALID),
        ("CompleteCommit", NOBODY, INVALID),
        ("CompleteAbort", INVALID, NOBODY),
        ("PrepareCommit", CONCURRENT, CONCURRENT),
        ("PrepareAbort", CONCURRENT, CONCURRENT),
    ],
)
def test_an_older_client_is_answered_by_the_state(bed, state, commit, abort):
    producer = _bring(bed, state, version=0)
    before = bed.written_states()
    assert (bed.commit(producer), bed.abort(producer)) == (commit, abort)
    assert bed.written_states() == before


@pytest.mark.parametrize(
    ("state", "repeated_commit", "commit", "repeated_abort", "abort"),
    [
        ("Empty", FENCED, INVALID, FENCED, (100, 1)),
        ("CompleteCommit", (100, 1), INVALID, INVALID, (100, 2)),
        ("CompleteAbort", INVALID, INVALID, (100, 1), (100, 2)),
    ],
)
def test_a_newer_client_is_answered_by_state_and_epoch(bed, state, repeated_commit, commit, repeated_abort, abort):
    producer = _bring(bed, state, version=2)
    before = (producer[0], producer[1] - 1)
    assert bed.commit(before, version=2) == repeated_commit
    assert bed.commit(producer, version=2) == commit
    assert bed.abort(before, version=2) == repeated_abort
    assert bed.abort(producer, version=2) == abort
    assert bed.written_states()[-2:] == ["PREPARE_ABORT", "COMPLETE_ABORT"]


def test_an_abort_of_nothing_has_no_markers(bed):
    producer = bed.init()
    assert bed.abort(producer, version=2) == (100, 1)
    assert bed.markers == []
    assert bed.value().start_ms == bed.clock.now_ms()


def _bring(bed, state, version):
    """Let the transactional id be in ``state``; its producer."""
    producer = bed.init()
    if state == "Empty":
        return producer
    bed.add(producer, A0, version=version)
    if state.startswith("Prepare"):
        bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    ended = bed.end(producer, state.endswith("Commit"), version=version)
    return producer if ended == NOBODY else ended


def _put(bed, **changes):
    """Let the id be in a state that takes thousands of transactions to get to."""
    value = bed.value()._replace(**changes)
    bed.ask(lambda _: CoordinatorResult([CoordinatorRecord(TransactionLogKey(ID), value)], None))
