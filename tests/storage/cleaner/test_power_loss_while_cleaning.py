"""The power goes at any operation of a clean: what was synced before reads the same, or is superseded by what is there, too."""

import pytest

from tests.campaigns.power_loss import states
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.model import DiskModel
from tests.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.storage.cleaner.support import clean_up, compacted, pairs_of, put, read_committed, roll_and_clean
from tests.storage.support import DIRECTORY, NOW_MS, open_log
from tests.storage.transactional import end

CONFIG = compacted(segment_bytes=450, delete_retention_ms=1000)
LATER_MS = NOW_MS + 1001


def _write(log, turn):
    for number in range(4):
        put(log, (b"a", b"%d %d" % (turn, number)), (b"b%d" % number, b"x" * 30))
    put(log, (b"a", b"aborted"), producer_id=7, producer_epoch=0, base_sequence=2 * turn, transactional=True)
    end(log, commit=False)
    put(log, (b"t", b"%d" % turn), producer_id=7, producer_epoch=0, base_sequence=2 * turn + 1, transactional=True)
    end(log, commit=True)
    put(log, (b"b%d" % turn, None))


def _history(*, is_synced):
    """(the disk with a log to be cleaned, its model before the clean, up to where the log is synced, where it is clean)."""
    disk = RecordingDisk({}, ["/data", DIRECTORY])
    log = open_log(disk, config=CONFIG)
    _write(log, 0)
    cleaned = roll_and_clean(log).end_offset
    _write(log, 1)
    log.flush(NOW_MS)
    _write(log, 2)
    log.roll(NOW_MS)
    if is_synced:
        log.flush(NOW_MS)
    model = DiskModel({}, ["/data", DIRECTORY])
    for operation in disk.operations:
        model.apply(operation)
    disk.operations.clear()
    return disk, model, log, cleaned


def _found(state, synced_offset, end_offset):
    """The log that a start finds in ``state``."""
    files = MemoryFileSystem()
    for path, content in state.items():
        if content is None:
            files.make_dirs(path)
        else:
            files.files[path] = MemoryFile()
            files.files[path].data += content
    log = open_log(files, config=CONFIG, recovery_point=synced_offset)
    assert synced_offset <= log.log_end_offset <= end_offset
    return log


def _last(pairs, below=1 << 62):
    return {key: (offset, value) for offset, key, value in pairs if offset < below}


@pytest.mark.parametrize("is_synced", [True, False])
def test_what_was_synced_is_there_or_superseded_wherever_the_power_goes(is_synced):
    disk, model, log, cleaned = _history(is_synced=is_synced)
    end_offset, synced_offset = log.log_end_offset, log.recovery_point
    assert is_synced == (synced_offset == end_offset)
    before = pairs_of(log), read_committed(log)
    promised = _last(before[1], synced_offset)
    clean_up(log, cleaned, now_ms=LATER_MS)
    after = read_committed(log)
    looked_at = 0
    seen = set()
    for operation in disk.operations:
        model.apply(operation)
        for left in states.after(model, operation):
            key = hash(frozenset(left.state.items()))
            if key in seen:
                continue
            seen.add(key)
            looked_at += 1
            found = _found(left.state, synced_offset, end_offset)
            assert set(pairs_of(found)) <= set(before[0]), left.what
            committed = read_committed(found)
            assert set(committed) <= set(before[1]), left.what
            held = _last(committed)
            for name, (offset, value) in promised.items():
                # A tombstone whose time is over goes, and with it what it deleted.
                assert value is None or held.get(name, (-1,))[0] >= offset or name not in _last(after), left.what
            if is_synced:
                assert {k: v for k, (_, v) in held.items() if v} == {k: v for k, (_, v) in _last(before[1]).items() if v}
    assert looked_at > 100


@pytest.mark.parametrize("commit", [True, False])
def test_nothing_goes_by_a_marker_that_is_not_on_disk(commit):
    disk = RecordingDisk({}, ["/data", DIRECTORY])
    log = open_log(disk, config=CONFIG)
    put(log, (b"k", b"old"))
    put(log, (b"k", b"new"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    end(log, commit=commit)
    before, synced_offset, begun = pairs_of(log), log.recovery_point, len(disk.operations)
    clean_up(log)
    assert len(pairs_of(log)) == 1
    model = DiskModel({}, ["/data", DIRECTORY])
    is_open = set()
    for number, operation in enumerate(disk.operations):
        model.apply(operation)
        for left in states.after(model, operation) if number >= begun else ():
            found = _found(left.state, synced_offset, log.log_end_offset)
            is_open.add(found.first_unstable_offset is not None)
            assert pairs_of(found) == before or found.first_unstable_offset is None, (operation, left.what)
    assert is_open == {True, False}


def _phase(operation):
    """What a rename does in a swap, or that it is a sync of the directory."""
    if operation.kind == "sync_dir":
        return "sync"
    if operation.kind != "rename":
        return None
    name = operation.target.rpartition("/")[2]
    if name.endswith(".swap"):
        return "to swap"
    return "set aside" if name.endswith(".deleted") else "name the log" if name.endswith(".log") else "name the indexes"


def test_names_of_each_step_of_a_swap_are_synced_before_the_next_on_file_systems_that_keep_no_order():
    disk, _, log, cleaned = _history(is_synced=True)
    clean_up(log, cleaned, now_ms=LATER_MS)
    phases = [phase for operation in disk.operations if (phase := _phase(operation)) is not None]
    told = [phase for phase, before in zip(phases, [None, *phases], strict=False) if phase != before]
    first = told.index("to swap")
    swap = ["to swap", "sync", "set aside", "sync", "name the log", "sync", "name the indexes", "sync"]
    assert told[first - 1 : first + len(swap)] == ["sync", *swap]
    assert told.count("to swap") == told.count("name the indexes") > 1
