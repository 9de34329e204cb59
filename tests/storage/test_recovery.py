"""What is left of a log after a stop that was not clean: all that was written whole, or an offline partition, never less."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch
from odradek.storage.errors import LogCorrupt
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.producer_restore import ProducerSnapshots
from odradek.storage.log.producer_state import ProducerStates
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import DIRECTORY, NOW_MS, Warnings, append, batch, names, open_log, read

ONE_SEGMENT = LogConfig(index_interval_bytes=300)
SEGMENTS = LogConfig(segment_bytes=700, index_interval_bytes=150)


def log_path(base_offset=0, suffix=".log"):
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def filled(file_system, sizes, config=ONE_SEGMENT):
    """A log of batches of these many records, abandoned as by a kill; returns it and the batches' ends: (offset, position)."""
    log = open_log(file_system, config=config)
    ends = [(0, 0)]
    for number, size in enumerate(sizes):
        records = [Record(timestamp=NOW_MS + number, value=b"%d" % number * 20)] * size
        append(log, build_batch(records), leader_epoch=number // 3)
        ends.append((log.log_end_offset, log.segments.active.size))
    log.close(clean=False, now_ms=NOW_MS)
    return log, ends


def content(log):
    found, offset = [], log.log_start_offset
    while (data := read(log, offset)) is not None:
        for position, header in iter_batches(data):
            found.append(data[position : position + header.size_bytes])
            offset = header.next_offset
    return found


def indexes(file_system):
    return {name: file_system.read_bytes(f"{DIRECTORY}/{name}") for name in names(file_system) if "index" in name}


sizes_of_batches = st.lists(st.integers(1, 4), min_size=1, max_size=30)


@given(sizes_of_batches, st.data())
def test_a_log_cut_anywhere_keeps_every_batch_that_is_whole(sizes, data):
    file_system = MemoryFileSystem()
    before, ends = filled(file_system, sizes)
    expected = content(before)
    cut = data.draw(st.integers(0, ends[-1][1]))
    file_system.files[log_path()].truncate(cut)
    warnings = Warnings()
    log = open_log(file_system, config=ONE_SEGMENT, warn=warnings)
    whole = max(number for number, (_, position) in enumerate(ends) if position <= cut)
    torn = cut - ends[whole][1]
    assert log.log_end_offset == ends[whole][0]
    assert content(log) == expected[:whole]
    assert [fields["truncated_bytes"] for fields in warnings.fields("torn tail truncated")] == ([torn] if torn else [])
    assert append(log).first_offset == ends[whole][0]


@given(sizes_of_batches, st.binary(min_size=1, max_size=300))
def test_rubbish_behind_the_last_batch_is_cut_off(sizes, rubbish):
    file_system = MemoryFileSystem()
    before, ends = filled(file_system, sizes)
    expected = content(before)
    file_system.files[log_path()].data += rubbish
    warnings = Warnings()
    log = open_log(file_system, config=ONE_SEGMENT, warn=warnings)
    assert (content(log), log.log_end_offset) == (expected, ends[-1][0])
    assert [fields["truncated_bytes"] for fields in warnings.fields("torn tail truncated")] == [len(rubbish)]


# Of a batch, all bytes but the leader epoch's (12 to 15) are checked: that one is outside the CRC, and followers may have any.
@given(st.lists(st.integers(1, 4), min_size=2, max_size=30), st.data())
def test_a_damaged_byte_before_the_last_batch_takes_the_log_offline(sizes, data):
    file_system = MemoryFileSystem()
    _, ends = filled(file_system, sizes)
    victim = data.draw(st.integers(0, len(sizes) - 2))
    start, end = ends[victim][1], ends[victim + 1][1]
    position = data.draw(st.integers(start, end - 1).filter(lambda place: not 12 <= place - start < 16))
    file_system.files[log_path()].data[position] ^= data.draw(st.integers(1, 255))
    untouched = bytes(file_system.files[log_path()].data)
    with pytest.raises(LogCorrupt):
        open_log(file_system, config=ONE_SEGMENT)
    assert file_system.read_bytes(log_path()) == untouched


@given(st.lists(st.integers(1, 4), min_size=10, max_size=30), st.data())
def test_damage_in_an_earlier_segment_takes_the_log_offline(sizes, data):
    file_system = MemoryFileSystem()
    log, _ = filled(file_system, sizes, SEGMENTS)
    *earlier, _ = log.segments
    file = file_system.files[data.draw(st.sampled_from(earlier)).path]
    checked = [
        position
        for start, header in iter_batches(bytes(file.data))
        for position in range(start, start + header.size_bytes)
        if not 12 <= position - start < 16
    ]
    file.data[data.draw(st.sampled_from(checked))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LogCorrupt):
        open_log(file_system, config=SEGMENTS)


def test_gaps_between_offsets_are_no_damage_where_compaction_makes_them():
    file_system = MemoryFileSystem()
    keyed = batch(key=b"k")
    config = LogConfig(segment_bytes=2 * len(keyed), cleanup_policy=("compact",))
    log = open_log(file_system, config=config)
    for _ in range(5):
        append(log, keyed)
    log.close(clean=False, now_ms=NOW_MS)
    file_system.files[log_path()].truncate(len(keyed))
    assert open_log(file_system, config=config).log_end_offset == 5
    with pytest.raises(LogCorrupt):
        open_log(file_system, recovery_point=2)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(sizes_of_batches, st.integers(0, 200), st.sampled_from([ONE_SEGMENT, SEGMENTS]))
def test_recovery_from_any_recovery_point_gives_the_same_log_and_indexes(sizes, flushed_after, config):
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=config)
    for number, size in enumerate(sizes):
        append(log, batch(size, timestamp=NOW_MS + number * 7 % 11), leader_epoch=number // 3)
        if number == flushed_after:
            log.flush(NOW_MS)
    expected, epochs = content(log), log.leader_epochs.entries
    recovery_point = log.recovery_point
    log.close(clean=False, now_ms=NOW_MS)
    again = open_log(file_system, config=config, recovery_point=recovery_point)
    found = indexes(file_system)
    again.close(clean=False, now_ms=NOW_MS)
    anew = open_log(file_system, config=config)
    assert (content(again), again.leader_epochs.entries) == (expected, epochs)
    assert (content(anew), anew.leader_epochs.entries) == (expected, epochs)
    assert indexes(file_system) == found


def test_what_lies_before_the_recovery_point_is_not_read_again():
    file_system = MemoryFileSystem()
    log, ends = filled(file_system, [1] * 40)
    log = open_log(file_system, config=ONE_SEGMENT)
    log.flush(NOW_MS)
    append(log)
    log.close(clean=False, now_ms=NOW_MS)
    file_system.files[log_path()].data[100] ^= 1
    ProducerSnapshots(file_system, DIRECTORY, (), Warnings()).take(ProducerStates(), 40)
    reads = []
    file = file_system.files[log_path()]
    original = type(file).pread

    def pread(self, length, offset):
        if self is file:
            reads.append(offset)
        return original(self, length, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(file), "pread", pread)
        again = open_log(file_system, config=ONE_SEGMENT, recovery_point=40)
    assert again.log_end_offset == 41
    # But the first header, which tells whose indexes these are.
    assert min(read for read in reads if read) > ends[30][1]


def test_a_torn_batch_before_the_recovery_point_is_damage():
    file_system = MemoryFileSystem()
    filled(file_system, [1, 1, 1])
    file_system.files[log_path()].truncate(file_system.size(log_path()) - 1)
    with pytest.raises(LogCorrupt):
        open_log(file_system, config=ONE_SEGMENT, recovery_point=3)


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_ends_before_its_recovery_point_is_damaged_though_its_last_batch_be_whole(clean):
    file_system = MemoryFileSystem()
    _, ends = filled(file_system, [1, 1, 1])
    file_system.files[log_path()].truncate(ends[2][1])
    with pytest.raises(LogCorrupt):
        open_log(file_system, config=ONE_SEGMENT, recovery_point=3, clean=clean)
    assert open_log(file_system, config=ONE_SEGMENT, recovery_point=3, log_start_offset=3).log_end_offset == 3


def test_a_segment_just_begun_behind_one_that_lost_its_tail_with_the_machine_is_no_damage():
    file_system = MemoryFileSystem()
    log, ends = filled(file_system, [1, 1, 1])
    log = open_log(file_system, config=ONE_SEGMENT)
    log.roll(NOW_MS)
    log.close(clean=False, now_ms=NOW_MS)
    file_system.files[log_path()].truncate(ends[2][1] + 5)
    again = open_log(file_system, config=ONE_SEGMENT, recovery_point=1)
    assert (again.log_end_offset, [segment.base_offset for segment in again.segments]) == (2, [0])
    assert append(again).first_offset == 2


def test_a_log_without_any_of_its_synced_records_is_damaged():
    with pytest.raises(LogCorrupt, match="synced up to 500"):
        open_log(recovery_point=500)


def test_a_torn_batch_that_holds_batches_of_another_log_is_still_torn():
    file_system = MemoryFileSystem()
    log, _ = filled(file_system, [1, 1])
    log = open_log(file_system)
    inner = build_batch([Record(timestamp=NOW_MS)], base_offset=900)
    append(log, build_batch([Record(timestamp=NOW_MS, value=inner + b"x" * 100)]))
    log.close(clean=False, now_ms=NOW_MS)
    file_system.files[log_path()].truncate(file_system.size(log_path()) - 50)
    assert open_log(file_system).log_end_offset == 2


@each_case("suffix", [".index", ".timeindex"])
@each_case("damage", ["missing", "odd"])
@each_case("clean", [True, False])
def test_a_missing_or_odd_index_is_rebuilt(suffix, damage, clean):
    file_system = MemoryFileSystem()
    log, _ = filled(file_system, [1, 2, 3] * 10, SEGMENTS)
    open_log(file_system, config=SEGMENTS).close(clean=True, now_ms=NOW_MS)
    expected = indexes(file_system)
    for segment in log.segments:
        path = log_path(segment.base_offset, suffix)
        if damage == "missing":
            file_system.remove(path)
        else:
            file_system.files[path].data += b"x"
    again = open_log(file_system, config=SEGMENTS, clean=clean, recovery_point=log.log_end_offset)
    assert indexes(file_system) == expected
    assert content(again) == content(log)


def test_an_index_that_does_not_fit_its_log_is_rebuilt():
    file_system = MemoryFileSystem()
    log, _ = filled(file_system, [1] * 30)
    open_log(file_system, config=ONE_SEGMENT).close(clean=True, now_ms=NOW_MS)
    expected = indexes(file_system)
    file_system.files[log_path(0, ".index")].data[4:8] = (77).to_bytes(4, "big")
    file_system.files[log_path(0, ".index")].truncate(8)
    again = open_log(file_system, config=ONE_SEGMENT, recovery_point=20)
    assert (indexes(file_system), content(again)) == (expected, content(log))


@pytest.mark.parametrize("data", [None, b"", b"0\n9\n"])
def test_leader_epochs_that_were_lost_are_taken_from_the_log(data):
    file_system = MemoryFileSystem()
    log, _ = filled(file_system, [1] * 9)
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    file_system.remove(path)
    if data is not None:
        file_system.write_atomic(path, data)
    again = open_log(file_system, config=ONE_SEGMENT, clean=True)
    assert again.leader_epochs.entries == log.leader_epochs.entries == ((0, 0), (1, 3), (2, 6))


def test_leader_epochs_of_a_tail_that_was_cut_off_are_forgotten():
    file_system = MemoryFileSystem()
    filled(file_system, [1] * 4)
    file_system.files[log_path()].truncate(file_system.size(log_path()) - 1)
    assert open_log(file_system).leader_epochs.entries == ((0, 0),)


def test_a_log_that_ends_before_it_starts_begins_anew_at_its_start():
    file_system = MemoryFileSystem()
    filled(file_system, [1] * 4)
    warnings = Warnings()
    log = open_log(file_system, log_start_offset=100, warn=warnings)
    assert (log.log_start_offset, log.log_end_offset, [segment.base_offset for segment in log.segments]) == (100, 100, [100])
    assert warnings.events
    assert append(log).first_offset == 100


def test_a_compacted_log_that_lost_its_first_batch_and_its_leader_epochs_starts_where_it_did():
    config = LogConfig(cleanup_policy=("compact",))
    file_system = MemoryFileSystem()
    keyed = batch(key=b"k")
    log = open_log(file_system, config=config)
    for _ in range(3):
        append(log, keyed)
    log.close(clean=False, now_ms=NOW_MS)
    del file_system.files[log_path()].data[: len(keyed)]
    file_system.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    for _ in range(2):
        again = open_log(file_system, config=config)
        assert (again.log_start_offset, again.log_end_offset, again.leader_epochs.entries) == (0, 3, ((0, 1),))


def test_a_segment_that_was_just_begun_when_the_broker_was_killed_is_taken_up():
    file_system = MemoryFileSystem()
    log, _ = filled(file_system, [1] * 4)
    log = open_log(file_system)
    log.roll(NOW_MS)
    log.close(clean=False, now_ms=NOW_MS)
    again = open_log(file_system)
    assert (append(again).first_offset, [segment.base_offset for segment in again.segments]) == (4, [0, 4])


def test_segments_that_overlap_are_damage():
    file_system = MemoryFileSystem()
    filled(file_system, [1] * 4)
    file_system.rename(log_path(0), log_path(2))
    other = MemoryFileSystem()
    filled(other, [1] * 4)
    file_system.files[log_path(0)] = other.files[log_path(0)]
    with pytest.raises(LogCorrupt):
        open_log(file_system)


@given(sizes_of_batches)
def test_a_clean_restart_reads_the_log_as_it_was(sizes):
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=SEGMENTS)
    for number, size in enumerate(sizes):
        append(log, batch(size, timestamp=NOW_MS + number))
    log.delete_records_before(1)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, config=SEGMENTS, log_start_offset=1, clean=True)
    assert (again.log_start_offset, again.log_end_offset) == (1, log.log_end_offset)
    assert again.recovery_point == again.log_end_offset
    assert content(again) == content(log)
    assert again.max_timestamp_offset() == log.max_timestamp_offset()


def emptied(entries):
    """What a killed broker has left of an active segment: no record, and an index of these bytes."""
    file_system = MemoryFileSystem()
    filled(file_system, [1])
    file_system.files[log_path()].truncate(0)
    for suffix in (".index", ".timeindex"):
        file = file_system.open(log_path(suffix=suffix), create=True)
        file.truncate(0)
        file.append([entries])
    warnings = Warnings()
    log = open_log(file_system, config=ONE_SEGMENT, warn=warnings)
    assert append(log).first_offset == 0
    return warnings.fields("segment is empty, but had records")


def test_a_segment_whose_records_are_gone_is_told_by_its_index():
    assert emptied(NOW_MS.to_bytes(8, "big") + bytes(16))


def test_the_zeros_that_a_running_kafka_has_for_an_index_are_no_trace_of_records():
    assert not emptied(bytes(24))
