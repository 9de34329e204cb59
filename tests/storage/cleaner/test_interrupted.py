"""A clean that is killed, or that the disk fails, at any of its changes: the log reads as before, and is cleaned later."""

from functools import cache

import pytest

from odradek.protocol.compression import LZ4
from odradek.storage.log.log_truncation import LogRetention
from tests.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.storage.cleaner.faulty import CountingFileSystem, Killed
from tests.storage.cleaner.support import clean_up, compacted, pairs_of, put, read_committed, roll_and_clean
from tests.storage.support import NOW_MS, Warnings, names, open_log
from tests.storage.transactional import end, state_of

CONFIG = compacted(segment_bytes=450, delete_retention_ms=1000)
# When the first tombstones may go, and others are found.
LATER_MS = NOW_MS + 1001


def _history(file_system):
    """A log of several groups of segments: tombstones, transactions of both ends, producers, a part of it clean."""
    log = open_log(file_system, config=CONFIG)
    cleaned = None
    for turn in range(3):
        for number in range(4):
            put(log, (b"a", b"%d" % number), (b"b%d" % number, b"x" * 30), compression=LZ4 if number == 2 else 0)
        put(log, (b"a", b"aborted"), producer_id=7, producer_epoch=0, base_sequence=2 * turn, transactional=True)
        end(log, commit=False)
        put(log, (b"t", b"%d" % turn), producer_id=7, producer_epoch=0, base_sequence=2 * turn + 1, transactional=True)
        end(log, commit=True)
        put(log, (b"b%d" % turn, None))
        if turn == 1:
            cleaned = roll_and_clean(log, cleaned).end_offset
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    return log, cleaned


@cache
def _before():
    """(the disk, the log's end, where the dirty part begins, what is read before, what is read after, changes of a clean)."""
    disk = CountingFileSystem()
    log, cleaned = _history(disk)
    whole = disk.copy()
    log = open_log(whole, config=CONFIG, recovery_point=log.log_end_offset)
    before = _view(log)
    whole.changes = 0
    clean_up(log, cleaned, now_ms=LATER_MS)
    return disk, log.log_end_offset, cleaned, before, _view(log), whole.changes


def _view(log):
    return pairs_of(log), read_committed(log)


def _last_values(pairs):
    last = {key: value for _, key, value in pairs}
    return {key: value for key, value in last.items() if value is not None}


def _assert_reads_the_same(log, end_offset, before, after):
    assert log.log_end_offset == end_offset
    for now, earlier, later in zip(_view(log), before, after, strict=True):
        assert set(later) <= set(now) <= set(earlier)
        assert now == sorted(now)
    assert _last_values(read_committed(log)) == _last_values(before[1]) == _last_values(after[1])


def _every_change():
    return range(1, _before()[-1] + 1)


def _states(log):
    producers, transactions, _ = state_of(log)
    return producers, transactions


@pytest.mark.parametrize("recovery", ["none", "all", "clean stop"])
def test_a_kill_at_any_change_leaves_a_log_that_reads_the_same_and_can_be_cleaned(recovery):
    disk, end_offset, cleaned, before, after, changes = _before()
    assert changes > 40
    swapped = 0
    for number in _every_change():
        files = disk.copy()
        known = {"recovery_point": 0 if recovery == "all" else end_offset, "clean": recovery == "clean stop"}
        log = open_log(files, config=CONFIG, recovery_point=end_offset)
        states = _states(log)
        files.changes, files.fatal_change = 0, number
        with pytest.raises(Killed):
            clean_up(log, cleaned, now_ms=LATER_MS)
        files.calm()
        swapped += any(name.endswith(".swap") for name in names(files))
        again = open_log(files, config=CONFIG, **known)
        _assert_reads_the_same(again, end_offset, before, after)
        assert _states(again) == states
        left = names(files)
        assert not [name for name in left if name.endswith((".cleaned", ".swap", ".deleted"))]
        clean_up(again, cleaned, now_ms=LATER_MS)
        assert _view(again) == after
    assert swapped > 10


