"""Logs with messages of formats v0 and v1: all is kept and found that Kafka keeps and finds there, and nothing is cut off."""

import os
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.cleaning.batch_filter import DELETE_HORIZON_MASK
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_lookup import LongLookup
from tests.cases import each_case
from tests.legacy_messages import CODECS, Legacy, message, wrapper
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.cleaner.support import DAY_MS, compacted, headers_of, records_of, roll_and_clean
from tests.storage.support import DIRECTORY, NOW_MS, Warnings, append, batch, open_log, read
from tests.storage.test_data_directories import TOPIC_ID, started
from tests.storage.test_log_move import moved

CONFIG = LogConfig(index_interval_bytes=300)
PLAIN = "none"
FORMATS = list(product([0, 1], [PLAIN, *CODECS]))


def log_path(base_offset=0, suffix=".log"):
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def records(count, begin=0):
    """With every kind of key and value."""
    found = []
    for offset in range(begin, begin + count):
        key = None if offset % 5 == 3 else b"key-%d" % (offset % 7)
        value = None if offset % 6 == 4 else b"%d" % offset * 20
        found.append(Legacy(offset, NOW_MS + offset * 10 - (offset % 3) * 25, key, value))
    return found


def messages(magic, codec, found):
    """A list of messages: wrappers of three, or one for each record."""
    if codec == PLAIN:
        return [message(magic, record) for record in found]
    return [wrapper(magic, codec, found[at : at + 3]) for at in range(0, len(found), 3)]


def told(magic, found):
    return [Record(record.offset, record.timestamp if magic else -1, record.key, record.value) for record in found]


def put_down(*segments):
    """A file system with .log files only: (base offset, content)."""
    file_system = MemoryFileSystem()
    file_system.make_dirs(DIRECTORY)
    for base_offset, data in segments or [(0, b"")]:
        file_system.open(log_path(base_offset), create=True).append([data])
    return file_system


def found_at(log, timestamp):
    """The offset of a lookup, however long it takes."""
    from_offset = 0
    while True:
        try:
            found = log.offset_for_timestamp(timestamp, from_offset)
        except LongLookup as long:
            found = long.run(lambda: None)
            if found is None:
                from_offset = long.next_offset
                continue
        return found and found.offset


def test_five_messages_of_format_v1_are_five_after_a_kill():
    data = b"".join(message(1, Legacy(n, NOW_MS + n, b"k%d" % n, b"v%d" % n)) for n in range(5))
    file_system, warnings = put_down((0, data)), Warnings()
    log = open_log(file_system, warn=warnings)
    assert log.log_end_offset == 5
    assert read(log, 0) == data
    assert not warnings.fields("torn tail truncated")


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_a_log_is_the_same_after_a_kill_and_after_a_stop(magic, codec):
    old = records(60)
    data = b"".join(messages(magic, codec, old))
    new = build_batch([Record(timestamp=NOW_MS + 9_000, value=b"new")], base_offset=60, leader_epoch=4)
    file_system = put_down((0, data + new))
    for clean in (False, True, False):
        warnings = Warnings()
        log = open_log(file_system, config=CONFIG, clean=clean, warn=warnings)
        assert (log.log_start_offset, log.log_end_offset) == (0, 61)
        assert read(log, 0) == data + new
        assert records_of(log)[:-1] == told(magic, old)
        assert log.leader_epochs.entries == ((4, 60),)
        assert log.segments.active.offset_index.entry_count > 2
        for timestamp in range(NOW_MS - 60, NOW_MS + 700, 7):
            later = (record.offset for record in told(magic, old) if record.timestamp >= timestamp)
            assert found_at(log, timestamp) == next(later, 60)
        log.close(clean=True, now_ms=NOW_MS)
    assert not warnings.events


