"""Decisions of the share coordinator: answers, records, fences, snapshots and prunable offsets."""

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.share.state import PartitionState, SharePartitionKey, StateBatch, StateSummary
from odradek.protocol.coordinator_records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.share.bed import KEY, TOPIC_ID, Bed

OTHER = SharePartitionKey("g", TOPIC_ID, 1)


def test_a_share_partition_is_initialized_then_read_written_and_deleted():
    bed = Bed()
    now = bed.clock.now_ms()
    assert bed.summary() == StateSummary(0, 0, -1, -1)
    assert bed.read() == bed.write() == ErrorCode.INVALID_REQUEST

    assert bed.initialize(epoch=2) is None
    assert bed.records() == [(ShareSnapshotKey(*KEY), ShareSnapshotValue(0, 2, 0, -1, now, now, ()))]
    assert bed.read(leader=3) == PartitionState(2, 3, -1, 0, ())
    assert bed.write((5, 9, 0, 1), (8, 9, 2, 1), epoch=2, leader=3, start=5, complete=2) is None
    merged = (StateBatch(5, 7, 0, 1), StateBatch(8, 9, 2, 1))
    assert bed.records()[1:] == [
        (ShareUpdateKey(*KEY), ShareUpdateValue(0, 3, -1, ())),
        (ShareUpdateKey(*KEY), ShareUpdateValue(0, 3, 5, merged, 2)),
    ]
    assert bed.read(leader=3) == PartitionState(2, 3, 5, 2, merged)
    assert bed.summary() == StateSummary(2, 3, 5, 2)
    assert len(bed.records()) == 3

    assert bed.initialize(epoch=3, start=40) is None
    assert bed.records()[-1].value == ShareSnapshotValue(1, 3, 0, 40, now, now, (), 0)
    assert bed.delete() is bed.delete() is None
    assert bed.records()[4:] == [(ShareSnapshotKey(*KEY), None)]
    assert bed.state() == {}
    assert not bed.faults


def test_older_leaders_and_older_states_are_fenced_even_after_a_reload():
    bed = Bed()
    bed.initialize(epoch=4, start=0)
    bed.read(leader=6)
    for _ in range(2):
        written = len(bed.records())
        assert bed.read(leader=5) == ErrorCode.FENCED_LEADER_EPOCH
        assert bed.write(epoch=4, leader=5) == ErrorCode.FENCED_LEADER_EPOCH
        assert bed.write(epoch=3, leader=6) == ErrorCode.FENCED_STATE_EPOCH
        assert bed.initialize(epoch=3) == ErrorCode.FENCED_STATE_EPOCH
        assert bed.write(epoch=-1, leader=6) == bed.write(epoch=4, leader=-1) == ErrorCode.INVALID_REQUEST
        assert bed.read(leader=-1) == bed.initialize(epoch=-1) == ErrorCode.INVALID_REQUEST
        assert len(bed.records()) == written
        before, after = bed.reload()
        assert before == after
    # A new state keeps the fence of its leaders.
    assert bed.initialize(epoch=5) is None
    assert bed.read(leader=5) == ErrorCode.FENCED_LEADER_EPOCH


