"""Transactions whose marker was lost with the power: what comes next aborts them, and nothing else is aborted."""

import pytest

from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, Warnings, open_log, read
from tests.storage.transactional import end, send, state_of


def markers(log):
    """(offset, epoch, kind) of each."""
    data = read(log, 0, max_bytes=100_000)
    return [
        (header.base_offset, header.producer_epoch, read_control_record(record)[0])
        for position, header in iter_batches(data)
        if header.is_control
        for record in read_records(data, position)
    ]


@pytest.fixture
def file_system():
    return MemoryFileSystem()


@pytest.fixture
def log(file_system):
    """A transaction of epoch 4 is open, and its marker of epoch 5 is lost."""
    log = open_log(file_system)
    send(log, epoch=4, count=2)
    return log


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_commit_of_a_later_transaction_aborts_the_one_that_was_left_open(log, file_system, version):
    info = end(log, commit=True, epoch=6, version=version)
    assert markers(log) == [(2, 4, ABORT), (3, 6, COMMIT)]
    assert (info.first_offset, log.first_unstable_offset) == (3, None)
    assert log.aborted_transactions(0, 4) == [(7, 0)]
    assert state_of(open_log(file_system)) == state_of(log)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_commit_of_the_open_transaction_aborts_nothing(log, version):
    end(log, commit=True, epoch=5, version=version)
    assert (markers(log), log.aborted_transactions(0, 3)) == ([(2, 5, COMMIT)], [])


def test_a_commit_with_the_epoch_of_its_transaction_aborts_nothing(log):
    end(log, commit=True, epoch=4, version=1)
    assert (markers(log), log.aborted_transactions(0, 3)) == ([(2, 4, COMMIT)], [])


def test_an_abort_of_a_later_transaction_is_enough(log):
    end(log, commit=False, epoch=9, version=2)
    assert (markers(log), log.aborted_transactions(0, 3)) == ([(2, 9, ABORT)], [(7, 0)])


def test_a_commit_that_is_refused_aborts_nothing(log):
    send(log, epoch=0, producer=8)
    end(log, commit=True, producer=8, coordinator_epoch=3)
    send(log, 1, epoch=0, producer=8)
    before = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        end(log, commit=True, producer=8, epoch=9, coordinator_epoch=2, version=2)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == before


@pytest.mark.parametrize("commit", [True, False])
def test_a_batch_of_a_later_epoch_begins_a_transaction_of_its_own(log, file_system, commit):
    assert send(log, epoch=5).first_offset == 3
    assert (markers(log), log.first_unstable_offset) == ([(2, 4, ABORT)], 3)
    end(log, commit=commit, epoch=6, version=2)
    assert log.aborted_transactions(0, 5) == ([(7, 0)] if commit else [(7, 0), (7, 3)])
    assert state_of(open_log(file_system)) == state_of(log)


def test_a_batch_that_is_refused_aborts_nothing(log):
    for sequence, verified in ((1, True), (0, False)):
        with pytest.raises(KafkaError):
            send(log, sequence, epoch=5, verified=verified)
    assert (markers(log), log.log_end_offset) == ([], 2)


def test_a_batch_of_the_same_epoch_goes_on_with_the_open_transaction(log):
    assert send(log, 2, epoch=4).first_offset == 2
    end(log, commit=True, epoch=5, version=2)
    assert (markers(log), log.aborted_transactions(0, 4)) == ([(3, 5, COMMIT)], [])


def test_records_of_the_broker_itself_begin_a_transaction_of_their_own(log):
    log.coordinator_appends.append_internal([(b"key", b"value")], leader_epoch=0, now_ms=NOW_MS, producer=(7, 5))
    assert (markers(log), log.first_unstable_offset) == ([(2, 4, ABORT)], 3)


def test_transactions_of_other_producers_stay_open(log):
    send(log, producer=8, epoch=0)
    end(log, commit=True, epoch=7, version=2)
    assert (log.first_unstable_offset, log.aborted_transactions(0, 5)) == (2, [(7, 0)])


def test_the_abort_is_told():
    warn = Warnings()
    log = open_log(warn=warn)
    send(log, epoch=4)
    send(log, epoch=5)
    (fields,) = warn.fields("the end of a transaction was lost: aborting it")
    assert (fields["producer_id"], fields["producer_epoch"], fields["start_offset"]) == (7, 4, 0)
