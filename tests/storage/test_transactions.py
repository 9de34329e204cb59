"""Transactions in a partition's log (KIP-98, KIP-890): what opens them, what ends them, and what is refused meanwhile."""

import pytest

from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import read_header
from odradek.protocol.records import read_records
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import DIRECTORY, NOW_MS, append, batch, open_log, read
from tests.storage.transactional import SMALL_SEGMENTS, end, send, state_of, transactional_batch, with_history

MAX_EPOCH = 2**15 - 1


def refused(log, call, *args, **options):
    before = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        call(log, *args, **options)
    assert log.log_end_offset == before
    return caught.value.code


def begin_verification(log, header, *, starts_at_0):
    return log.producers.begin_verification(header.producer_id, header.producer_epoch, header.base_sequence, starts_at_0, NOW_MS)


def test_a_transaction_does_not_begin_unverified():
    log = open_log()
    assert refused(log, send, verified=False) == ErrorCode.INVALID_TXN_STATE
    assert log.first_unstable_offset is None
    assert log.producers.by_id == {}


def test_an_open_transaction_goes_on_without_being_verified_again():
    log = open_log()
    send(log)
    assert send(log, 1, verified=False).first_offset == 1


def test_after_a_marker_the_next_batch_must_be_verified():
    log = open_log()
    send(log)
    end(log, commit=True)
    assert refused(log, send, 1, verified=False) == ErrorCode.INVALID_TXN_STATE
    assert send(log, 1).first_offset == 2


def test_another_epoch_of_an_open_transaction_must_be_verified():
    log = open_log()
    send(log)
    assert refused(log, send, 0, epoch=1, verified=False) == ErrorCode.INVALID_TXN_STATE


def test_a_transactional_batch_without_a_producer_id_is_refused():
    log = open_log()
    assert refused(log, append, batch(transactional=True)) == ErrorCode.INVALID_TXN_STATE


def test_a_duplicate_needs_no_verification():
    log = open_log()
    info = send(log)
    end(log, commit=True)
    again = send(log, verified=False)
    assert (again.duplicate, again.first_offset) == (True, info.first_offset)


def test_a_batch_outside_of_its_producers_open_transaction_is_refused():
    log = open_log()
    send(log)
    plain = batch(producer_id=7, producer_epoch=0, base_sequence=1)
    assert refused(log, append, plain) == ErrorCode.INVALID_TXN_STATE


def test_the_first_unstable_offset_is_the_oldest_open_transactions():
    log = open_log()
    append(log)
    send(log, producer=1, count=3)
    send(log, producer=2)
    assert log.first_unstable_offset == 1
    end(log, commit=True, producer=1)
    assert log.first_unstable_offset == 4
    end(log, commit=False, producer=2)
    assert log.first_unstable_offset is None


def test_what_is_read_committed_ends_before_a_transaction_whose_marker_is_not_replicated():
    log = open_log()
    append(log)
    send(log, producer=1, count=3)
    send(log, producer=2)
    assert log.last_stable_offset(5) == 1
    marker = end(log, commit=False, producer=1).last_offset
    assert log.last_stable_offset(marker) == 1
    assert log.last_stable_offset(marker + 1) == 4
    marker = end(log, commit=True, producer=2).last_offset
    append(log)
    assert log.last_stable_offset(marker) == 4
    assert log.last_stable_offset(marker + 1) == marker + 1
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_markers_that_are_replicated_are_forgotten():
    log = open_log()
    for sequence in range(5):
        send(log, sequence, producer=1)
        end(log, commit=True, producer=1)
    log.settle_transactions(log.log_end_offset - 2)
    assert len(log._producers.loaded._ended) == 1


def test_the_first_unstable_offset_is_not_before_the_log():
    log = open_log()
    send(log, count=3)
    log.delete_records_before(2)
    assert log.first_unstable_offset == 2


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_a_control_batch_of_its_producer(commit):
    log = open_log()
    end(log, commit=commit, producer=9, epoch=3, coordinator_epoch=5)
    data = read(log, 0)
    header = read_header(data)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (9, 3, -1, 1)
    (record,) = read_records(data)
    assert read_control_record(record) == (COMMIT if commit else ABORT, 5)