def test_a_disk_that_fails_once_at_any_change_leaves_a_log_that_reads_the_same_and_can_be_cleaned():
    disk, end_offset, cleaned, before, after, _ = _before()
    for number in _every_change():
        files = disk.copy()
        log = open_log(files, config=CONFIG, recovery_point=end_offset)
        files.changes, files.fatal_change, files.fault = 0, number, OSError(5, "Input/output error")
        try:
            clean_up(log, cleaned, now_ms=LATER_MS)
        except OSError:
            _assert_reads_the_same(log, end_offset, before, after)
        files.calm()
        for segment in log.segments:
            segment.release_file()
        _assert_reads_the_same(log, end_offset, before, after)
        crashed = open_log(files.copy(), config=CONFIG, recovery_point=end_offset)
        _assert_reads_the_same(crashed, end_offset, before, after)
        clean_up(log, cleaned, now_ms=LATER_MS)
        assert _view(log) == after
        again = open_log(files, config=CONFIG, recovery_point=end_offset)
        assert _view(again) == after


def test_a_kill_at_any_change_of_the_start_after_a_kill_loses_nothing_either():
    disk, end_offset, cleaned, before, after, _ = _before()
    for number in _every_change()[::3]:
        files = disk.copy()
        log = open_log(files, config=CONFIG, recovery_point=end_offset)
        files.changes, files.fatal_change = 0, number
        with pytest.raises(Killed):
            clean_up(log, cleaned, now_ms=LATER_MS)
        files.calm()
        for second in range(1, 100):
            restarted = files.copy()
            restarted.fatal_change = second
            try:
                open_log(restarted, config=CONFIG, recovery_point=end_offset)
            except Killed:
                restarted.calm()
                _assert_reads_the_same(open_log(restarted, config=CONFIG, recovery_point=end_offset), end_offset, before, after)
            else:
                break


def test_files_of_a_clean_that_was_under_way_are_removed():
    files = CountingFileSystem()
    open_log(files, config=CONFIG)
    files.files["/data/t-0/00000000000000000000.log.cleaned"] = MemoryFile()
    files.files["/data/t-0/00000000000000000000.index.swap"] = MemoryFile()
    open_log(files, config=CONFIG, warn=Warnings())
    assert not [name for name in names(files) if name.endswith((".cleaned", ".swap"))]


class _AlsoRemovedElsewhere(MemoryFileSystem):
    """Unfinished files are gone once they have been listed: a clean that is given up removes its own."""

    def list_dir(self, path):
        listed = super().list_dir(path)
        self.files = {name: file for name, file in self.files.items() if not name.endswith(".cleaned")}
        return listed


def test_files_that_a_clean_of_a_deleted_topic_removes_itself_do_not_keep_its_successor_from_opening():
    files = _AlsoRemovedElsewhere()
    files.make_dirs("/data/t-0")
    for kind in ("log", "index", "timeindex"):
        files.files[f"/data/t-0/00000000000000000000.{kind}.cleaned"] = MemoryFile()
    log = open_log(files, config=CONFIG)
    put(log, (b"a", b"1"))
    assert pairs_of(log) == [(0, b"a", b"1")]


@pytest.mark.interpreted
def test_a_swap_is_finished_with_a_warning_and_indexes_that_are_missing_are_built(monkeypatch):
    disk, end_offset, cleaned, before, after, _ = _before()
    files = disk.copy()
    log = open_log(files, config=CONFIG, recovery_point=end_offset)

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(LogRetention, "replace_segments", kill)
        with pytest.raises(Killed):
            clean_up(log, cleaned, now_ms=LATER_MS)
    swapped = [name for name in names(files) if name.endswith(".swap")]
    for name in swapped:
        if "index" in name and "txn" not in name:
            files.remove(f"/data/t-0/{name}")
    warnings = Warnings()
    again = open_log(files, config=CONFIG, recovery_point=end_offset, warn=warnings)
    assert warnings.fields("interrupted compaction finished")
    _assert_reads_the_same(again, end_offset, before, after)


def test_a_log_that_is_not_compacted_any_more_keeps_its_gaps():
    files = CountingFileSystem()
    log, cleaned = _history(files)
    cleaned = clean_up(log, cleaned, now_ms=LATER_MS).end_offset
    view = _view(log)
    deleting = compacted(segment_bytes=450, cleanup_policy=("delete",))
    again = open_log(files, config=deleting, recovery_point=0, cleaned_offset=cleaned)
    assert _view(again) == view
