"""Operations: decided at once, appended together, answered when they are committed."""

import pytest

from odradek.coordinator.runtime.result import DEFERRED_RESPONSE, CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import read_header
from odradek.timing.reply import Reply
from tests.coordinator.runtime.bed import AppendingShard, Bed, Shard, put, write


def test_an_operation_without_records_is_answered_at_once(bed):
    bed.write(response="pong")
    assert bed.answers == ["pong"]
    assert bed.logs.turn() == 0


def test_records_are_replayed_before_they_are_appended(bed):
    bed.write(put("a", 5))
    assert bed.shard.state() == ({"a": 5}, 1)
    assert bed.log.batches == []
    assert bed.answers == []


def test_what_is_not_committed_is_not_read(bed):
    bed.write(put("a", 5))
    assert bed.committed() == ({}, 0)
    bed.run()
    assert bed.committed() == ({"a": 5}, 1)


def test_operations_of_one_turn_share_an_append(bed):
    for number in range(100):
        bed.write(put(f"t{number}"), response=number)
    bed.run()
    assert bed.answers == list(range(100))
    assert [read_header(batch).record_count for batch in bed.log.batches] == [100]
    assert bed.runtime.counters.appends == 1


def test_an_operation_decides_on_what_those_before_it_decided(bed):
    bed.write(put("a", 5))
    bed.runtime.write(0, lambda shard: CoordinatorResult([put("b", shard.offsets["a"] + 1)], None)).when_done(bed.respond)
    bed.run()
    assert bed.shard.state() == ({"a": 5, "b": 6}, 2)


def test_an_answer_waits_for_the_high_watermark(bed):
    bed.log.held_back = True
    bed.write(put("a"), response="first")
    bed.run()
    assert bed.answers == []
    assert bed.log.log_end_offset == 1
    bed.log.release()
    assert bed.answers == ["first"]


def test_each_append_waits_for_its_own_records(bed):
    bed.log.held_back = True
    for name in ("first", "second"):
        bed.write(put("a"), put("b"), response=name)
        bed.run()
    bed.log.release(3)
    assert bed.answers == ["first"]
    assert bed.committed()[1] == 3
    bed.log.release(4)
    assert bed.answers == ["first", "second"]


@pytest.mark.parametrize("is_appended", [False, True])
def test_an_operation_without_records_waits_for_those_before_it(bed, is_appended):
    bed.log.held_back = True
    bed.write(put("a"), response="first")
    if is_appended:
        bed.run()
    bed.write(response="second")
    assert bed.answers == []
    bed.run()
    bed.log.release()
    assert bed.answers == ["first", "second"]


def test_on_commit_is_called_just_before_the_answer(bed):
    events = bed.answers
    bed.write(put("a"), on_commit=lambda: events.append("committed"))
    assert events == []
    bed.run()
    assert events == ["committed", "ok"]


def test_on_commit_without_records_is_called_at_once(bed):
    bed.write(on_commit=lambda: bed.answers.append("committed"))
    assert bed.answers == ["committed", "ok"]


def following(bed, name):
    return lambda: bed.shard.context.after_answer(lambda: bed.answers.append(f"after {name}"))


def test_what_follows_an_answer_is_done_when_the_turn_ends(bed):
    bed.write(put("a"), response="a", on_commit=following(bed, "a"))
    bed.write(put("b"), response="b", on_commit=following(bed, "b"))
    bed.logs.turn()
    assert bed.answers == ["a", "b"]
    bed.logs.turn()
    assert bed.answers == ["a", "b", "after a", "after b"]


def test_what_follows_an_answer_is_done_before_the_next_operation_of_the_turn():
    bed = Bed(shard_class=AppendingShard)
    bed.write(put("a"), response="a", on_commit=following(bed, "a"))
    bed.write(put("b"), response="b", on_commit=following(bed, "b"))
    assert bed.answers == ["a", "after a", "b"]
    bed.committed()
    assert bed.answers == ["a", "after a", "b", "after b"]
    bed.run()
    assert len(bed.answers) == 4


def test_what_follows_an_answer_is_done_before_an_operation_that_the_answer_brings():
    bed = Bed(shard_class=AppendingShard)
    operation = write(put("a"), on_commit=following(bed, "a"))
    bed.runtime.write(0, operation).when_done(lambda _: bed.write(put("b"), response="b"))
    assert bed.answers == ["after a", "b"]


def test_the_end_of_a_turn_costs_one_call_of_the_loop():
    bed = Bed(partition_count=3)
    for partition in range(3):
        bed.write(put("a"), target=partition)
        bed.shards[partition].context.after_answer(lambda: None)
    assert len(bed.logs._callbacks) == 1


