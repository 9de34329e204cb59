from itertools import pairwise

import pytest

from odradek.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from odradek.storage.cleaning.batch_filter import DELETE_HORIZON_MASK
from odradek.storage.cleaning.candidates import choose, look_at
from odradek.storage.cleaning.cleaner import CleanerLimits, CleaningAborted
from odradek.storage.errors import LogCorrupt
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.cleaner.support import (
    DAY_MS,
    LIMITS,
    batches_of,
    clean_up,
    compacted,
    headers_of,
    pairs_of,
    put,
    read_committed,
    records_of,
    roll_and_clean,
)
from tests.storage.support import DIRECTORY, NOW_MS, Warnings, append, names, open_log
from tests.storage.transactional import end

LONGEST_MS = 2**63 - 1


def new_log(**options):
    file_system = MemoryFileSystem()
    return file_system, open_log(file_system, config=compacted(**options))


def test_the_last_record_of_each_key_stays_at_its_offset():
    _, log = new_log()
    for number in range(20):
        put(log, (b"a", b"%d" % number), (b"b", b"%d" % number))
    put(log, (b"c", b"once"))
    stats = roll_and_clean(log)
    assert pairs_of(log) == [(38, b"a", b"19"), (39, b"b", b"19"), (40, b"c", b"once")]
    assert stats.end_offset == log.log_end_offset == 41
    assert (stats.read_records, stats.kept_records) == (41, 3)


def test_the_active_segment_is_left_alone_and_still_supersedes_nothing():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW_MS)
    put(log, (b"a", b"3"))
    put(log, (b"a", b"4"))
    clean_up(log)
    assert pairs_of(log) == [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"a", b"4")]


def test_what_is_dirty_supersedes_what_was_cleaned():
    _, log = new_log()
    put(log, (b"a", b"1"), (b"b", b"1"))
    stats = roll_and_clean(log)
    put(log, (b"a", b"2"))
    roll_and_clean(log, stats.end_offset)
    assert pairs_of(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


@each_case("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_of_which_a_part_stays_keeps_its_codec_its_offsets_and_its_producer(codec):
    _, log = new_log(segment_bytes=1 << 20)
    producer = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 0}
    put(log, *[(b"key %d" % number, b"x" * 50) for number in range(10)], compression=codec, **producer)
    put(log, *[(b"key %d" % number, b"y") for number in range(10) if number not in (3, 5)])
    (before, _), _ = batches_of(log)
    roll_and_clean(log)
    (after, _), _ = batches_of(log)
    assert after.compression == codec
    assert (after.base_offset, after.last_offset_delta, after.record_count) == (0, 9, 2)
    assert after.base_sequence == 0
    assert after[9:12] == before[9:12]
    assert [record.offset for record in records_of(log)][:2] == [3, 5]
    assert after.size_bytes < before.size_bytes


def test_a_batch_of_which_all_stays_is_copied_byte_by_byte():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"gone"))
    put(log, (b"b", b"x"), (b"c", b"y"), compression=ZSTD)
    (_, kept) = batches_of(log)
    put(log, (b"a", b"z"))
    roll_and_clean(log)
    assert batches_of(log)[0] == kept


def test_cleaning_again_what_is_clean_writes_nothing():
    file_system, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    stats = roll_and_clean(log)
    before = {name: bytes(file.data) for name, file in file_system.files.items() if name.endswith("0.log")}
    again = clean_up(log)
    assert again.written_bytes == 0 < stats.written_bytes
    assert {name: bytes(file_system.files[name].data) for name in before} == before


