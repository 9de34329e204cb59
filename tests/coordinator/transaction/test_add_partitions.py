"""AddPartitionsToTxn: what the transaction is going to write to."""

import pytest

from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode

from .bed import A0, A1, B0, ID


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


def test_partitions_that_are_in_are_not_written_again(bed):
    producer = bed.init()
    bed.add(producer, A0, A1)
    assert bed.add(producer, A1) is None
    assert bed.written_states() == ["EMPTY", "ONGOING"]


@pytest.mark.parametrize(
    ("producer", "code"),
    [
        ((99, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ((100, 1), ErrorCode.PRODUCER_FENCED),
        ((100, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_nobody_but_the_producer_adds_partitions(bed, producer, code):
    bed.init()
    assert bed.add(producer, A0) == code
    assert bed.verify(producer, A0) == code
    assert bed.written_states() == ["EMPTY"]


def test_an_unknown_transactional_id_has_no_producer(bed):
    assert bed.add((100, 0), A0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert bed.verify((100, 0), A0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_partitions_cannot_be_added_while_a_change_is_being_written(bed):
    producer = bed.init()
    bed.log.held_back = True
    assert bed.add(producer, A0) is None
    assert bed.add(producer, A1) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_partitions_cannot_be_added_while_markers_are_missing(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    bed.commit(producer)
    assert bed.add(producer, A0) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.verify(producer, A0) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_verification_tells_partitions_that_are_in_from_those_that_are_not(bed):
    producer = bed.init()
    bed.add(producer, A0)
    assert bed.verify(producer, A0, A1) == {A0: ErrorCode.NONE, A1: ErrorCode.TRANSACTION_ABORTABLE}


def test_verification_does_not_see_what_is_still_being_written(bed):
    producer = bed.init()
    bed.log.held_back = True
    assert bed.add(producer, A0) is None
    assert bed.verify(producer, A0) == {A0: ErrorCode.TRANSACTION_ABORTABLE}


def test_an_append_that_fails_adds_nothing(bed):
    producer = bed.init()
    bed.log.failures.append(OSError("disk"))
    assert bed.add(producer, A0) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bed.state() is TransactionState.EMPTY
    assert bed.add(producer, A0) is None
