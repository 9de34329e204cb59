"""Idempotent producers (KIP-98): what is appended, what is a duplicate, what is refused."""

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, append, batch, open_log

MAX_SEQUENCE = 2**31 - 1


def send(log, sequence, *, count=1, producer=7, epoch=0, timestamp=NOW_MS):
    records = batch(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, timestamp=timestamp)
    return append(log, records)


def code_of(log, *args, **options):
    before = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        send(log, *args, **options)
    assert log.log_end_offset == before
    return caught.value.code


def test_sequences_that_follow_on_are_appended():
    log = open_log()
    assert [send(log, sequence, count=2).first_offset for sequence in (0, 2, 4)] == [0, 2, 4]


def test_each_of_the_last_five_batches_is_a_duplicate_with_its_old_offsets():
    log = open_log()
    first = [send(log, sequence) for sequence in range(6)]
    for info, sequence in zip(first[1:], range(1, 6), strict=True):
        again = send(log, sequence)
        assert (again.duplicate, again.first_offset, again.last_offset) == (True, info.first_offset, info.last_offset)
    assert log.log_end_offset == 6


def test_a_batch_older_than_the_last_five_is_out_of_order():
    log = open_log()
    for sequence in range(6):
        send(log, sequence)
    assert code_of(log, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(("sequence", "count"), [(3, 1), (1, 1), (0, 1), (0, 3)])
def test_a_gap_or_an_overlap_is_out_of_order(sequence, count):
    log = open_log()
    send(log, 0, count=2)
    assert code_of(log, sequence, count=count) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_unknown_producer_may_begin_anywhere():
    assert send(open_log(), 1000).first_offset == 0


def test_producers_do_not_disturb_each_other():
    log = open_log()
    send(log, 0, producer=1)
    send(log, 0, producer=2)
    assert send(log, 1, producer=1).first_offset == 2


def test_sequences_go_on_at_0_after_the_largest():
    log = open_log()
    send(log, MAX_SEQUENCE)
    assert send(log, 0).first_offset == 1


def test_a_batch_may_wrap_around_and_is_then_known_as_a_duplicate():
    log = open_log()
    send(log, MAX_SEQUENCE - 1, count=4)
    assert send(log, MAX_SEQUENCE - 1, count=4).duplicate
    assert send(log, 2).first_offset == 4


def test_a_new_epoch_begins_with_0():
    log = open_log()
    send(log, 0)
    assert code_of(log, 1, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1).first_offset == 1


def test_an_old_epoch_is_fenced():
    log = open_log()
    send(log, 0, epoch=3)
    assert code_of(log, 1, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_batches_of_an_old_epoch_are_no_duplicates():
    log = open_log()
    send(log, 0, epoch=0)
    send(log, 0, epoch=1)
    assert code_of(log, 0, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_remembers_producers(clean):
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    infos = [send(log, sequence) for sequence in range(7)]
    log.close(clean=clean, now_ms=NOW_MS)
    again = open_log(file_system, clean=clean)
    repeated = send(again, 5)
    assert (repeated.first_offset, repeated.last_offset) == (infos[5].first_offset, infos[5].last_offset)
    assert code_of(again, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(again, 7).first_offset == 7


def test_a_restart_forgets_producers_that_have_expired():
    file_system = MemoryFileSystem()
    config = LogConfig(producer_id_expiration_ms=1000)
    log = open_log(file_system, config=config)
    send(log, 0, producer=1, timestamp=NOW_MS - 1000)
    log.roll(NOW_MS)
    send(log, 0, producer=2, timestamp=NOW_MS)
    log.close(clean=True, now_ms=NOW_MS)
    assert set(open_log(file_system, config=config, clean=True).producers.by_id) == {2}


def test_an_idle_producer_is_forgotten_after_its_time():
    log = open_log(config=LogConfig(producer_id_expiration_ms=1000))
    send(log, 0)
    assert log.expire_producers(NOW_MS + 999) == 0
    assert log.expire_producers(NOW_MS + 1000) == 1
    assert send(log, 500).first_offset == 1


def test_a_refused_batch_leaves_no_trace_of_its_producer():
    log = open_log()
    with pytest.raises(KafkaError):
        append(log, batch(producer_id=7, producer_epoch=0, base_sequence=0, control=True))
    assert log.producers.by_id == {}
