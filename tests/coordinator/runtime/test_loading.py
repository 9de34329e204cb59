"""Loading and unloading: state comes from the log alone, in slices, and who comes too early or too late is told."""

import gc

import pytest

from odradek.coordinator.runtime.result import encode_record
from odradek.coordinator.runtime.states import TRANSITIONS, ShardState, ensure_transition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plain_batches import build_batch
from odradek.protocol.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, batch_crc
from odradek.protocol.records import Record
from odradek.protocol.records import build_batch as build_any_batch
from tests.cases import each_case
from tests.coordinator.runtime.bed import Bed, Shard, put


def filled(records, *, per_batch=100, **options):
    bed = Bed(load=False, **options)
    pairs = [encode_record(record) for record in records]
    for start in range(0, len(pairs), per_batch):
        bed.log.append(pairs[start : start + per_batch], 0)
    return bed


class ShardWithTransactions(Shard):
    def replay_in_transaction(self, record, offset, producer_id):
        raise AssertionError

    def replay_marker(self, marker):
        raise AssertionError


def emptied(batch):
    """The batch's header alone, as compaction leaves it where the records are gone and the producer is not."""
    fields = list(HEADER.unpack_from(batch))
    fields[1], fields[-1] = HEADER_SIZE - LOG_OVERHEAD, 0
    head = bytearray(HEADER.pack(*fields))
    head[17:21] = batch_crc(head, 0, len(head)).to_bytes(4, "big")
    return bytes(head)


def load(bed, leader_epoch=0):
    bed.runtime.start_loading(0, leader_epoch)
    bed.run()


def code_of(bed, target=0):
    with pytest.raises(KafkaError) as caught:
        bed.runtime.read(target, lambda shard, _: shard)
    bed.write(target=target)
    assert bed.answers.pop() == caught.value.code
    return caught.value.code


def test_the_log_is_replayed_in_order():
    bed = filled([put("a", 1), put("b", 2), put("a", None), put("b", 3)], per_batch=2)
    load(bed)
    assert bed.shard.events == [0, 1, 2, 3, "loaded"]
    assert bed.committed() == ({"b": 3}, 4)


def test_an_empty_log_is_loaded_at_once():
    bed = Bed(load=False)
    bed.runtime.start_loading(0, 0)
    assert bed.runtime.states() == {0: ShardState.ACTIVE}


def test_a_shard_that_loads_says_so():
    bed = filled([put("a")])
    bed.runtime.start_loading(0, 0)
    assert code_of(bed) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bed.runtime.is_loading


def test_a_partition_that_is_not_hosted_says_so():
    assert code_of(Bed(load=False)) == ErrorCode.NOT_COORDINATOR


def test_a_long_log_is_loaded_in_slices():
    bed = filled([put(f"t{number}") for number in range(5000)], per_batch=1000)
    bed.runtime.start_loading(0, 0)
    replayed = []
    while bed.runtime.is_loading:
        before = len(bed.shard.events)
        bed.logs.turn()
        replayed.append(len(bed.shard.events) - before)
    assert max(replayed) < 1000
    assert bed.committed()[1] == 5000


def test_shards_load_one_after_the_other():
    bed = Bed(partition_count=2, load=False)
    for log in bed.logs.logs:
        for _ in range(20):
            log.append([encode_record(put("a"))] * 100, 0)
    bed.runtime.start_loading(0, 0)
    bed.runtime.start_loading(1, 0)
    while bed.runtime.states()[0] is ShardState.LOADING:
        assert bed.shards[1].events == []
        assert bed.logs.turn() == 1
    bed.run()
    assert bed.runtime.states() == {0: ShardState.ACTIVE, 1: ShardState.ACTIVE}


def test_a_log_larger_than_the_buffer_is_read_in_pieces():
    bed = filled([put(f"t{number}") for number in range(1000)], per_batch=7)
    bed.runtime.load_buffer_bytes = 1000
    load(bed)
    assert bed.committed()[1] == 1000


def test_a_batch_larger_than_the_buffer_is_read_whole():
    bed = filled([put(f"t{number}") for number in range(100)])
    bed.runtime.load_buffer_bytes = 10
    load(bed)
    assert bed.committed()[1] == 100


def test_where_compaction_left_nothing_but_offsets_the_load_is_over():
    bed = filled([put("a")])
    bed.log.batches.clear()
    load(bed)
    assert bed.committed() == ({}, 0)
    bed.write(put("b"))
    bed.run()
    assert bed.shard.events == ["loaded", 1]


