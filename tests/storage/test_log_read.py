"""Reading by offset and by time, and where the log starts."""

import random

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, Warnings, append, batch, names, open_log, read

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=150)


def filled(batches=50, config=SMALL, file_system=None):
    """A log of several segments: batches of 1, 2, 3, 1, ... records, all with their offset as value."""
    log = open_log(file_system, config=config)
    for number in range(batches):
        records = [Record(timestamp=NOW_MS + log.log_end_offset + i, value=b"%d" % i) for i in range(number % 3 + 1)]
        append(log, build_batch(records))
    return log


def test_every_offset_is_found_in_every_segment():
    log = filled()
    assert len(log.segments) > 3
    for offset in range(log.log_end_offset):
        _, header = next(iter_batches(read(log, offset)))
        assert header.base_offset <= offset <= header.last_offset


def test_reading_on_from_the_last_offset_gives_the_whole_log():
    log = filled()
    offset, found = 0, []
    while (data := read(log, offset, 200)) is not None:
        for _, header in iter_batches(data):
            found.append(header.base_offset)
            offset = header.next_offset
    assert (offset, len(found), found) == (log.log_end_offset, 50, sorted(found))


def test_the_end_of_the_log_has_nothing_to_read():
    log = filled()
    assert read(log, log.log_end_offset) is None


@pytest.mark.parametrize("beyond", [-1, 1])
def test_an_offset_out_of_range_is_refused(beyond):
    log = open_log(log_start_offset=10)
    append(log)
    offset = 9 if beyond < 0 else 12
    with pytest.raises(KafkaError) as caught:
        read(log, offset)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_at_or_above_the_upper_offset_is_read():
    log = filled()
    for offset in range(0, log.log_end_offset, 7):
        _, header = next(iter_batches(read(log, offset)))
        upper = header.next_offset
        data = read(log, offset, upper_offset=upper)
        assert [found.base_offset for _, found in iter_batches(data)] == [header.base_offset]
    assert read(log, 5, upper_offset=5) is None
    assert read(log, 9, upper_offset=5) is None


def test_a_read_below_an_offset_of_a_later_segment_ends_with_its_own_segment():
    log = filled()
    second, third = log.segments[1].base_offset, log.segments[2].base_offset
    for upper in (second, third - 1, third):
        *_, (_, last) = iter_batches(read(log, 0, upper_offset=upper))
        assert last.next_offset == second


def test_a_read_is_cut_at_max_bytes():
    log = open_log()
    for _ in range(5):
        append(log)
    size = len(batch())
    assert len(read(log, 0, 2 * size + 10)) == 2 * size + 10


def test_a_first_batch_that_does_not_fit_is_there_whole_only_if_one_is_wanted():
    log = open_log()
    append(log, batch(value=b"x" * 500))
    append(log)
    whole = read(log, 0, 100)
    assert (len(whole), read(log, 0, 100, min_one_batch=False)) == (len(batch(value=b"x" * 500)), None)


def test_a_read_that_waited_at_the_end_gets_just_what_came():
    log = open_log()
    append(log)
    assert read(log, 1) is None
    append(log, batch(value=b"new"))
    append(log, batch(value=b"newer"))
    assert [header.base_offset for _, header in iter_batches(read(log, 1))] == [1, 2]
    assert len(read(log, 1, 10)) == len(batch(value=b"new"))
    assert read(log, 1, 10, min_one_batch=False) is None


def test_a_read_that_waited_at_the_end_gets_what_came_after_a_roll():
    log = open_log()
    append(log)
    assert read(log, 1) is None
    log.roll(NOW_MS)
    append(log, batch(value=b"new"))
    assert read(log, 1)[16:] == batch(value=b"new")[16:]


def test_a_slice_names_file_position_and_length_for_sendfile(tmp_path):
    log = Log.open(RealFileSystem(), str(tmp_path / "t-0"), "t", 0, LogConfig(), clean=False, now_ms=NOW_MS, warn=Warnings())
    append(log)
    append(log)
    found = log.read(1, 1000, upper_offset=2, min_one_batch=True)
    segment = (tmp_path / "t-0" / "00000000000000000000.log").read_bytes()
    assert segment[found.position : found.position + found.length] == found.read()
    assert found.file.fileno() > 2


