"""Whatever has happened, the log tells it all: a load finishes what a crash left, and replay gives the state there is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.transaction.states import TransactionState
from odradek.protocol.errors import ErrorCode
from tests.cases import each_case
from tests.coordinator.transaction.bed import A0, A1, B0, Bed


@each_case("turns", range(5))
@each_case("commit", [True, False])
def test_a_crash_in_the_middle_of_an_end_leaves_all_of_it_or_nothing(turns, commit):
    bed = Bed()
    producer = bed.init()
    bed.add(producer, A0, B0)
    bed.end(producer, commit, run=False)
    for _ in range(turns):
        bed.logs.turn()
    bed.crash()
    if bed.state() is TransactionState.ONGOING:
        assert bed.markers == []
        assert bed.end(producer, commit) == (-1, -1)
    result = "commit" if commit else "abort"
    assert bed.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert set(bed.markers) == {(A0, 100, 0, result), (B0, 100, 0, result)}
    assert bed.add(producer, A1) is None


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_the_end_that_a_new_coordinator_has_to_finish_is_not_refused_for_good(version, commit):
    bed = Bed()
    producer = bed.init()
    bed.add(producer, A0, version=version)
    bed.remote = {A0}
    bed.end(producer, commit, version=version)
    prepared_end = bed.log.log_end_offset
    bed.init(transactional_id="other")
    marker = (A0, 100, producer[1] + (version == 2), "commit" if commit else "abort")

    def is_put_off():
        bed.logs.run()
        return {bed.end(producer, asked, version=version) for asked in (True, False)} == {ErrorCode.CONCURRENT_TRANSACTIONS}

    # A leader that has just been elected learns only by the next fetches that all is committed.
    bed.crash(high_watermark=prepared_end - 1)
    assert is_put_off()
    bed.log.release(prepared_end)
    assert is_put_off()
    assert bed.markers == [marker]
    bed.crash(high_watermark=prepared_end)
    assert is_put_off()
    assert bed.markers == [marker] * 2
    bed.log.release()
    bed.remote = set()
    bed.under_way[A0].complete(None)
    bed.logs.run()
    assert bed.state() is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert bed.markers == [marker] * 2


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_whose_beginning_a_load_found_uncommitted_is_not_ended_before_it_is_committed(version):
    bed = Bed()
    producer = bed.init()
    bed.log.held_back = True
    bed.add(producer, A0, version=version)
    bed.runtime.unload(0)
    bed.start()
    assert bed.abort(producer, version=version) is ErrorCode.CONCURRENT_TRANSACTIONS
    bed.log.held_back = False
    bed.log.release()
    assert bed.abort(producer, version=version) in [(-1, -1), (100, 1)]
    assert [name for name in bed.written_states() if name.startswith("PREPARE")] == ["PREPARE_ABORT"]


def test_a_partition_whose_addition_is_not_committed_is_not_refused_for_good():
    # The coordinator is cut off, and the producer has gone on at the next one: it comes with what that has committed.
    bed = Bed()
    producer = bed.init()
    bed.log.held_back = True
    bed.add(producer, A0)
    assert bed.verify(producer, A0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bed.verify(producer, A1) == {A1: ErrorCode.TRANSACTION_ABORTABLE}
    bed.log.held_back = False
    bed.log.release()
    assert bed.verify(producer, A0) == {A0: ErrorCode.NONE}


_IDS = st.sampled_from(["one", "two", "three"])
_PARTITIONS = st.sampled_from([A0, A1, B0])
_STEPS = st.one_of(
    st.tuples(st.just("init"), _IDS, st.booleans()),
    st.tuples(st.just("add"), _IDS, _PARTITIONS),
    st.tuples(st.just("end"), _IDS, st.booleans()),
    st.tuples(st.just("end-bumping"), _IDS, st.booleans()),
    st.tuples(st.just("advance"), st.just(""), st.sampled_from([1, 15_000, 80_000])),
    st.tuples(st.just("refuse"), st.just(""), _PARTITIONS),
    st.tuples(st.just("allow"), st.just(""), _PARTITIONS),
    st.tuples(st.just("fail"), st.just(""), st.none()),
    st.tuples(st.just("crash"), st.just(""), st.none()),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_STEPS, max_size=30))
def test_the_state_there_is_equals_the_replay_of_the_log(steps):
    bed = Bed()
    producers = {}
    for step, name, argument in steps:
        _take(bed, producers, step, name, argument)
        assert all(isinstance(error, OSError) for _, error in bed.faults)
        assert bed.persistent() == dict(_replayed(bed))
    bed.refusals.clear()
    bed.log.failures.clear()
    bed.advance(200_000)
    assert all(value.status not in (1, 2, 3) for value in bed.persistent().values())
    assert bed.shard.transactions.pending == bed.shard.markers.remaining == {}
    _check_fates(bed)


def _take(bed, producers, step, name, argument):
    producer = producers.get(name, (0, 0))
    if step == "init":
        answer = bed.init(*([producer] if argument else []), transactional_id=name)
        if isinstance(answer, tuple):
            producers[name] = answer
    elif step == "add":
        bed.add(producer, argument, transactional_id=name)
    elif step == "end":
        bed.end(producer, argument, transactional_id=name)
    elif step == "end-bumping":
        answer = bed.end(producer, argument, version=2, transactional_id=name)
        if isinstance(answer, tuple):
            producers[name] = answer
    elif step == "advance":
        bed.advance(argument)
    elif step == "refuse":
        bed.refusals[argument] = ErrorCode.KAFKA_STORAGE_ERROR
    elif step == "allow":
        bed.refusals.pop(argument, None)
    elif step == "fail":
        bed.log.failures.append(OSError("disk"))
    else:
        bed.log.failures.clear()
        bed.crash()


def _replayed(bed):
    state = {}
    for name, value in bed.records():
        if value is None:
            state.pop(name, None)
        else:
            state[name] = value
    return state


def _check_fates(bed):
    """Markers are those of a decision in the log, and each decision's partitions have theirs."""
    results = {TransactionState.PREPARE_COMMIT: "commit", TransactionState.PREPARE_ABORT: "abort"}
    decided = {
        (partition, value.producer_id, value.producer_epoch, results[value.status])
        for _, value in bed.records()
        if value is not None and value.status in results
        for partition in value.partitions
    }
    assert set(bed.markers) == decided


def test_a_coordinator_that_has_just_taken_over_refuses_no_partition_that_was_added_before():
    """Its log is replicated, and it does not know yet up to where: not before a follower has fetched again."""
    bed = Bed()
    producer = bed.init()
    for _ in range(2):
        bed.add(producer, A0)
        bed.commit(producer)
    bed.add(producer, A0)
    for known in range(bed.log.log_end_offset):
        bed.crash(high_watermark=known)
        assert bed.verify(producer, A0) == {A0: ErrorCode.NONE}
        bed.log.release()
        assert bed.verify(producer, A0) == {A0: ErrorCode.NONE}
        assert bed.verify(producer, A1) == {A1: ErrorCode.TRANSACTION_ABORTABLE}