def test_records_above_the_high_watermark_are_there_and_not_committed():
    bed = filled([put("a", 1), put("a", 2), put("b", 3)])
    bed.log.high_watermark = 1
    load(bed)
    assert bed.shard.state() == ({"a": 2, "b": 3}, 3)
    assert bed.committed() == ({"a": 1}, 1)
    bed.write(response="behind them")
    assert bed.answers == []
    bed.log.release()
    assert bed.committed() == ({"a": 2, "b": 3}, 3)
    assert bed.answers == ["behind them"]


def test_a_key_version_not_known_is_skipped_and_counted():
    bed = filled([put("a")])
    bed.log.append([(b"\0\x0a\0\1x", b"whatever"), (b"\0\x63", None)], 0)
    load(bed)
    assert bed.committed() == ({"a": 1}, 1)
    counters = bed.runtime.counters
    assert (counters.loads, counters.loaded_records, counters.skipped_records) == (1, 3, 2)
    assert counters.loaded_bytes == sum(len(batch) for batch in bed.log.batches)


@pytest.mark.parametrize("options", [{"control": True}, {"transactional": True, "producer_id": 1}])
def test_what_transactions_write_is_skipped(options):
    bed = filled([put("a")])
    key, value = encode_record(put("b"))
    bed.log.append_batch(build_any_batch([Record(timestamp=0, key=key, value=value)], **options))
    bed.log.release()
    load(bed)
    assert bed.committed() == ({"a": 1}, 1)
    assert bed.runtime.counters.skipped_records == 1


@pytest.mark.parametrize(
    "options", [{}, {"transactional": True, "producer_id": 1}, {"transactional": True, "producer_id": 1, "control": True}]
)
def test_a_batch_that_compaction_has_emptied_is_passed_over(options):
    bed = Bed(make_shard=ShardWithTransactions, load=False)
    bed.log.append_batch(emptied(build_any_batch([Record(timestamp=0, key=b"", value=b"")], **options)))
    bed.log.append([encode_record(put("a"))], 0)
    load(bed)
    assert bed.faults == []
    assert bed.runtime.states() == {0: ShardState.ACTIVE}
    assert bed.runtime.counters.loaded_records == 1


def test_a_record_without_a_key_is_skipped():
    bed = filled([])
    bed.log.append_batch(build_any_batch([Record(timestamp=0, value=b"x")]))
    bed.log.release()
    load(bed)
    assert bed.runtime.counters.skipped_records == 1
    assert bed.runtime.states() == {0: ShardState.ACTIVE}


def spoil_crc(batch):
    return batch[:-1] + bytes((batch[-1] ^ 1,))


def cut(batch):
    return batch[:-1]


@pytest.mark.parametrize("damage", [spoil_crc, cut])
def test_a_log_that_cannot_be_read_fails_its_shard_alone(damage):
    bed = filled([put("a")], partition_count=2)
    bed.log.batches[0] = damage(bed.log.batches[0])
    load(bed)
    bed.runtime.start_loading(1, 0)
    assert bed.runtime.states() == {0: ShardState.FAILED, 1: ShardState.ACTIVE}
    assert code_of(bed) == ErrorCode.NOT_COORDINATOR
    assert len(bed.faults) == 1
    assert bed.runtime.counters.failed_loads == 1


def with_payload(payload, codec=0, **options):
    """A batch with a right CRC, and these bytes for its record."""
    head = bytearray(build_any_batch([Record(timestamp=0, key=b"k", value=b"v")], **options)[:HEADER_SIZE])
    head[8:12] = (HEADER_SIZE - LOG_OVERHEAD + len(payload)).to_bytes(4, "big")
    head[22] |= codec
    batch = bytes(head) + payload
    return batch[:17] + batch_crc(batch, 0, len(batch)).to_bytes(4, "big") + batch[21:]


TRANSACTIONAL = {"transactional": True, "producer_id": 1}
UNREADABLE = {
    "a key that is cut": build_batch([(b"\0\1\0", b"x")], 0),
    "a key of one byte": build_batch([(b"k", b"v")], 0),
    "a value that is cut": build_batch([(encode_record(put("b"))[0], b"\0\1\0")], 0),
    "a record that is none": with_payload(b"\xff" * 9),
    "no zstd": with_payload(b"junkjunk!", codec=4),
    "a transactional key that is cut": build_any_batch([Record(timestamp=0, key=b"\0\1\0", value=b"x")], **TRANSACTIONAL),
    "a marker without a type": build_any_batch([Record(timestamp=0, key=b"\0", value=b"x")], control=True, **TRANSACTIONAL),
    "a marker without records": with_payload(b"\xff" * 9, control=True, **TRANSACTIONAL),
}