def test_a_slice_stays_readable_when_its_log_is_closed_and_gone(tmp_path):
    file_system = RealFileSystem()
    log = Log.open(file_system, str(tmp_path / "t-0"), "t", 0, LogConfig(), clean=False, now_ms=NOW_MS, warn=Warnings())
    append(log)
    found = log.read(0, 1000, upper_offset=1, min_one_batch=True)
    log.close(clean=True, now_ms=NOW_MS)
    file_system.remove_tree(str(tmp_path / "t-0"))
    assert found.read()[16:] == batch()[16:]


def test_a_timestamp_finds_the_first_record_that_is_not_older():
    log = filled()
    for offset in random.Random(1).sample(range(log.log_end_offset), 20):
        found = log.offset_for_timestamp(NOW_MS + offset)
        assert (found.offset, found.timestamp, found.leader_epoch) == (offset, NOW_MS + offset, 0)
    assert log.offset_for_timestamp(0).offset == 0


def test_a_timestamp_finds_records_out_of_order():
    log = open_log(config=SMALL)
    stamps = [random.Random(7).randrange(1000) for _ in range(60)]
    for stamp in stamps:
        append(log, batch(timestamp=stamp))
    for wanted in range(0, max(stamps) + 1, 13):
        expected = next(offset for offset, stamp in enumerate(stamps) if stamp >= wanted)
        assert log.offset_for_timestamp(wanted).offset == expected


def test_a_timestamp_younger_than_all_records_finds_none():
    log = filled()
    assert log.offset_for_timestamp(NOW_MS + log.log_end_offset) is None


def test_a_timestamp_does_not_find_deleted_records():
    log = filled()
    log.delete_records_before(41)
    assert log.offset_for_timestamp(NOW_MS + 3).offset == 41


def test_the_largest_timestamp_is_found_with_its_first_record():
    log = open_log(config=SMALL)
    for stamp in (5, 90, 30, 90, 10, *range(20)):
        append(log, build_batch([Record(timestamp=stamp - 1), Record(timestamp=stamp), Record(timestamp=stamp)]))
    found = log.max_timestamp_offset()
    assert (found.timestamp, found.offset) == (90, 4)


@pytest.mark.parametrize("fill", [False, True])
def test_a_log_without_timestamps_has_no_largest(fill):
    log = open_log()
    if fill:
        append(log, batch(timestamp=-1))
    assert log.max_timestamp_offset() is None


def test_times_are_found_alike_after_a_clean_restart():
    file_system = MemoryFileSystem()
    log = filled(file_system=file_system)
    expected = [log.offset_for_timestamp(NOW_MS + offset) for offset in range(log.log_end_offset)], log.max_timestamp_offset()
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, config=SMALL, clean=True)
    found = [again.offset_for_timestamp(NOW_MS + offset) for offset in range(log.log_end_offset)], again.max_timestamp_offset()
    assert found == expected


def test_deleting_records_moves_the_start_but_never_back():
    log = filled()
    assert log.delete_records_before(7) == 7
    assert log.delete_records_before(3) == 7
    with pytest.raises(KafkaError) as caught:
        read(log, 6)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    _, header = next(iter_batches(read(log, 7)))
    assert header.base_offset <= 7


def test_records_beyond_the_end_cannot_be_deleted():
    log = filled()
    with pytest.raises(KafkaError) as caught:
        log.delete_records_before(log.log_end_offset + 1)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_damaged_segment_is_a_storage_error_to_its_reader():
    file_system = MemoryFileSystem()
    log = filled(file_system=file_system)
    name = names(file_system)[0]
    file_system.files[f"/data/t-0/{name.split('.')[0]}.log"].data[8:12] = b"\xff\xff\xff\xff"
    with pytest.raises(KafkaError) as caught:
        read(log, 1)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
