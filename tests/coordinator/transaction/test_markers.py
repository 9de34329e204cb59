"""The second phase: every partition gets its marker, sooner or later, and nobody else waits for it."""

from odradek.coordinator.transaction.markers import RETRY_BACKOFF_MS
from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transaction.bed import A0, A1, B0, ID


def test_a_partition_that_is_deleted_while_its_marker_waits_is_waited_for_no_more(bed):
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    producer = bed.init()
    bed.add(producer, A0)
    bed.commit(producer)
    assert bed.state() is TransactionState.PREPARE_COMMIT
    bed.refusals[A0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    bed.advance(RETRY_BACKOFF_MS)
    assert (bed.state(), bed.markers) == (TransactionState.COMPLETE_COMMIT, [])


def test_many_markers_leave_the_loop_to_others_in_between(bed):
    producer = bed.init()
    partitions = [("many", index) for index in range(1000)]
    bed.add(producer, *partitions)
    assert bed.commit(producer) is not None
    assert 0 < len(bed.markers) < 1000
    for _ in range(10):
        bed.advance(1)
    assert [partition for partition, *_ in bed.markers] == partitions
    assert bed.state() is TransactionState.COMPLETE_COMMIT


def test_complete_that_cannot_be_written_is_tried_again(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.log.failures += [(None, True), OSError("disk")]
    bed.commit(producer)
    assert bed.written_states()[-1] == "PREPARE_COMMIT"
    assert bed.add(producer, A0) == ErrorCode.CONCURRENT_TRANSACTIONS
    bed.advance(RETRY_BACKOFF_MS)
    assert bed.written_states()[-1] == "COMPLETE_COMMIT"
    assert bed.add(producer, A0) is None


def test_a_shard_that_is_let_go_writes_no_more_markers(bed):
    producer = bed.init()
    bed.add(producer, A0)
    bed.refusals[A0] = ErrorCode.KAFKA_STORAGE_ERROR
    bed.commit(producer)
    bed.runtime.unload(0)
    bed.refusals.clear()
    bed.advance(60_000)
    assert bed.markers == []


def test_a_transaction_is_complete_when_the_last_marker_that_is_under_way_has_arrived(bed):
    bed.remote = {A0, B0}
    producer = bed.init()
    bed.add(producer, A0, A1, B0)
    bed.commit(producer)
    bed.under_way[A0].complete(None)
    bed.advance(50 * RETRY_BACKOFF_MS)
    assert (bed.state(), len(bed.markers)) == (TransactionState.PREPARE_COMMIT, 3)
    assert bed.add(producer, A0) == ErrorCode.CONCURRENT_TRANSACTIONS
    bed.under_way[B0].complete(None)
    bed.logs.run()
    assert (bed.state(), len(bed.markers)) == (TransactionState.COMPLETE_COMMIT, 3)
    assert bed.add(producer, A1) is None


def test_a_marker_that_did_not_arrive_is_written_again_and_no_other_and_told_of_once(bed):
    bed.remote = {A0, B0}
    producer = bed.init()
    bed.add(producer, A0, B0)
    bed.abort(producer)
    bed.under_way[B0].complete(None)
    for _ in range(2):
        bed.under_way[A0].complete(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        bed.advance(RETRY_BACKOFF_MS)
    assert [partition for partition, *_ in bed.markers] == [A0, B0, A0, A0]
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert bed.state() is TransactionState.COMPLETE_ABORT
    [line] = [fields for event, fields in bed.reports.lines if event == "cannot write a transaction's marker yet"]
    assert (line["topic"], line["partition"], line["error"]) == (*A0, "NOT_LEADER_OR_FOLLOWER")


def test_a_marker_that_is_not_needed_at_its_broker_is_waited_for_no_more(bed):
    bed.remote = {A0}
    producer = bed.init()
    bed.add(producer, A0)
    bed.commit(producer)
    bed.under_way[A0].complete(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    bed.logs.run()
    assert (bed.state(), len(bed.markers)) == (TransactionState.COMPLETE_COMMIT, 1)


def test_the_next_coordinator_writes_no_marker_before_what_it_has_found_is_committed(bed):
    producer, other = bed.init(), bed.init(transactional_id="other")
    bed.add(producer, A0)
    bed.add(other, B0, transactional_id="other")
    committed = bed.log.log_end_offset
    bed.log.held_back = True
    bed.commit(producer)
    bed.crash(high_watermark=committed)
    bed.advance(10 * RETRY_BACKOFF_MS)
    assert (bed.state(), bed.markers) == (TransactionState.PREPARE_COMMIT, [])
    assert bed.add(producer, A0) == ErrorCode.CONCURRENT_TRANSACTIONS
    # A transaction that is ended meanwhile has its markers once.
    bed.commit(other, transactional_id="other")
    bed.log.hold_back_no_more()
    bed.logs.run()
    assert bed.markers == [(A0, 100, 0, "commit"), (B0, 101, 0, "commit")]
    assert {bed.state(), bed.state("other")} == {TransactionState.COMPLETE_COMMIT}


def test_partitions_whose_markers_are_under_way_are_told_as_pending(bed):
    bed.remote = {A0}
    producer = bed.init()
    bed.add(producer, A0, B0)
    bed.commit(producer)
    told = bed.runtime.read(0, lambda shard, offset: shard.describe_transaction(ID, offset))
    assert [(topic.topic, list(topic.partitions)) for topic in told.topics] == [("a", [0])]
    assert (len(bed.shard.markers), bed.shard.markers.unfinished) == (1, 0)


def test_an_answer_that_comes_after_the_shard_has_moved_changes_nothing_here(bed):
    bed.remote = {A0}
    producer = bed.init()
    bed.add(producer, A0)
    bed.commit(producer)
    late = bed.under_way[A0]
    bed.crash()
    late.complete(None)
    bed.advance(RETRY_BACKOFF_MS)
    # The next coordinator has written it again, and waits for that.
    assert (bed.state(), len(bed.markers)) == (TransactionState.PREPARE_COMMIT, 2)
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert bed.state() is TransactionState.COMPLETE_COMMIT