@each_case("batch", UNREADABLE.values(), ids=UNREADABLE)
def test_records_that_cannot_be_read_are_skipped_and_told_of_in_one_line(batch):
    made = []

    def make_shard(partition, context):
        made.append(ShardWithTransactions(partition, context))
        return made[-1]

    bed = Bed(make_shard=make_shard, load=False)
    bed.log.append([encode_record(put("a", 1))], 0)
    for _ in range(2):
        bed.log.append_batch(batch)
    bed.log.append([encode_record(put("a", 2))], 0)
    load(bed)
    assert bed.runtime.states() == {0: ShardState.ACTIVE}
    assert made[0].state() == ({"a": 2}, 2)
    [(line, error)] = bed.faults
    assert line == "2 unreadable records of partition 0 were skipped"
    assert str(error).startswith("CORRUPT_MESSAGE: the first is at offset 1: ")


def test_a_log_that_cannot_be_opened_fails_its_shard():
    bed = Bed(load=False)
    bed.logs.not_here.add(0)
    load(bed)
    assert bed.runtime.states() == {0: ShardState.FAILED}


def test_a_shard_that_failed_can_be_loaded_again():
    bed = Bed(load=False)
    bed.logs.not_here.add(0)
    load(bed)
    bed.logs.not_here.clear()
    load(bed)
    assert bed.runtime.states() == {0: ShardState.ACTIVE}


def test_a_shard_that_fails_as_it_comes_to_life_fails_alone():
    class Stillborn(Shard):
        def on_loaded(self, now_ms):
            self.context.write(lambda: None).when_done(bed.respond)
            raise ZeroDivisionError

    bed = Bed(make_shard=Stillborn, load=False)
    load(bed)
    assert bed.runtime.states() == {0: ShardState.FAILED}
    assert bed.answers == [ErrorCode.NOT_COORDINATOR]


def test_a_higher_epoch_loads_the_shard_again_and_a_lower_one_does_nothing():
    bed = filled([put("a")])
    load(bed, leader_epoch=3)
    load(bed, leader_epoch=3)
    load(bed, leader_epoch=2)
    assert len(bed.shards) == 1
    load(bed, leader_epoch=4)
    assert len(bed.shards) == 2
    assert bed.shards[0].events[-1] == "unloaded"
    assert bed.shard.context.leader_epoch == 4


def test_an_unload_since_an_epoch_spares_a_shard_that_is_newer():
    bed = filled([put("a")])
    load(bed, leader_epoch=3)
    bed.runtime.unload(0, 3)
    assert bed.runtime.states() == {0: ShardState.ACTIVE}
    bed.runtime.unload(0, 4)
    assert bed.runtime.states() == {}


def test_an_unload_answers_who_waits_and_forgets_what_is_not_appended(bed):
    bed.log.held_back = True
    order = []
    bed.write(put("a", 1), on_failure=lambda _: order.append("first"))
    bed.run()
    bed.write(put("a", 2), on_failure=lambda _: order.append("second"))
    bed.runtime.unload(0)
    assert order == ["second", "first"]
    assert bed.answers == [ErrorCode.NOT_COORDINATOR] * 2
    assert code_of(bed) == ErrorCode.NOT_COORDINATOR
    bed.run()
    bed.log.release()
    load(bed, leader_epoch=1)
    assert bed.committed() == ({"a": 1}, 1)
    assert len(bed.answers) == 2


def test_an_unload_while_loading_ends_the_load():
    bed = filled([put(f"t{number}") for number in range(5000)])
    bed.runtime.start_loading(0, 0)
    bed.logs.turn()
    bed.runtime.unload(0)
    bed.run()
    assert "loaded" not in bed.shard.events
    assert not bed.runtime.is_loading
    load(bed, leader_epoch=1)
    assert bed.committed()[1] == 5000


def test_no_state_leads_where_the_table_does_not():
    for old in ShardState:
        for new in ShardState:
            if new in TRANSITIONS[old]:
                ensure_transition(old, new)
            else:
                with pytest.raises(RuntimeError):
                    ensure_transition(old, new)


def test_whoever_runs_the_process_is_told_of_much_state_that_was_loaded():
    told = []
    bed = filled(
        [put(str(number % 7), number) for number in range(25_000)],
        per_batch=1000,
        runtime_options={"on_bulk_load": lambda: told.append(bed.shard.replayed.get())},
    )
    load(bed)
    assert [replayed // 10_000 for replayed in told] == [1, 2]


def test_loading_leaves_the_garbage_collector_alone():
    bed = filled([put(str(number % 7), number) for number in range(25_000)], per_batch=1000)
    frozen = gc.get_freeze_count()
    load(bed)
    assert gc.get_freeze_count() == frozen