def test_a_marker_of_an_old_epoch_is_fenced():
    log = open_log()
    send(log, epoch=3)
    assert refused(log, end, commit=True, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_of_an_old_coordinator_is_fenced():
    log = open_log()
    send(log)
    end(log, commit=True, coordinator_epoch=4)
    assert refused(log, end, commit=True, coordinator_epoch=3) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_fences_the_epochs_before_its_own():
    log = open_log()
    send(log)
    end(log, commit=False, epoch=1)
    assert refused(log, send, 1, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_epoch_that_a_marker_brings_begins_with_sequence_0():
    log = open_log()
    send(log, count=4)
    end(log, commit=True, epoch=1)
    assert refused(log, send, 4, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1).first_offset == 5


def test_the_sequence_goes_on_behind_a_marker_of_the_same_epoch():
    log = open_log()
    send(log, count=4)
    end(log, commit=True)
    assert refused(log, send, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 4).first_offset == 5


def test_with_an_epoch_per_transaction_a_marker_of_the_open_ones_epoch_is_fenced():
    log = open_log()
    send(log, epoch=1)
    assert refused(log, end, commit=True, epoch=1, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=2, version=2)
    assert log.first_unstable_offset is None


@pytest.mark.parametrize("epoch", [1, MAX_EPOCH])
def test_with_an_epoch_per_transaction_a_marker_may_be_repeated(epoch):
    log = open_log()
    send(log, epoch=epoch - 1)
    end(log, commit=True, epoch=epoch, version=2)
    assert end(log, commit=True, epoch=epoch, version=2).first_offset == 2


def test_a_marker_at_the_largest_epoch_ends_a_transaction_of_that_epoch():
    log = open_log()
    send(log, epoch=MAX_EPOCH)
    end(log, commit=True, epoch=MAX_EPOCH, version=2)
    assert log.first_unstable_offset is None


def test_a_verification_is_over_when_a_marker_comes_in_between():
    log = open_log()
    header = read_header(transactional_batch())
    asked = begin_verification(log, header, starts_at_0=False)
    assert log.producers.is_verifying(7, asked.epoch, asked)
    end(log, commit=False)
    assert not log.producers.is_verifying(7, asked.epoch, asked)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_leaves_the_verification_of_the_next_transaction_alone(commit):
    log = open_log()
    send(log, epoch=0)
    asked = begin_verification(log, read_header(transactional_batch(epoch=1)), starts_at_0=True)
    end(log, commit=commit, epoch=1, version=2)
    assert log.producers.is_verifying(7, asked.epoch, asked)
    assert send(log, epoch=1).first_offset == 2


@pytest.mark.parametrize(("epoch", "version"), [(0, 0), (1, 2)])
def test_a_marker_ends_the_verification_of_its_own_transaction(epoch, version):
    log = open_log()
    asked = begin_verification(log, read_header(transactional_batch(epoch=0)), starts_at_0=True)
    end(log, commit=False, epoch=epoch, version=version)
    assert not log.producers.is_verifying(7, asked.epoch, asked)


def test_a_batch_of_an_earlier_epoch_does_not_end_the_verification_of_a_later_one():
    log = open_log()
    early = begin_verification(log, read_header(transactional_batch(epoch=0)), starts_at_0=True)
    late = begin_verification(log, read_header(transactional_batch(epoch=2)), starts_at_0=True)
    with pytest.raises(KafkaError) as refusal:
        log.producers.is_verifying(7, 0, early)
    assert refusal.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.producers.is_verifying(7, 2, late)


def test_a_higher_sequence_waits_for_the_lowest_that_was_not_verified():
    log = open_log()
    for sequence in (3, 0, 5):
        begin_verification(log, read_header(transactional_batch(sequence)), starts_at_0=False)
    assert refused(log, send, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0)
    assert refused(log, send, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1, count=2).first_offset == 1


@pytest.mark.parametrize("first", [0, 2**31 - 1])
def test_a_batch_that_comes_again_after_its_transaction_holds_up_no_other(first):
    log = open_log()
    send(log, first)
    end(log, commit=True)
    late = begin_verification(log, read_header(transactional_batch(first)), starts_at_0=False)
    assert not log.producers.is_verifying(7, late.epoch, late)
    assert send(log, (first + 1) % 2**31).first_offset == 2


def test_an_idempotent_batch_of_an_unknown_producer_waits_for_what_was_not_verified():
    log = open_log()
    begin_verification(log, read_header(transactional_batch(0)), starts_at_0=False)
    assert refused(log, append, batch(producer_id=7, producer_epoch=0, base_sequence=3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, batch(producer_id=7, producer_epoch=0, base_sequence=0)).first_offset == 0


def test_a_client_of_an_epoch_per_transaction_begins_an_unknown_producer_with_0():
    log = open_log()
    header = read_header(transactional_batch(3))
    begin_verification(log, header, starts_at_0=True)
    assert refused(log, send, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_of_the_broker_itself_opens_a_transaction_without_sequence_numbers():
    log = open_log()
    log.coordinator_appends.append_internal([(b"a", b"1"), (b"b", None)], leader_epoch=0, now_ms=NOW_MS, producer=(7, 1))
    assert log.first_unstable_offset == 0
    with pytest.raises(KafkaError) as caught:
        log.coordinator_appends.append_internal([(b"a", b"2")], leader_epoch=0, now_ms=NOW_MS, producer=(7, 0))
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=1)
    assert log.first_unstable_offset is None


def test_a_producer_does_not_expire_while_its_transaction_is_open():
    log = open_log(config=LogConfig(producer_id_expiration_ms=1000))
    send(log)
    assert log.expire_producers(NOW_MS + 10_000) == 0
    end(log, commit=True)
    assert log.expire_producers(NOW_MS + 10_000) == 1


def test_committed_transactions_are_not_among_the_aborted():
    log = open_log()
    send(log)
    end(log, commit=True)
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_a_marker_without_a_transaction_aborts_nothing():
    log = open_log()
    end(log, commit=False)
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_aborted_transactions_are_those_that_overlap():
    log = open_log()
    for number in range(4):
        send(log, number)
        end(log, commit=False)
    assert log.aborted_transactions(0, 8) == [(7, 0), (7, 2), (7, 4), (7, 6)]
    assert log.aborted_transactions(2, 5) == [(7, 2), (7, 4)]
    assert log.aborted_transactions(3, 4) == [(7, 2)]
    assert log.aborted_transactions(8, 8) == []


def test_a_transaction_aborted_segments_later_is_found_from_its_beginning():
    log = open_log(config=SMALL_SEGMENTS)
    send(log, producer=1)
    for number in range(20):
        append(log)
        if number == 10:
            assert log.aborted_transactions(0, 5) == []
    end(log, commit=False, producer=1)
    assert len(log.segments) > 2
    assert log.aborted_transactions(0, 5) == [(1, 0)]


def test_recompression_keeps_a_batch_transactional():
    log = open_log(config=LogConfig(compression_type="gzip"))
    send(log)
    assert read_header(read(log, 0)).is_transactional
    assert log.first_unstable_offset == 0


@pytest.mark.parametrize("config", [None, SMALL_SEGMENTS])
@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_knows_all_that_the_log_knew(config, clean):
    file_system, log = with_history(config)
    log.close(clean=clean, now_ms=NOW_MS)
    again = open_log(file_system, config=config, clean=clean)
    assert state_of(again) == state_of(log)


def test_a_kill_at_any_length_leaves_what_the_log_says():
    file_system, log = with_history()
    data = bytes(file_system.files[log.segments.active.path].data)
    entries = bytes(file_system.files[f"{DIRECTORY}/{0:020d}.txnindex"].data)
    seen = set()
    for length in range(0, len(data), 23):
        killed = MemoryFileSystem()
        killed.make_dirs(DIRECTORY)
        for name, content in ((".log", data[:length]), (".txnindex", entries[: length % len(entries)])):
            killed.open(f"{DIRECTORY}/{0:020d}{name}", create=True).append([content])
        again = open_log(killed)
        state = state_of(again)
        aborted = [found for found in state_of(log)[2] if found.last_offset < again.log_end_offset]
        assert state[2] == aborted
        assert all(start < again.log_end_offset for start in state[1])
        seen.add(len(aborted))
        again.close(clean=True, now_ms=NOW_MS)
        assert state_of(open_log(killed, clean=True)) == state
    assert len(seen) > 3


def test_nothing_is_appended_behind_a_fence_after_a_restart():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    end(log, commit=False, epoch=1, coordinator_epoch=2)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, clean=True)
    assert refused(again, send, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(again, end, commit=True, epoch=1, coordinator_epoch=1) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert send(again, 0, epoch=1).first_offset == 2