def test_a_tombstone_lives_delete_retention_ms_from_the_first_clean_on():
    _, log = new_log(delete_retention_ms=DAY_MS, segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", None), (b"b", b"2"), timestamp=NOW_MS - 17)
    later = NOW_MS + 5 * DAY_MS
    log.roll(NOW_MS)
    put(log, (b"z", b"1"))
    clean_up(log, now_ms=later)
    assert pairs_of(log)[0] == (1, b"a", None)
    header = headers_of(log)[0]
    assert header.attributes & DELETE_HORIZON_MASK
    assert header.base_timestamp == later + DAY_MS
    assert [record.timestamp for record in records_of(log)][:2] == [NOW_MS - 17, NOW_MS - 17]
    clean_up(log, now_ms=later + DAY_MS - 1)
    assert pairs_of(log)[0] == (1, b"a", None)
    clean_up(log, now_ms=later + DAY_MS)
    assert pairs_of(log) == [(2, b"b", b"2"), (3, b"z", b"1")]
    assert headers_of(log)[0].attributes & DELETE_HORIZON_MASK
    assert records_of(log)[0].timestamp == NOW_MS - 17


@each_case("config", ["delete_retention_ms", "min_compaction_lag_ms", "max_compaction_lag_ms", "segment_ms", "retention_ms"])
@each_case("time_ms", [LONGEST_MS, LONGEST_MS - NOW_MS, LONGEST_MS - NOW_MS - 1, 2**62])
def test_a_time_as_long_as_can_be_does_not_stop_the_cleaner(config, time_ms):
    _, log = new_log(**{config: time_ms}, segment_bytes=1 << 20)
    put(log, (b"a", b"1"), timestamp=1)
    put(log, (b"a", b"2"), (b"b", None), timestamp=1)
    end(log, commit=True, producer=9)
    log.producers.by_id.clear()
    log.roll(NOW_MS)
    put(log, (b"z", b"1"))
    clean_up(log)
    everything = [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"b", None), (4, b"z", b"1")]
    assert pairs_of(log) == (everything if config == "min_compaction_lag_ms" else everything[1:])
    assert [header.is_control for header in headers_of(log)].count(True) == 1
    has_horizon = config != "min_compaction_lag_ms" and NOW_MS + log.config.delete_retention_ms <= LONGEST_MS
    assert any(header.attributes & DELETE_HORIZON_MASK for header in headers_of(log)) == has_horizon
    clean_up(log, 0, now_ms=NOW_MS + 365 * DAY_MS)
    if config == "delete_retention_ms":
        assert pairs_of(log) == everything[1:]


@pytest.mark.parametrize("has_other_record", [False, True])
def test_a_tombstone_too_far_from_its_horizon_stays_readable(has_other_record):
    _, log = new_log(segment_bytes=1 << 20)
    pairs = [(b"a", None), (b"b", b"superseded")] if has_other_record else [(b"a", None)]
    oldest_ms = NOW_MS - LONGEST_MS
    put(log, *pairs, timestamp=oldest_ms)
    put(log, (b"b", b"1"))
    roll_and_clean(log)
    assert [(record.key, record.timestamp) for record in records_of(log)] == [(b"a", oldest_ms), (b"b", NOW_MS)]
    assert not headers_of(log)[0].attributes & DELETE_HORIZON_MASK


def test_records_without_a_key_go():
    _, log = new_log()
    log.config = compacted(cleanup_policy=("delete",))
    append(log)
    log.config = compacted()
    put(log, (b"a", b"1"))
    stats = roll_and_clean(log)
    assert pairs_of(log) == [(1, b"a", b"1")]
    assert stats.keyless_records == 1


