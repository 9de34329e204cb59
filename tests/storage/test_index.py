import struct
from unittest.mock import Mock

import pytest

from odradek.storage.log.index import OffsetIndex, TimeIndex

BASE = 1000


def offset_index(disk, max_bytes=10_000_000):
    size = disk.size("/d/i") if disk.exists("/d/i") else 0
    return OffsetIndex(disk, "/d/i", BASE, max_bytes, size)


def time_index(disk, max_bytes=10_000_000):
    size = disk.size("/d/t") if disk.exists("/d/t") else 0
    return TimeIndex(disk, "/d/t", BASE, max_bytes, size)


def test_offset_entries_are_kafkas_eight_bytes(disk):
    index = offset_index(disk)
    index.append(BASE + 7, 4200)
    index.write_out()
    assert disk.read_bytes("/d/i") == struct.pack(">ii", 7, 4200)


def test_time_entries_are_kafkas_twelve_bytes(disk):
    index = time_index(disk)
    index.maybe_append(123456789012, BASE + 7)
    index.write_out()
    assert disk.read_bytes("/d/t") == struct.pack(">qi", 123456789012, 7)


@pytest.mark.parametrize("written_out", [0, 1, 5, 10])
def test_an_offset_is_found_whether_its_entry_is_on_disk_or_in_memory(disk, written_out):
    index = offset_index(disk)
    for number in range(10):
        index.append(BASE + 10 * number + 5, 100 * (number + 1))
        if number + 1 == written_out:
            index.write_out()
    found = [index.position_before(BASE + offset) for offset in (0, 4, 5, 6, 14, 15, 95, 500)]
    assert found == [0, 0, 100, 100, 100, 200, 1000, 1000]


def test_a_reopened_index_goes_on_where_it_was(disk):
    index = offset_index(disk)
    index.append(BASE + 5, 100)
    index.write_out()
    again = offset_index(disk)
    again.append(BASE + 9, 200)
    assert (again.position_before(BASE + 8), again.position_before(BASE + 9), again.last()) == (100, 200, (BASE + 9, 200))


def test_many_entries_do_not_stay_in_memory(disk):
    index = offset_index(disk)
    for number in range(10_000):
        index.append(BASE + number, number)
    assert disk.size("/d/i") >= 8 * 8192
    assert index.position_before(BASE + 9999) == 9999


def test_a_look_up_far_from_the_end_opens_the_file_once_and_reads_as_often_as_halving_needs(disk, monkeypatch):
    index = offset_index(disk)
    for number in range(100_000):
        index.append(BASE + number, number)
    index.write_out()
    file, reads = disk.open("/d/i"), []

    def pread(size, position):
        reads.append(position)
        return file.pread(size, position)

    opened = Mock(return_value=Mock(pread=pread))
    monkeypatch.setattr(disk, "open", opened)
    assert index.position_before(BASE + 12_345) == 12_345
    assert opened.call_count == 1
    assert len(reads) <= 18


def test_an_index_that_cannot_be_written_keeps_its_entries(disk, monkeypatch):
    index = offset_index(disk)

    def refuse(*args, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "open", refuse)
        for number in range(5000):
            index.append(BASE + number, number)
    index.write_out()
    assert offset_index(disk).position_before(BASE + 4999) == 4999


def test_an_older_timestamp_adds_no_time_entry(disk):
    index = time_index(disk)
    index.maybe_append(500, BASE + 1)
    index.maybe_append(500, BASE + 2)
    index.maybe_append(400, BASE + 3)
    assert (index.entry_count, index.last()) == (1, (500, BASE + 1))


def test_a_reopened_time_index_still_refuses_older_timestamps(disk):
    index = time_index(disk)
    index.maybe_append(500, BASE + 1)
    index.write_out()
    again = time_index(disk)
    again.maybe_append(499, BASE + 2)
    again.maybe_append(501, BASE + 3)
    assert (again.entry_count, again.last()) == (2, (501, BASE + 3))


def test_a_time_index_leaves_room_for_the_entry_that_closes_it(disk):
    index = time_index(disk, max_bytes=36)
    index.maybe_append(1, BASE)
    before = index.is_full
    index.maybe_append(2, BASE + 1)
    assert (before, index.is_full) == (False, True)


def test_entries_below_an_offset_end_where_they_no_longer_ascend(disk):
    entries = [(3, 10), (5, 20), (0, 0), (9, 40)]
    disk.write_atomic("/d/i", b"".join(struct.pack(">ii", *entry) for entry in entries))
    assert (offset_index(disk).entries_below(BASE + 100), offset_index(disk).entries_below(BASE + 5)) == (2, 1)


@pytest.mark.parametrize("kept", range(7))
@pytest.mark.parametrize("written_out", [0, 3, 6])
def test_entries_are_dropped_from_memory_and_from_disk(disk, kept, written_out):
    index = offset_index(disk)
    for number in range(6):
        index.append(BASE + number, 10 * number)
        if number + 1 == written_out:
            index.write_out()
    index.keep_entries(index.entries_below(BASE + kept))
    index.append(BASE + 50, 500)
    found = [index.first_from_position(position) for position in (0, 20, 41, 500, 501)]
    index.write_out()
    again = offset_index(disk)
    assert again.entry_count == kept + 1
    assert [again.first_from_position(position) for position in (0, 20, 41, 500, 501)] == found
    assert found[-2:] == [(BASE + 50, 500), None]
