"""A follower's log: what it appends of a leader's batches, and what it refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.errors import OffsetsOutOfOrder, UnexpectedAppendOffset
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.replication import ACTIONS, SMALL, Leader, content, fetch, files_of, known_of
from tests.storage.support import NOW_MS, append, batch, open_log


def follow(log, batches, *, leader_epoch=0):
    return log.append_as_follower(batches, leader_epoch=leader_epoch, now_ms=NOW_MS)


def batches_of(count, **options):
    """The bytes of a leader's log of ``count`` batches, two records each."""
    leader = open_log()
    for _ in range(count):
        append(leader, batch(2), **options)
    return content(leader)


@settings(deadline=None)
@given(actions=st.lists(ACTIONS, max_size=60), max_bytes=st.sampled_from([1, 130, 500, 10_000]))
def test_a_follower_that_fetched_everything_is_the_leader_file_by_file(actions, max_bytes):
    log = open_log(config=SMALL)
    leader = Leader(log)
    follower = open_log(config=SMALL)
    for number, action in enumerate(actions):
        leader.do(*action)
        if number % 9 == 8:
            fetch(log, follower, max_bytes)
    fetch(log, follower, max_bytes)
    assert known_of(follower) == known_of(log)
    assert files_of(follower) == files_of(log)
    again = open_log(follower.file_system, config=SMALL)
    assert known_of(again) == known_of(log)


def test_the_last_batch_of_a_fetch_may_be_cut():
    batches = batches_of(3)
    log = open_log()
    info = follow(log, batches[:-1])
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (0, 3, 4)
    assert follow(log, batches[2 * len(batches) // 3 : -1]) is None
    assert content(log) == batches[: 2 * len(batches) // 3]


def test_batches_of_a_later_leader_than_the_fetch_was_sent_to_are_skipped():
    leader = open_log()
    for epoch in (1, 1, 3, 4):
        append(leader, batch(), leader_epoch=epoch)
    log = open_log()
    assert follow(log, content(leader), leader_epoch=3).last_offset == 2
    assert log.leader_epochs.entries == ((1, 0), (3, 2))
    assert follow(log, content(leader)[3 * len(batch()) :], leader_epoch=3) is None


@pytest.mark.parametrize("end", [1, 2, 3])
def test_a_fetch_that_begins_below_the_log_end_offset_is_refused(end):
    batches = batches_of(2)
    log = open_log()
    for _ in range(end):
        append(log)
    with pytest.raises(UnexpectedAppendOffset) as refusal:
        follow(log, batches)
    assert (refusal.value.first_offset, refusal.value.last_offset, log.log_end_offset) == (0, 1, end)


def test_a_fetch_whose_offsets_do_not_ascend_is_refused_as_a_whole():
    batches = batches_of(2)
    log = open_log()
    with pytest.raises(OffsetsOutOfOrder):
        follow(log, batches + batches)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)


def test_a_gap_too_wide_for_relative_offsets_is_refused():
    leader = open_log(log_start_offset=2**31)
    append(leader)
    with pytest.raises(UnexpectedAppendOffset):
        follow(open_log(), content(leader))


@pytest.mark.parametrize("position", [17, 22, -1])
def test_a_fetch_with_a_flipped_bit_is_refused_as_a_whole(position):
    batches = bytearray(batches_of(3))
    size = len(batches) // 3
    batches[size + position % size] ^= 1
    log = open_log()
    with pytest.raises(KafkaError) as refusal:
        follow(log, bytes(batches))
    assert (refusal.value.code, log.log_end_offset) == (ErrorCode.CORRUPT_MESSAGE, 0)


def test_a_leader_epoch_that_goes_back_is_refused():
    log = open_log()
    append(log, batch(2), leader_epoch=5)
    leader = open_log()
    append(leader, batch(2), leader_epoch=5)
    append(leader, batch(2), leader_epoch=5)
    last = bytearray(content(leader)[len(content(log)) :])
    last[12:16] = (4).to_bytes(4, "big")
    with pytest.raises(KafkaError) as refusal:
        follow(log, bytes(last), leader_epoch=9)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("clean", [True, False])
def test_the_gaps_of_a_compacted_leader_outlive_a_restart(clean):
    config = LogConfig(cleanup_policy=("compact",))
    leader = open_log(config=config)
    keyed = batch(2, key=b"k")
    for epoch in range(5):
        append(leader, keyed, leader_epoch=epoch)
    parts = [content(leader)[number * len(keyed) : (number + 1) * len(keyed)] for number in range(5)]
    log = open_log(config=config)
    follow(log, parts[1] + parts[2] + parts[4], leader_epoch=9)
    assert (log.log_end_offset, log.leader_epochs.entries) == (10, ((1, 2), (2, 4), (4, 8)))
    log.close(clean=clean, now_ms=NOW_MS)
    again = open_log(log.file_system, config=config, clean=clean)
    assert (again.log_end_offset, again.leader_epochs.entries) == (10, ((1, 2), (2, 4), (4, 8)))
    assert again.read(6, 1, upper_offset=10, min_one_batch=True).read() == parts[4]


def test_a_follower_flushes_as_flush_messages_says():
    log = open_log(config=LogConfig(flush_messages=3))
    batches = batches_of(2)
    follow(log, batches[: len(batches) // 2])
    before = log.flushed_offset
    follow(log, batches[len(batches) // 2 :])
    assert (before, log.flushed_offset) == (0, 4)


def test_what_the_disk_refuses_is_not_in_the_log(monkeypatch):
    log = open_log(MemoryFileSystem())
    batches = batches_of(2)

    def refuse(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(log.segments.active.file), "append", lambda _, buffers: refuse(buffers))
        with pytest.raises(KafkaError) as refusal:
            follow(log, batches)
    assert (refusal.value.code, log.log_end_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
    follow(log, batches)
    assert content(log) == batches