def test_an_unknown_partition_is_refused():
    bed = Bed()
    bed.topics[TOPIC_ID] = 1
    for key, code in (
        (OTHER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (SharePartitionKey("g", UUID(int=8), 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (SharePartitionKey("g", TOPIC_ID, -1), ErrorCode.INVALID_REQUEST),
    ):
        assert bed.initialize(key) == bed.summary(key) == bed.delete(key) == code
        assert bed.read(key) == bed.write(key=key) == ErrorCode.INVALID_REQUEST
    bed.initialize()
    del bed.topics[TOPIC_ID]
    assert bed.read() == bed.write() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    bed.ask(lambda shard: shard.delete_topics({TOPIC_ID}))
    assert bed.state() == {}


def test_the_start_offset_and_its_count_never_move_back():
    bed = Bed()
    bed.initialize(start=10)
    for start, complete, expected in ((10, 3, (10, 3)), (10, 2, (10, 3)), (8, 7, (10, 3)), (12, 1, (12, 1))):
        bed.write(start=start, complete=complete)
        assert bed.summary()[2:] == expected


def test_a_snapshot_follows_each_full_number_of_updates():
    bed = Bed(snapshot_update_records_per_snapshot=3)
    bed.initialize(start=0)
    for offset in range(9):
        bed.write((offset, offset, 2, 1))
    kinds = [type(record.value) for record in bed.records()]
    snapshot, update = ShareSnapshotValue, ShareUpdateValue
    assert kinds == [snapshot, update, update, update, snapshot, update, update, update, snapshot, update]
    assert [record.value.snapshot_epoch for record in bed.records()] == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert bed.records()[-2].value.state_batches == (StateBatch(0, 7, 2, 1),)
    before, after = bed.reload()
    assert before == after


def test_records_below_the_oldest_needed_snapshot_are_pruned():
    bed = Bed(
        snapshot_update_records_per_snapshot=1,
        state_topic_prune_interval_ms=1000,
        cold_partition_snapshot_interval_ms=10**9,
    )
    bed.initialize(start=0)
    bed.initialize(OTHER, start=0)
    for _ in range(4):
        bed.write()
    bed.advance(1000)
    # The first partition has its latest snapshot at offset 5, the other one at 1.
    assert bed.pruned == [1]
    bed.advance(1000)
    assert bed.pruned == [1]
    bed.delete(OTHER)
    bed.advance(1000)
    assert bed.pruned == [1, 5]
    bed.delete()
    bed.advance(1000)
    assert bed.pruned == [1, 5, len(bed.records()) - 1]


def test_cold_partitions_get_snapshots_until_all_have_one():
    bed = Bed(cold_partition_snapshot_interval_ms=1000, state_topic_prune_interval_ms=10**9)
    bed.initialize(start=0)
    bed.write((0, 3, 2, 1), complete=4)
    bed.advance(400)
    bed.initialize(OTHER, start=0)
    bed.advance(600)
    assert [type(record.value) for record in bed.records()] == [ShareSnapshotValue, ShareUpdateValue, *[ShareSnapshotValue] * 2]
    cold = bed.records()[-1]
    first = bed.records()[0].value
    batches = (StateBatch(0, 3, 2, 1),)
    assert cold.key.partition == 0
    now = bed.clock.now_ms()
    assert cold.value == first._replace(
        snapshot_epoch=1, write_timestamp_ms=now, delivery_complete_count=4, state_batches=batches
    )
    bed.advance(1000)
    written = len(bed.records())
    assert written == 6
    bed.advance(5000)
    assert len(bed.records()) == written
    before, after = bed.reload()
    assert before == after


def test_many_cold_partitions_get_their_snapshots_in_parts():
    bed = Bed(cold_partition_snapshot_interval_ms=1000, state_topic_prune_interval_ms=10**9)
    bed.topics[TOPIC_ID] = 250
    for index in range(250):
        bed.initialize(KEY._replace(partition=index))
    written = []
    bed.advance(1000)
    while len(bed.records()) > sum(written, 250):
        written.append(len(bed.records()) - sum(written, 250))
        bed.advance(10)
    assert written == [100, 100, 50]
    assert {each.snapshot.snapshot_epoch for each in bed.state().values()} == {1}


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("initialize"), st.integers(0, 1), st.integers(0, 3), st.integers(-1, 5)),
        st.tuples(st.just("read"), st.integers(0, 1), st.integers(0, 3)),
        st.tuples(st.just("write"), st.integers(0, 1), st.integers(0, 3), st.integers(0, 3), st.integers(0, 30)),
        st.tuples(st.just("delete"), st.integers(0, 1)),
        st.tuples(st.just("advance"), st.integers(0, 3000)),
        st.tuples(st.just("fail")),
        st.tuples(st.just("reload")),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=50)
@given(_STEPS)
def test_the_log_from_the_pruned_offset_on_gives_the_same_state(steps):
    bed = Bed(snapshot_update_records_per_snapshot=2, state_topic_prune_interval_ms=700, cold_partition_snapshot_interval_ms=900)
    for name, *arguments in steps:
        if name == "advance":
            bed.advance(arguments[0])
            continue
        if name == "fail":
            # The next append.
            bed.log.failures.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
            continue
        if name == "reload":
            before, after = bed.reload()
            assert before == after
            continue
        key = KEY._replace(partition=arguments[0])
        if name == "initialize":
            bed.initialize(key, *arguments[1:])
        elif name == "read":
            bed.read(key, arguments[1])
        elif name == "write":
            _, epoch, leader, start = arguments
            bed.write((start, start + 4, 2, 1), (start + 2, start + 9, 0, 2), key=key, epoch=epoch, leader=leader, start=start)
        else:
            bed.delete(key)
    assert all(isinstance(error, KafkaError) for _, error in bed.faults)
    before, after = bed.reload()
    assert before == after
    if bed.pruned:
        needed = Bed()
        for offset, record in enumerate(bed.records()):
            if offset >= bed.pruned[-1]:
                needed.ask(lambda _, record=record: CoordinatorResult((record,), None))
        assert {key: each.snapshot for key, each in needed.state().items()} == {
            key: each.snapshot for key, each in before.items()
        }
