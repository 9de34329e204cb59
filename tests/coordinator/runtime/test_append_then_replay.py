"""Shards whose order of writing is APPEND_THEN_REPLAY: appended, replayed and answered within the call."""

import pytest

from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import read_header
from tests.coordinator.memory_logs import MemoryLog
from tests.coordinator.runtime.bed import AppendingShard, Bed, put, write


def counts(bed):
    return [read_header(batch).record_count for batch in bed.log.batches]


@pytest.fixture
def bed():
    return Bed(shard_class=AppendingShard)


def test_the_answer_is_there_when_the_call_returns(bed):
    order = []
    bed.write(put("a", 5), put("b", 6), on_commit=lambda: order.append(list(bed.answers)))
    assert bed.answers == ["ok"]
    assert order == [[]]
    assert bed.committed() == bed.shard.state() == ({"a": 5, "b": 6}, 2)
    assert bed.shard.events == ["loaded", 0, 1]
    assert counts(bed) == [2]
    assert bed.logs.turn() == 0


def test_each_operation_has_a_batch_of_its_own(bed):
    bed.write(put("a"))
    bed.write(put("b"), put("c"))
    assert counts(bed) == [1, 2]


def test_it_leaves_nothing_to_take_back(bed):
    bed.write(put("a", 5))
    assert len(bed.shard.context.snapshots) == 0


def test_it_waits_for_a_high_watermark_that_is_held_back(bed):
    bed.log.held_back = True
    bed.write(put("a", 1), put("b", 2), response="first")
    bed.write(put("a", 3), response="second")
    assert bed.answers == []
    assert (bed.shard.state(), bed.committed()) == (({"a": 3, "b": 2}, 3), ({}, 0))
    bed.log.release(1)
    assert bed.committed() == ({"a": 1}, 1)
    bed.log.release(2)
    assert bed.answers == ["first"]
    assert bed.committed() == ({"a": 1, "b": 2}, 2)
    bed.log.release()
    assert bed.answers == ["first", "second"]
    assert len(bed.shard.context.snapshots) == 0


def test_what_cannot_be_appended_has_changed_nothing(bed):
    corrected = []
    bed.log.failures.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    bed.write(put("a", 5), on_failure=corrected.append)
    assert len(bed.answers) == len(corrected) == 1
    assert isinstance(bed.answers[0], ErrorCode)
    assert bed.shard.state() == ({}, 0)
    bed.write(put("a", 6))
    assert bed.answers[1:] == ["ok"]
    assert bed.shard.state() == ({"a": 6}, 1)


def test_what_fails_though_it_was_appended_is_read_again(bed):
    bed.log.failures.append((OSError("disk"), True))
    bed.write(put("a", 5))
    assert bed.answers == [ErrorCode.NOT_COORDINATOR]
    bed.run()
    assert len(bed.shards) == 2
    assert bed.shard.state() == ({"a": 5}, 1)


def test_what_is_too_large_for_a_batch_is_refused():
    bed = Bed(shard_class=AppendingShard, max_batch_bytes=200)
    bed.write(put("a" * 200))
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert bed.log.batches == []


def test_a_record_that_cannot_be_replayed_costs_the_shard_what_it_knows_not_the_log(bed):
    bed.write(put("a", 5))
    bed.write(put("poison"))
    assert bed.answers == ["ok", ErrorCode.NOT_COORDINATOR]
    assert [type(error) for _, error in bed.faults] == [ZeroDivisionError]
    assert bed.log.log_end_offset == 2
    bed.run()
    assert bed.runtime.states() == {0: ShardState.FAILED}


class _Lost(MemoryLog):
    """One that takes records and cannot say that they are there for good."""

    @property
    def high_watermark(self):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    @high_watermark.setter
    def high_watermark(self, value):
        pass


def test_a_log_that_cannot_be_asked_how_far_it_is_answers_nobody_twice(bed):
    bed.log.__class__ = _Lost
    bed.write(put("a", 5))
    assert bed.answers == [ErrorCode.NOT_COORDINATOR]


@pytest.mark.parametrize("part", [{"producer": (1, 0)}, {"marker": EndTxnMarker(1, 0, 0, True)}])
def test_a_transaction_is_nothing_for_a_shard_that_knows_of_none(bed, part):
    bed.write(put("a"), **part)
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert bed.log.batches == []


def test_an_answer_may_ask_for_more(bed):
    bed.runtime.write(0, write(put("a", 1))).when_done(lambda _: bed.write(put("a", 2), response="more"))
    assert bed.answers == ["more"]
    assert bed.shard.state() == ({"a": 2}, 2)