def test_batches_of_an_aborted_transaction_go_and_do_not_supersede():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"kept"))
    put(log, (b"a", b"aborted"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, commit=False, producer=9)
    put(log, (b"b", b"committed"), producer_id=9, producer_epoch=0, base_sequence=1, transactional=True)
    end(log, commit=True, producer=9)
    roll_and_clean(log)
    assert pairs_of(log) == read_committed(log) == [(0, b"a", b"kept"), (3, b"b", b"committed")]


def test_a_marker_stays_until_a_clean_found_nothing_in_front_of_it_and_delete_retention_ms_have_passed():
    _, log = new_log(segment_bytes=1 << 20, delete_retention_ms=1000)
    put(log, (b"a", b"aborted"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, commit=False, producer=9)
    put(log, (b"a", b"later"))
    log.producers.by_id.clear()
    stats = roll_and_clean(log)
    assert [header.is_control for header in headers_of(log)] == [True, False]
    assert log.aborted_transactions(0, 10) == [(9, 0)]
    for now_ms in (NOW_MS, NOW_MS + 999):
        clean_up(log, 0, now_ms=now_ms)
        marker = headers_of(log)[0]
        assert marker.is_control
        assert marker.base_timestamp == NOW_MS + 1000
        assert log.aborted_transactions(0, 10) == []
    clean_up(log, 0, now_ms=NOW_MS + 1000)
    assert [header.is_control for header in headers_of(log)] == [False]
    assert stats.end_offset == log.log_end_offset


def test_the_epoch_of_a_live_producer_outlasts_its_last_marker():
    file_system, log = new_log(segment_bytes=1 << 20, delete_retention_ms=0)
    put(log, (b"a", b"aborted"), producer_id=9, producer_epoch=3, base_sequence=0, transactional=True)
    end(log, commit=False, producer=9, epoch=4, version=2)
    put(log, (b"a", b"later"))
    log.roll(NOW_MS)
    for now_ms in range(NOW_MS, NOW_MS + 3):
        clean_up(log, 0, now_ms=now_ms)
    assert [(header.is_control, header.record_count) for header in headers_of(log)] == [(True, 0), (False, 1)]
    for name in [name for name in names(file_system) if name.endswith(".snapshot")]:
        file_system.remove(f"{DIRECTORY}/{name}")
    again = open_log(file_system, config=log.config)
    assert (again.producers.by_id[9].epoch, again.first_unstable_offset) == (4, None)


def test_a_commit_marker_stays_while_a_record_of_its_transaction_does():
    _, log = new_log(segment_bytes=1 << 20, delete_retention_ms=0)
    put(log, (b"a", b"1"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, commit=True, producer=9)
    log.producers.by_id.clear()
    log.roll(NOW_MS)
    for now_ms in range(NOW_MS, NOW_MS + 5):
        clean_up(log, 0, now_ms=now_ms)
    assert [header.is_control for header in headers_of(log)] == [False, True]
    put(log, (b"a", b"2"))
    log.roll(NOW_MS)
    for now_ms in range(NOW_MS, NOW_MS + 5):
        clean_up(log, 0, now_ms=now_ms)
    assert [header.is_control for header in headers_of(log)] == [False]


def test_a_transaction_that_was_aborted_before_what_is_dirty_takes_nothing_with_it():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"aborted"), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, commit=False, producer=9)
    stats = roll_and_clean(log)
    put(log, (b"a", b"old"))
    put(log, (b"a", b"new"), producer_id=9, producer_epoch=0, base_sequence=1, transactional=True)
    end(log, commit=True, producer=9)
    roll_and_clean(log, stats.end_offset)
    assert pairs_of(log) == [(3, b"a", b"new")]


def test_the_last_sequence_of_a_live_producer_stays_in_an_empty_batch():
    file_system, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"), producer_id=5, producer_epoch=1, base_sequence=0)
    put(log, (b"a", b"2"), (b"b", b"2"), producer_id=5, producer_epoch=1, base_sequence=1, compression=ZSTD)
    put(log, (b"a", b"3"), (b"b", b"3"))
    roll_and_clean(log)
    empty = headers_of(log)[0]
    assert (empty.record_count, empty.base_offset, empty.last_offset, empty.last_sequence) == (0, 1, 2, 2)
    assert empty.compression == NONE
    again = open_log(file_system, config=log.config)
    assert again.producers.by_id[5].last_sequence == 2


def test_nothing_stays_of_a_producer_that_is_forgotten():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"), producer_id=5, producer_epoch=1, base_sequence=0)
    put(log, (b"a", b"2"))
    log.producers.by_id.clear()
    roll_and_clean(log)
    assert [header.base_offset for header in headers_of(log)] == [1]


def test_the_marker_that_brought_a_producer_its_epoch_stays():
    _, log = new_log(segment_bytes=1 << 20, delete_retention_ms=0)
    put(log, (b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    end(log, commit=False, producer=5, epoch=1, version=2)
    put(log, (b"b", b"2"))
    log.roll(NOW_MS)
    for now_ms in range(NOW_MS, NOW_MS + 3):
        clean_up(log, 0, now_ms=now_ms)
    marker = headers_of(log)[0]
    assert (marker.is_control, marker.producer_epoch, marker.record_count) == (True, 1, 0)


def test_the_index_of_timestamps_leads_to_no_batch_without_records():
    _, log = new_log()
    options = {"producer_id": 7, "producer_epoch": 0}
    put(log, (b"a", b"1"), (b"b", b"1"), timestamp=NOW_MS + 10, base_sequence=0, **options)
    put(log, (b"a", b"2"), (b"b", b"2"), timestamp=NOW_MS)
    roll_and_clean(log)
    assert [(header.record_count, header.max_timestamp) for header in headers_of(log)] == [(0, NOW_MS + 10), (2, NOW_MS)]
    assert next(iter(log.segments)).learn_max_timestamp() == NOW_MS


def test_the_clean_ends_below_the_last_stable_offset_at_a_segment():
    _, log = new_log(segment_bytes=100)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    put(log, (b"b", b"open"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    put(log, (b"a", b"3"))
    put(log, (b"a", b"4"))
    stats = clean_up(log)
    assert stats.end_offset == 2
    assert [offset for offset, _, _ in pairs_of(log)] == [1, 2, 3, 4]


def test_what_is_younger_than_min_compaction_lag_ms_is_left_alone():
    _, log = new_log(segment_bytes=100, min_compaction_lag_ms=1000)
    for number in range(6):
        put(log, (b"a", b"%d" % number), now_ms=NOW_MS + 400 * number)
    stats = clean_up(log, now_ms=NOW_MS + 1801)
    assert stats.end_offset == 3
    assert [offset for offset, _, _ in pairs_of(log)] == [2, 3, 4, 5]


def test_a_clean_whose_keys_do_not_fit_goes_as_far_as_they_do_and_the_next_goes_on_from_there():
    _, log = new_log(segment_bytes=1000)
    for value in (b"1", b"2"):
        for number in range(0, 100, 5):
            put(log, *[(b"key %03d" % key, value) for key in range(number, number + 5)])
    log.roll(NOW_MS)
    cleaned = 0
    rounds = 0
    while cleaned < log.log_end_offset:
        stats = clean_up(log, cleaned, limits=CleanerLimits(dedupe_buffer_bytes=5000, load_factor=0.9, io_buffer_bytes=500))
        assert cleaned < stats.end_offset
        cleaned = stats.end_offset
        rounds += 1
    assert rounds > 3
    assert [(key, value) for _, key, value in pairs_of(log)] == [(b"key %03d" % key, b"2") for key in range(100)]


def test_small_segments_become_one_as_far_as_segment_bytes_go():
    file_system, log = new_log(segment_bytes=300)
    for number in range(40):
        put(log, (b"key %d" % (number % 8), b"x" * 20))
    before = len(log.segments)
    stats = roll_and_clean(log)
    for _ in range(4):
        clean_up(log, 0)
    assert len(log.segments) < before / 2
    assert all(segment.size <= 300 for segment in log.segments)
    assert [offset for offset, _, _ in pairs_of(log)] == list(range(32, 40))
    assert [name for name in names(file_system) if name.endswith((".cleaned", ".swap"))] == []
    assert stats.end_offset == 40


def test_segments_that_are_too_far_apart_stay_apart():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    log._local.log_end_offset += 2**31
    log.roll(NOW_MS)
    put(log, (b"b", b"1"))
    roll_and_clean(log)
    assert [segment.base_offset for segment in log.segments][:2] == [0, 2**31 + 1]


def test_the_indexes_of_a_cleaned_segment_find_every_record():
    file_system, log = new_log(segment_bytes=1 << 20)
    for number in range(200):
        put(log, (b"key %d" % (number % 67), b"x" * (number % 7)), timestamp=NOW_MS + number)
    roll_and_clean(log)
    log = open_log(file_system, config=log.config, clean=True)
    for offset, later in pairwise([offset for offset, _, _ in pairs_of(log)]):
        piece = log.read(offset + 1, 1, upper_offset=log.log_end_offset, min_one_batch=True)
        assert int.from_bytes(piece.read()[:8], "big") == later
        assert log.offset_for_timestamp(NOW_MS + offset + 1).offset == later
    assert log.max_timestamp_offset().offset == 199


def test_readers_of_a_replaced_segment_go_on():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    piece = log.read(0, 1000, upper_offset=2, min_one_batch=True)
    before = piece.read()
    roll_and_clean(log)
    assert piece.read() == before


def test_old_segments_are_renamed_and_kept_for_the_while():
    file_system, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    asked = []
    log.retention.removal.remove_later = lambda paths, delay_ms: asked.append((paths, delay_ms))
    roll_and_clean(log)
    ((paths, delay_ms),) = asked
    assert delay_ms == log.config.file_delete_delay_ms
    assert f"{DIRECTORY}/{0:020d}.log.deleted" in paths
    assert all(file_system.exists(path) for path in paths)


def test_snapshots_go_with_the_segments_that_they_were_of():
    file_system, log = new_log(segment_bytes=300)
    for sequence in range(10):
        put(log, (b"a", b"x" * 50), producer_id=5, producer_epoch=1, base_sequence=sequence)
    roll_and_clean(log)
    bases = {segment.base_offset for segment in log.segments}
    kept = {int(name[:20]) for name in names(file_system) if name.endswith(".snapshot")}
    assert kept <= bases
    assert log.log_end_offset in kept


def test_a_flipped_bit_is_found_and_nothing_changed():
    file_system, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW_MS)
    file_system.files[f"{DIRECTORY}/{0:020d}.log"].data[68] ^= 4
    before = names(file_system)
    with pytest.raises(LogCorrupt, match=r"0\.log, from position 0 on: CRC"):
        clean_up(log)
    assert names(file_system) == before


def test_a_batch_larger_than_the_buffer_is_cleaned():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"x" * 5000))
    put(log, (b"b", b"x" * 5000))
    put(log, (b"a", b"y"))
    roll_and_clean(log, limits=CleanerLimits(dedupe_buffer_bytes=1 << 20, load_factor=0.9, io_buffer_bytes=100))
    assert [(offset, key) for offset, key, _ in pairs_of(log)] == [(1, b"b"), (2, b"a")]


def test_pace_is_told_of_every_byte():
    _, log = new_log(segment_bytes=1 << 20)
    for number in range(2000):
        put(log, (b"%d" % (number % 10), b"x"))
    told = []
    stats = roll_and_clean(log, pace=told.append, limits=LIMITS)
    total = stats.read_bytes + stats.written_bytes
    assert total * 0.9 < sum(told) <= total
    assert len(told) > 20


def test_a_log_that_is_closed_meanwhile_is_left_as_it_was():
    file_system, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.roll(NOW_MS)
    before = names(file_system)

    def close_then(action):
        log.is_closed = True
        return action()

    with pytest.raises(CleaningAborted):
        clean_up(log, on_loop=close_then)
    assert names(file_system) == before


def test_a_log_whose_end_is_cut_off_meanwhile_gets_nothing_of_the_clean():
    _, log = new_log(segment_bytes=1 << 20)
    for number in range(3):
        put(log, (b"a", b"%d" % number))
    log.roll(NOW_MS)

    def cut_then(action):
        if not log.truncations:
            log.truncate_to(2, NOW_MS)
            put(log, (b"a", b"other"))
            log.roll(NOW_MS)
        return action()

    with pytest.raises(CleaningAborted):
        clean_up(log, on_loop=cut_then)
    assert [value for _, _, value in pairs_of(log)] == [b"0", b"1", b"other"]


def test_a_clean_that_reads_what_was_cut_off_is_void_and_the_log_not_damaged():
    _, log = new_log(segment_bytes=1 << 20)
    put(log, (b"a", b"0"))
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)

    def cut(_):
        if not log.truncations:
            log.truncate_to(1, NOW_MS)

    with pytest.raises(CleaningAborted):
        clean_up(log, pace=cut)
    assert [value for _, _, value in pairs_of(log)] == [b"0"]


def test_what_followers_do_not_have_yet_is_not_compacted():
    """It may be cut off, and then a record of the same key is wanted again."""
    log = open_log(config=compacted(segment_bytes=80))
    for value in (b"1", b"2", b"3", b"4"):
        put(log, (b"k", value))
    log.roll(NOW_MS)
    assert look_at(log, 0, NOW_MS, 0) is None
    assert look_at(log, 0, NOW_MS, 2).first_uncleanable_offset == 2
    assert look_at(log, 0, NOW_MS, None).first_uncleanable_offset == 4
    assert choose([log], NOW_MS, Warnings(), lambda key: {log.topic_partition: 0}[key]) == (None, [])
