"""When a new segment begins, and what the files of a segment look like."""

import struct

import pytest

from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, append, batch, names, open_log

SIZE = len(batch())


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_a_log_with_a_record_has_kafkas_files():
    file_system = MemoryFileSystem()
    append(open_log(file_system))
    stem = "0" * 20
    assert names(file_system) == [f"{stem}.index", f"{stem}.log", f"{stem}.timeindex", "leader-epoch-checkpoint"]


def test_segment_bytes_are_not_exceeded():
    log = open_log(config=LogConfig(segment_bytes=3 * SIZE))
    for _ in range(7):
        append(log)
    assert (bases(log), [segment.size for segment in log.segments]) == ([0, 3, 6], [3 * SIZE, 3 * SIZE, SIZE])


def test_a_segment_is_rolled_when_its_records_span_segment_ms():
    log = open_log(config=LogConfig(segment_ms=1000))
    for stamp in (0, 1000, 1001, 2001, 2002):
        append(log, batch(timestamp=NOW_MS + stamp))
    assert bases(log) == [0, 2, 4]


def test_a_new_segment_ms_counts_for_the_segment_that_is_there():
    log = open_log()
    append(log, batch(timestamp=NOW_MS))
    log.config = LogConfig(segment_ms=1000)
    append(log, batch(timestamp=NOW_MS + 1001))
    assert bases(log) == [0, 1]


@pytest.mark.parametrize(("policy", "expected"), [(("compact",), [0, 1]), (("delete",), [0])])
def test_a_segment_is_rolled_before_a_record_waits_too_long_for_compaction(policy, expected):
    log = open_log(config=LogConfig(cleanup_policy=policy, max_compaction_lag_ms=1000))
    append(log, batch(key=b"k", timestamp=NOW_MS))
    append(log, batch(key=b"k", timestamp=NOW_MS + 1001))
    assert bases(log) == expected


def test_a_segment_of_records_without_timestamps_is_rolled_by_the_clock():
    log = open_log(config=LogConfig(segment_ms=1000))
    for clock in (0, 1000, 1001, 2001, 2002):
        append(log, batch(timestamp=-1), now_ms=NOW_MS + clock)
    assert bases(log) == [0, 2, 4]


def test_a_reopened_segment_is_rolled_by_its_first_record():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    append(log, batch(timestamp=NOW_MS))
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, config=LogConfig(segment_ms=1000), clean=True)
    append(again, batch(timestamp=NOW_MS + 1001))
    assert bases(again) == [0, 1]


def test_jitter_rolls_a_segment_earlier_and_always_at_the_same_time():
    config = LogConfig(segment_ms=10_000, segment_jitter_ms=10_000)
    jitters = {open_log(config=config).segments.active.roll_jitter_ms for _ in range(3)}
    assert len(jitters) == 1
    assert 0 <= jitters.pop() < 10_000


def test_a_full_offset_index_rolls_the_segment():
    log = open_log(config=LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    for number in range(6):
        append(log, batch(timestamp=NOW_MS - number))
    assert bases(log) == [0, 5]


def test_a_full_time_index_rolls_the_segment():
    log = open_log(config=LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    for number in range(6):
        append(log, batch(timestamp=NOW_MS + number))
    assert bases(log) == [0, 2, 4]


def test_indexes_without_room_do_not_stop_a_log():
    log = open_log(config=LogConfig(segment_index_bytes=4))
    for _ in range(3):
        append(log)
    assert bases(log) == [0, 1, 2]


def test_an_empty_segment_is_not_rolled():
    log = open_log()
    log.roll(NOW_MS)
    assert bases(log) == [0]


def test_an_offset_too_far_from_the_base_rolls_the_segment():
    log = open_log()
    append(log)
    log._local.log_end_offset = 2**31
    append(log)
    assert bases(log) == [0, 2**31]


def test_index_entries_come_every_interval_and_the_time_index_begins_with_the_first_batch():
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=LogConfig(index_interval_bytes=2 * SIZE))
    for number in range(7):
        append(log, batch(timestamp=NOW_MS + number))
    log.close(clean=True, now_ms=NOW_MS)
    stem = f"/data/t-0/{0:020d}"
    assert file_system.read_bytes(f"{stem}.index") == struct.pack(">iiii", 3, 3 * SIZE, 6, 6 * SIZE)
    assert file_system.read_bytes(f"{stem}.timeindex") == struct.pack(">qiqiqi", NOW_MS, 0, NOW_MS + 3, 3, NOW_MS + 6, 6)


def test_a_rolled_segment_ends_its_time_index_with_its_largest_timestamp():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    for stamp in (5, 9, 7):
        append(log, batch(timestamp=stamp))
    log.roll(NOW_MS)
    assert file_system.read_bytes(f"/data/t-0/{0:020d}.timeindex") == struct.pack(">qiqi", 5, 0, 9, 1)


@pytest.mark.parametrize("include_active", [False, True])
def test_a_flush_moves_the_recovery_point_to_what_it_synced(include_active):
    log = open_log()
    append(log)
    log.roll(NOW_MS)
    append(log)
    task = log.flush_state.flush_task(active=include_active)
    append(log)
    task.run()
    before = log.recovery_point
    log.flush_state.flushed(task, NOW_MS)
    assert (before, log.recovery_point) == (0, 2 if include_active else 1)


def test_names_are_synced_again_until_a_flush_has_ended():
    log = open_log()
    append(log)
    begun = log.flush_state.flush_task()
    assert log.flush_state.flush_task().directories == begun.directories == ("/data/t-0", "/data")
    log.flush_state.flushed(begun, NOW_MS)
    append(log)
    assert log.flush_state.flush_task().directories == ()
    log.roll(NOW_MS)
    assert log.flush_state.flush_task().directories == begun.directories


def test_only_what_changed_is_synced_again(tmp_path):
    log = open_log()
    append(log)
    log.flush(NOW_MS)
    append(log)
    again = log.flush_state.flush_task()
    assert (len(again.files), again.directories) == (1, ())