def test_what_follows_an_answer_and_raises_leaves_the_others_alone(bed):
    bed.shard.context.after_answer(lambda: 1 // 0)
    bed.write(put("a"))
    bed.run()
    assert bed.answers == ["ok"]
    assert len(bed.faults) == 1


def test_nothing_follows_where_the_shard_is_unloaded_before_the_turn_ends(bed):
    followed = []
    bed.shard.context.after_answer(lambda: followed.append("follows"))
    bed.runtime.unload(0)
    bed.run()
    assert followed == []


def test_a_result_answers_replies_that_earlier_operations_left_held(bed):
    held = Reply()
    held.when_done(bed.answers.append)
    bed.runtime.write(0, write(response=DEFERRED_RESPONSE), held)
    assert bed.answers == []
    bed.write(put("a"), response="own", responses=[(held, "held")])
    assert bed.answers == []
    bed.run()
    assert bed.answers == ["held", "own"]


def test_a_held_reply_fails_with_the_result_that_would_have_answered_it(bed):
    bed.log.failures.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    held = Reply()
    held.when_done(bed.respond)
    bed.write(put("a"), response="own", responses=[(held, "held")])
    bed.run()
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_a_reply_that_is_done_is_left_alone(bed):
    held = Reply()
    held.when_done(bed.answers.append)
    bed.write(response="first", responses=[(held, "once")])
    bed.write(response="second", responses=[(held, "twice")])
    assert bed.answers == ["once", "first", "second"]
    assert bed.faults == []


def test_replies_that_a_shard_holds_are_answered_when_it_is_unloaded(bed):
    held = Reply()
    held.when_done(bed.answers.append)
    bed.shard.held.append((held, "unloaded"))
    bed.runtime.unload(0)
    assert bed.answers == ["unloaded"]


def test_an_operation_that_raises_is_answered_with_its_error_and_changes_nothing(bed):
    def refuse(_):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)

    bed.runtime.write(0, refuse).when_done(bed.respond)
    assert bed.answers == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert bed.faults == []


def test_an_operation_that_fails_is_a_fault_of_ours(bed):
    bed.runtime.write(0, lambda _: 1 // 0).when_done(bed.respond)
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert len(bed.faults) == 1


def test_a_callback_that_raises_leaves_the_others_alone(bed):
    def fail(_):
        raise ZeroDivisionError

    bed.runtime.write(0, write(put("a"))).when_done(fail)
    bed.write(put("b"), on_commit=lambda: 1 // 0)
    bed.run()
    assert bed.answers == ["ok"]
    assert len(bed.faults) == 2


def test_an_on_commit_without_records_that_raises_leaves_its_operation_its_answer(bed):
    bed.write(on_commit=lambda: 1 // 0)
    assert bed.answers == ["ok"]
    assert len(bed.faults) == 1


def test_an_operation_asked_for_while_another_decides_is_decided_after_it(bed):
    def outer(shard):
        bed.write(put("inner", 2), response="inner")
        assert "inner" not in shard.offsets
        return CoordinatorResult([put("outer", 1)], "outer")

    bed.runtime.write(0, outer).when_done(bed.respond)
    bed.run()
    assert bed.answers == ["outer", "inner"]
    assert [record[0] for record in bed.log.records()] == [0, 1]
    assert bed.shard.events == ["loaded", 0, 1]


def test_an_answer_may_ask_for_the_next_operation(bed):
    bed.runtime.write(0, write(put("a"))).when_done(lambda _: bed.write(put("b"), response="second"))
    bed.run()
    assert bed.answers == ["second"]


def test_a_batch_that_is_full_is_appended_before_the_turn_is_over():
    bed = Bed(max_batch_bytes=300)
    for number in range(10):
        bed.write(put(f"topic-{number}"), response=number)
    assert len(bed.log.batches) > 1
    bed.run()
    assert bed.answers == list(range(10))
    assert bed.log.log_end_offset == 10


def test_records_of_one_operation_stay_in_one_batch():
    bed = Bed(max_batch_bytes=400)
    for _ in range(4):
        bed.write(*(put(f"topic-{number}") for number in range(3)))
    bed.run()
    assert all(read_header(batch).record_count % 3 == 0 for batch in bed.log.batches)


def test_records_that_fit_no_batch_are_refused_before_they_are_replayed():
    bed = Bed(max_batch_bytes=300)
    bed.write(put("small"), response="small")
    bed.write(*(put(f"topic-{number}") for number in range(10)))
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    bed.run()
    assert bed.answers[1:] == ["small"]
    assert bed.shard.state() == ({"small": 1}, 1)


@pytest.mark.parametrize("shard_class", [Shard, AppendingShard])
def test_records_that_need_not_stay_together_fill_as_many_batches_as_they_need(shard_class):
    bed = Bed(shard_class=shard_class, max_batch_bytes=300)
    bed.write(*(put(f"topic-{number}") for number in range(10)), atomic=False)
    bed.run()
    counts = [read_header(batch).record_count for batch in bed.log.batches]
    assert len(counts) > 1
    assert bed.answers == ["ok"]
    assert bed.shard.state()[1] == sum(counts) == 10


def test_a_record_that_cannot_be_encoded_fails_its_operation_alone(bed):
    bed.write(put("a"), response="first")
    bed.write(put("x" * 40_000))
    assert bed.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    bed.run()
    assert bed.answers[1:] == ["first"]


def test_an_id_is_routed_to_its_partition():
    bed = Bed(partition_count=50)
    bed.write(put("a"), target="group-1")
    bed.run()
    assert bed.answers == ["ok"]
    assert [log.log_end_offset for log in bed.logs.logs].index(1) == 49
    assert bed.runtime.read("group-1", lambda shard, _: shard.partition) == 49


def test_where_the_topic_cannot_be_made_the_coordinator_is_not_available(bed):
    bed.logs.creation_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    bed.write(put("a"), target="group")
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    with pytest.raises(KafkaError) as caught:
        bed.runtime.read("group", lambda shard, _: shard)
    assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_close_appends_what_was_decided(bed):
    bed.write(put("a"))
    bed.runtime.close()
    assert bed.answers == ["ok"]
    assert bed.log.log_end_offset == 1
    assert bed.shard.events[-1] == "unloaded"