@each_case(("magic", "codec"), FORMATS)
def test_a_fetch_begins_with_the_message_that_holds_the_offset(magic, codec):
    data = messages(magic, codec, records(30))
    log = open_log(put_down((0, b"".join(data))), config=CONFIG)
    size = 1 if codec == PLAIN else 3
    for offset in range(30):
        assert read(log, offset) == b"".join(data[offset // size :])
        assert read(log, offset, 1) == data[offset // size]
        assert read(log, offset, 1, min_one_batch=False) is None


def test_the_record_with_the_largest_timestamp_is_found_in_a_wrapper():
    log = open_log(put_down((0, b"".join(messages(1, "gzip", records(9))))), config=CONFIG)
    expected = max(records(9), key=lambda record: (record.timestamp, -record.offset))
    assert log.max_timestamp_offset()[:2] == (expected.timestamp, expected.offset)
    assert open_log(put_down((0, message(0, records(1)[0])))).max_timestamp_offset() is None


@given(st.sampled_from(FORMATS), st.integers(1, 12), st.data())
def test_a_log_cut_anywhere_keeps_every_message_that_is_whole(kind, count, data):
    whole = messages(*kind, records(count))
    cut = data.draw(st.integers(0, sum(map(len, whole))))
    kept, size = [], 0
    for each in whole:
        if size + len(each) > cut:
            break
        kept.append(each)
        size += len(each)
    log = open_log(put_down((0, b"".join(whole)[:cut])))
    assert (read(log, 0) or b"") == b"".join(kept)


@given(st.sampled_from(FORMATS), st.integers(2, 12), st.data())
def test_a_damaged_byte_before_the_last_message_takes_the_log_offline(kind, count, data):
    whole = messages(*kind, records(count * 3))
    content = bytearray(b"".join(whole))
    content[data.draw(st.integers(12, len(content) - len(whole[-1]) - 1))] ^= data.draw(st.integers(1, 255))
    file_system = put_down((0, bytes(content)))
    try:
        log = open_log(file_system)
    except LogCorrupt:
        pass
    else:
        # No checksum covers offset and size; a wrapper's offset may be any.
        assert read(log, 0) == content
    assert file_system.read_bytes(log_path()) == content


@each_case("last", [message(0, Legacy(2, -1, None, b"v")), message(1, Legacy(9, 1, None, b"v")), batch(base_offset=1)])
@each_case("begin", [b"", message(1, Legacy(7, 1, None, b"v"))])
def test_what_has_a_valid_checksum_is_never_cut_off(begin, last):
    # Zeros to a sector's end are a record's own here, not those of a block that was never written.
    data = b"".join(message(1, Legacy(n, 1, None, bytes(600))) for n in range(5)) + begin + last
    file_system = put_down((0, data))
    with pytest.raises(LogCorrupt):
        open_log(file_system)
    assert file_system.read_bytes(log_path()) == data


@each_case("clean", [True, False])
@each_case("magic", [3, 127, -1])
def test_an_unknown_magic_takes_the_log_offline_and_is_named(magic, clean):
    file_system = put_down((0, message(1, Legacy(0, 1, None, b"v"))))
    open_log(file_system).close(clean=True, now_ms=NOW_MS)
    later = bytearray(batch(base_offset=1))
    later[16] = magic % 256
    file_system.files[log_path()].data += later
    with pytest.raises(LogCorrupt, match=f"magic {magic},"):
        open_log(file_system, clean=clean)
    assert file_system.read_bytes(log_path()).endswith(later)


def test_the_log_does_not_begin_where_its_first_leader_epoch_does():
    file_system = put_down((0, b"".join(messages(1, "gzip", records(6)))))
    log = open_log(file_system)
    # As a leader that has not written anything yet.
    log.leader_epochs.assign(3, 6)
    log.close(clean=True, now_ms=NOW_MS)
    assert open_log(file_system, clean=True).log_start_offset == 0
    log = open_log(file_system, clean=False)
    append(log, leader_epoch=3)
    log.close(clean=True, now_ms=NOW_MS)
    warnings = Warnings()
    assert open_log(file_system, clean=True, warn=warnings).log_start_offset == 0
    assert open_log(file_system, clean=True, log_start_offset=2, warn=warnings).log_start_offset == 2
    assert not warnings.events


@each_case(("magic", "codec"), FORMATS)
def test_a_follower_has_the_leaders_bytes_and_no_epochs_in_front_of_them(magic, codec):
    old = b"".join(messages(magic, codec, records(30)))
    data = batch(base_offset=0, leader_epoch=1) + b"".join(messages(magic, codec, records(30, begin=1)))
    data += batch(base_offset=31, leader_epoch=2)
    log = open_log(config=CONFIG)
    log.append_as_follower(data + old[:20], leader_epoch=2, now_ms=NOW_MS)
    assert read(log, 0) == data
    assert log.leader_epochs.entries == ((2, 31),)
    assert log.log_end_offset == 32


def test_a_producer_still_may_not_send_one():
    log = open_log()
    with pytest.raises(Exception, match="message format v1"):
        append(log, message(1, Legacy(0, NOW_MS, b"k", b"v")))


@each_case("offset", range(9))
def test_a_log_is_truncated_in_front_of_the_wrapper_that_holds_the_offset(offset):
    log = open_log(put_down((0, b"".join(messages(1, "lz4", records(9))))), config=CONFIG)
    log.truncate_to(offset, NOW_MS)
    assert log.log_end_offset == offset // 3 * 3
    assert [record.offset for record in records_of(log)] == list(range(offset // 3 * 3))


# ------------------------------------------------------------------------------------- where records have no timestamps


def on_disk(tmp_path, *segments, config):
    """Segments with the times of their files."""
    for base_offset, data, modified_ms in segments:
        path = tmp_path / f"{base_offset:020d}.log"
        path.write_bytes(data)
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
    return Log.open(RealFileSystem(), str(tmp_path), "t", 0, config, clean=False, now_ms=NOW_MS, warn=Warnings())


def test_segments_without_timestamps_go_by_the_time_of_their_file(tmp_path):
    segments = [(n * 5, b"".join(messages(0, PLAIN, records(5, begin=n * 5))), NOW_MS - (3 - n) * DAY_MS) for n in range(3)]
    log = on_disk(tmp_path, *segments, config=LogConfig(retention_ms=DAY_MS + DAY_MS // 2))
    assert [segment.base_offset for segment in log.retention.release_old_segments(NOW_MS)] == [0, 5]


def test_a_lookup_ends_at_a_segment_without_timestamps_that_was_written_later(tmp_path):
    old, new = b"".join(messages(0, "gzip", records(5))), b"".join(messages(1, PLAIN, records(5, begin=5)))
    log = on_disk(tmp_path, (0, old, NOW_MS), (5, new, NOW_MS), config=CONFIG)
    assert found_at(log, NOW_MS) is None
    assert found_at(log, NOW_MS + 1) == 6


def test_a_log_that_moves_keeps_the_times_of_its_files(tmp_path):
    manager = started(RealFileSystem(), str(tmp_path / "a"), str(tmp_path / "b"))
    log = manager.create("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    append(log)
    os.utime(log.segments.active.path, ns=(NOW_MS * 1_000_000, NOW_MS * 1_000_000))
    log = moved(manager, log, str(tmp_path / "b"))
    assert Path(log.segments.active.path).stat().st_mtime_ns // 1_000_000 == NOW_MS


# ------------------------------------------------------------------------------------------------------------ compaction


@each_case(("magic", "codec"), FORMATS)
def test_compaction_puts_what_stays_into_batches(magic, codec):
    old = records(30)
    log = open_log(put_down((0, b"".join(messages(magic, codec, old)))), config=compacted(segment_bytes=10_000))
    append(log, batch(key=b"key-1", timestamp=NOW_MS + 1_000))
    stats = roll_and_clean(log)
    last = {record.key: record.offset for record in old if record.key is not None}
    stay = [record for record in told(magic, old) if record.key not in {None, b"key-1"} and record.offset == last[record.key]]
    assert records_of(log) == [*stay, Record(30, NOW_MS + 1_000, b"key-1", b"value")]
    assert (stats.read_records, stats.kept_records) == (31, len(stay) + 1)
    assert {header.magic for header in headers_of(log)} == {2}
    tombstones = {record.offset for record in stay if record.value is None}
    for header, found in ((header, list(read_records(data))) for header, data in all_batches(log)):
        assert bool(header.attributes & DELETE_HORIZON_MASK) == any(record.offset in tombstones for record in found)


def all_batches(log):
    data = read(log, 0)
    return [(header, data[at : at + header.size_bytes]) for at, header in iter_batches(data)]


def test_a_last_message_of_which_nothing_stays_becomes_an_empty_batch():
    log = open_log(put_down((0, b"".join(messages(0, PLAIN, records(4))))), config=compacted())
    assert records(4)[-1].key is None
    roll_and_clean(log)
    assert [record.offset for record in records_of(log)] == [0, 1, 2]
    last = headers_of(log)[-1]
    assert (last.magic, last.base_offset, last.record_count) == (2, 3, 0)


@pytest.mark.parametrize("days", [0, 10])
def test_tombstones_in_logs_that_an_older_broker_has_cleaned_go_by_the_age_of_their_segment(tmp_path, days):
    tombstones = b"".join(message(1, Legacy(n, NOW_MS, b"key-%d" % n, None)) for n in range(5))
    later = b"".join(message(1, Legacy(n, NOW_MS, b"key-%d" % n, None)) for n in range(5, 9))
    config = compacted(delete_retention_ms=DAY_MS)
    written_ms = NOW_MS - days * DAY_MS
    new = batch(key=b"new", base_offset=9, leader_epoch=0)
    log = on_disk(tmp_path, (0, tombstones, written_ms), (5, later, NOW_MS), (9, new, NOW_MS), config=config)
    roll_and_clean(log, 9)
    assert [record.offset for record in records_of(log)] == [*range(5 if days else 0, 10)]
    assert {(tmp_path / f"{n:020d}.log").stat().st_mtime_ns // 1_000_000 for n in (0, 5)} == {written_ms, NOW_MS}
