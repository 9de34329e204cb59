"""The index of aborted transactions: its layout, searching it, and cutting it."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.log.transaction_index import AbortedTransaction, TransactionIndex
from tests.campaigns.power_loss import states
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.model import DiskModel
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import DIRECTORY, NOW_MS, names, open_log
from tests.storage.transactional import SMALL_SEGMENTS, end, send

PATH = "/index"


def index_of(*aborted, file_system=None):
    file_system = file_system or MemoryFileSystem()
    index = TransactionIndex(file_system, PATH, file_system.size(PATH) if file_system.exists(PATH) else 0)
    for found in aborted:
        index.append(found)
    return index


def entry(first, last, stable=None, producer=7):
    return AbortedTransaction(producer, first, last, last + 1 if stable is None else stable)


def test_an_entry_has_kafkas_layout():
    file_system = MemoryFileSystem()
    index_of(entry(3, 9, 5), file_system=file_system)
    assert bytes(file_system.files[PATH].data) == struct.pack(">hqqqq", 0, 7, 3, 9, 5)


def test_there_is_no_file_before_the_first_abort():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    end(log, commit=True)
    assert not any(name.endswith(".txnindex") for name in names(file_system))
    send(log, 1)
    end(log, commit=False)
    assert f"{0:020d}.txnindex" in names(file_system)


def test_a_range_finds_what_overlaps_it():
    index = index_of(entry(0, 5), entry(6, 8), entry(10, 20))
    assert index.collect(5, 10)[0] == [entry(0, 5), entry(6, 8)]
    assert index.collect(6, 7)[0] == [entry(6, 8)]
    assert index.collect(21, 30)[0] == []


def test_the_search_is_over_at_the_first_that_left_nothing_open_before_the_end():
    index = index_of(entry(0, 5, 2), entry(2, 8, 9), entry(10, 20))
    assert index.collect(0, 4) == ([entry(0, 5, 2), entry(2, 8, 9)], True)
    assert index.collect(0, 100) == ([entry(0, 5, 2), entry(2, 8, 9), entry(10, 20)], False)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(0, 900), st.integers(0, 900))
def test_many_entries_are_searched_as_one_by_one(gaps, fetch_offset, end_offset):
    entries, offset = [], 0
    for gap in gaps:
        entries.append(entry(offset, offset + gap))
        offset += gap + 1
    found, _ = index_of(*entries).collect(fetch_offset, end_offset)
    wanted = [each for each in entries if each.last_offset >= fetch_offset and each.first_offset < end_offset]
    assert found == wanted


def test_an_index_that_was_closed_goes_on():
    file_system = MemoryFileSystem()
    index_of(entry(0, 1), file_system=file_system)
    again = index_of(entry(2, 3), file_system=file_system)
    assert again.collect(0, 9)[0] == [entry(0, 1), entry(2, 3)]


def test_half_an_entry_at_the_end_is_overwritten():
    file_system = MemoryFileSystem()
    index_of(entry(0, 1), entry(2, 3), file_system=file_system)
    del file_system.files[PATH].data[-5:]
    again = index_of(file_system=file_system)
    again.keep_below(2)
    again.append(entry(2, 3))
    assert again.collect(0, 9)[0] == [entry(0, 1), entry(2, 3)]
    assert len(file_system.files[PATH].data) == 68


@each_case(("offset", "kept"), [(0, 0), (5, 0), (6, 1), (8, 1), (9, 2)])
def test_cutting_keeps_the_markers_below(offset, kept):
    index = index_of(entry(0, 5), entry(6, 8))
    index.keep_below(offset)
    assert index.collect(0, 100)[0] == [entry(0, 5), entry(6, 8)][:kept]
    assert index.last_offset == [-1, 5, 8][kept]


def test_an_entry_that_cannot_be_written_is_kept_and_found():
    class Full(MemoryFileSystem):
        is_full = True

        def open(self, path, *, create=False):
            if self.is_full:
                raise OSError(28, "No space left on device")
            return super().open(path, create=create)

    file_system = Full()
    index = TransactionIndex(file_system, PATH, 0)
    index.append(entry(0, 1))
    file_system.is_full = False
    assert index.collect(0, 9)[0] == [entry(0, 1)]


def test_a_marker_that_a_kill_left_without_its_entry_gets_it():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    end(log, commit=False)
    send(log, 1)
    file_system.remove(f"{DIRECTORY}/{0:020d}.txnindex")
    assert open_log(file_system).aborted_transactions(0, 9) == [(7, 0)]


def test_an_entry_of_a_marker_that_a_kill_took_goes():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    end(log, commit=False)
    del file_system.files[log.segments.active.path].data[-1:]
    again = open_log(file_system)
    assert again.aborted_transactions(0, 9) == []
    assert again.first_unstable_offset == 0


def test_an_abort_is_in_the_index_of_its_markers_segment():
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=SMALL_SEGMENTS)
    send(log)
    log.roll(NOW_MS)
    end(log, commit=False)
    assert [name for name in names(file_system) if name.endswith(".txnindex")] == [f"{1:020d}.txnindex"]


def test_wherever_the_power_goes_an_index_that_is_rewritten_is_the_old_or_the_new_one():
    disk = RecordingDisk()
    disk.make_dirs("/log")
    index = TransactionIndex(disk, "/log/index", 0)
    for aborted in (entry(0, 3), entry(4, 6, stable=9), entry(7, 8)):
        index.append(aborted)
    old = bytes(disk.read_bytes("/log/index"))
    disk.open("/log/index").sync()
    disk.sync_dir("/log")
    disk.sync_dir("/")
    begun = len(disk.operations)
    index.rewrite_from(0, 4, [entry(4, 6), entry(7, 8)])
    new = bytes(disk.read_bytes("/log/index"))
    model = DiskModel({}, [])
    found = set()
    for number, operation in enumerate(disk.operations):
        model.apply(operation)
        found |= {bytes(left.state["/log/index"]) for left in states.after(model, operation) if number >= begun}
    assert found == {old, new}
    assert TransactionIndex(disk, "/log/index", len(new)).collect(0, 100)[0] == [entry(0, 3), entry(4, 6), entry(7, 8)]
    assert index.collect(0, 100)[0] == [entry(0, 3), entry(4, 6), entry(7, 8)]
