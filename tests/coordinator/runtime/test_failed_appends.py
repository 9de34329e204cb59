"""Where an append fails: state goes back to what the log has, and everybody who relied on it is told, in order."""

import pytest

from odradek.coordinator.runtime.result import encode_record
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.cases import each_case
from tests.coordinator.runtime.bed import AppendingShard, Bed, Shard, put, write

NOT_ENOUGH_REPLICAS = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)


@each_case(
    ("error", "expected"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_logs_error_is_told_in_a_coordinators_terms(error, expected):
    bed = Bed()
    bed.log.failures.append(KafkaError(error))
    bed.write(put("a"))
    bed.run()
    assert bed.answers == [expected]


def test_an_error_that_is_none_of_kafkas_is_a_fault_of_ours(bed):
    bed.log.failures.append(OSError("disk"))
    bed.write(put("a"))
    bed.run()
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert len(bed.faults) == 1


def test_state_goes_back_to_what_is_written(bed):
    bed.write(put("a", 1))
    bed.run()
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    bed.write(put("a", 2), put("b", 2))
    bed.write(put("a", None))
    bed.run()
    assert bed.shard.state() == ({"a": 1}, 1)
    assert bed.runtime.counters.append_failures == 1


def test_all_that_was_decided_on_top_of_it_is_answered_in_order(bed):
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    answers = []
    for name in ("first", "second", "third"):
        records = () if name == "second" else (put("a"),)
        bed.runtime.write(0, write(*records)).when_done(lambda error, name=name: answers.append((name, error.code)))
    bed.run()
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answers == [("first", code), ("second", code), ("third", code)]


def test_what_was_decided_last_is_set_right_first(bed):
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    order = []
    for name in ("first", "second", "third"):
        bed.write(put("a"), on_failure=lambda error, name=name: order.append((name, error.code)))
    bed.run()
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert order == [("third", code), ("second", code), ("first", code)]


def test_on_failure_finds_the_state_rolled_back_and_comes_before_all_answers(bed):
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    for _ in range(2):
        bed.write(put("a"), on_failure=lambda _: bed.answers.append(bed.shard.state()))
    bed.run()
    assert bed.answers == [({}, 0)] * 2 + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_what_is_asked_for_while_state_is_set_right_is_decided_when_all_of_it_is(bed):
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    bed.write(put("a"), response="first", on_failure=lambda _: bed.answers.append(bed.shard.state()))
    bed.write(put("c"), response="second", on_failure=lambda _: bed.write(put("b"), response="third"))
    bed.run()
    assert bed.answers == [({}, 0), *[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2, "third"]
    assert bed.shard.state() == ({"b": 1}, 1)


def test_the_same_where_an_operation_was_refused():
    bed = Bed(max_batch_bytes=200)
    again = put("b")
    bed.write(put("a" * 500), on_failure=lambda _: (bed.write(again), bed.answers.append(bed.shard.state())))
    bed.run()
    assert bed.answers == [({}, 0), ErrorCode.UNKNOWN_SERVER_ERROR, "ok"]


def test_what_is_written_and_waits_is_not_touched(bed):
    bed.log.held_back = True
    bed.write(put("a", 1), response="first")
    bed.run()
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    bed.write(put("a", 2), response="second")
    bed.run()
    bed.log.release()
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE, "first"]
    assert bed.committed() == ({"a": 1}, 1)


def test_the_next_append_goes_where_the_failed_one_would_have(bed):
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    bed.write(put("a", 1))
    bed.run()
    bed.write(put("b", 2))
    bed.run()
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE, "ok"]
    assert [offset for offset, _, _ in bed.log.records()] == [0]
    assert bed.shard.state() == ({"b": 2}, 1)


def test_an_operation_whose_room_could_not_be_made_fails_with_those_before_it():
    bed = Bed(max_batch_bytes=200)
    bed.log.failures.append(NOT_ENOUGH_REPLICAS)
    bed.write(put("a" * 20), response="first")
    bed.write(put("b" * 20), response="second", on_failure=lambda _: bed.answers.append("undone"))
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE, "undone", ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert bed.shard.state() == ({}, 0)


@pytest.mark.parametrize("shard_class", [Shard, AppendingShard])
def test_of_records_that_need_not_stay_together_those_appended_before_the_failure_stay(shard_class):
    bed = Bed(shard_class=shard_class, max_batch_bytes=200)
    bed.log.failures.extend([(None, True), NOT_ENOUGH_REPLICAS])
    names = [letter * 20 for letter in "abcd"]
    bed.write(*(put(name) for name in names), atomic=False)
    bed.run()
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert 0 < bed.log.log_end_offset < 4
    assert list(bed.shard.offsets) == names[: bed.log.log_end_offset]


def test_a_record_that_cannot_be_replayed_takes_its_whole_batch_back(bed):
    bed.write(put("a"))
    bed.write(put("b"), put("poison"))
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert bed.shard.state() == ({}, 0)
    bed.write(put("c"))
    bed.run()
    assert bed.answers[2:] == ["ok"]
    assert bed.shard.state() == ({"c": 1}, 1)


def test_an_append_that_fails_after_it_was_written_makes_the_shard_load_again(bed):
    bed.log.failures.append((KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), True))
    bed.write(put("a", 1), on_failure=lambda _: bed.answers.append("undone"))
    bed.logs.turn()
    assert bed.answers == ["undone", ErrorCode.NOT_COORDINATOR]
    assert bed.runtime.states() == {0: ShardState.LOADING}
    bed.run()
    bed.log.release()
    assert len(bed.shards) == 2
    assert bed.committed() == ({"a": 1}, 1)


def test_a_log_that_somebody_else_wrote_to_is_loaded_again(bed):
    bed.log.append([encode_record(put("stranger", 9))], 0)
    bed.write(put("a", 1))
    bed.run()
    assert bed.answers == [ErrorCode.NOT_COORDINATOR]
    assert bed.committed() == ({"stranger": 9, "a": 1}, 2)


def test_what_was_committed_before_is_not_told_by_a_shard_that_is_closed(bed):
    def write_another():
        bed.log.failures.append((KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), True))
        bed.write(put("b", 2), response="second")

    bed.write(put("a", 1), response="first", on_commit=write_another)
    bed.logs.turn()
    assert bed.answers == [ErrorCode.NOT_COORDINATOR] * 2
    assert bed.runtime.states() == {0: ShardState.LOADING}
