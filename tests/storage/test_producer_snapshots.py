"""Snapshots of a partition's producers: when they are taken, when they are used, and when the log is asked instead."""

import struct
from bisect import bisect

import pytest

from odradek.protocol.record_batch import crc32c
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.producer_restore import ProducerSnapshots, decode, encode
from odradek.storage.log.producer_state import ProducerStates
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import DIRECTORY, NOW_MS, Warnings, append, batch, names, open_log
from tests.storage.transactional import SMALL_SEGMENTS, end, send, state_of, with_history


def snapshot_path(offset):
    return f"{DIRECTORY}/{offset:020d}.snapshot"


def snapshots(file_system):
    return [int(name.removesuffix(".snapshot")) for name in names(file_system) if name.endswith(".snapshot")]


def known(producers):
    return {
        key: (found.epoch, found.last_sequence, found.last_timestamp, found.coordinator_epoch, found.transaction_start)
        for key, found in producers.by_id.items()
    }


def as_told(batches):
    return [(each.first_sequence, each.last_sequence, each.first_offset, each.last_offset, each.timestamp) for each in batches]


def test_a_snapshot_has_kafkas_layout():
    log = open_log()
    append(log)
    send(log, 5, count=3, producer=9, epoch=2)
    data = encode(log.producers)
    version, crc, count = struct.unpack_from(">hIi", data)
    assert (version, crc, count) == (1, crc32c(data[6:], 0), 1)
    assert struct.unpack(">qhiqiqiq", data[10:]) == (9, 2, 7, 3, 2, NOW_MS, -1, 1)


def test_a_snapshot_is_read_as_it_was_written():
    _, log = with_history()
    end(log, commit=False, producer=99, epoch=4, coordinator_epoch=3)
    again = decode(encode(log.producers))
    assert known(again) == known(log.producers)
    assert list(again.open_transactions.items()) == list(log.producers.open_transactions.items())
    assert {key: as_told(found.batches) for key, found in again.by_id.items()} == {
        key: as_told(found.batches[-1:]) for key, found in log.producers.by_id.items()
    }


@each_case("damage", ["byte", "cut", "empty", "version", "more"])
def test_a_damaged_snapshot_is_recognised(damage):
    log = open_log()
    send(log)
    data = bytearray(encode(log.producers))
    if damage == "byte":
        data[20] ^= 1
    elif damage == "version":
        data[1] = 2
    elif damage == "more":
        data += bytes(46)
    else:
        del data[10 if damage == "cut" else 0 :]
    with pytest.raises(ValueError, match="snapshot"):
        decode(bytes(data))


def test_each_segment_begins_with_a_snapshot_and_a_clean_stop_ends_with_one():
    file_system, log = with_history(SMALL_SEGMENTS)
    bases = [segment.base_offset for segment in log.segments]
    assert snapshots(file_system) == bases[1:]
    log.close(clean=True, now_ms=NOW_MS)
    assert snapshots(file_system) == [*bases[1:], log.log_end_offset]


def test_a_log_in_which_nothing_was_written_has_no_snapshot():
    file_system = MemoryFileSystem()
    open_log(file_system).close(clean=True, now_ms=NOW_MS)
    assert snapshots(file_system) == []


def test_after_a_clean_stop_only_the_last_part_of_the_log_is_read():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    for _ in range(200):
        append(log, batch(value=bytes(4000)))
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, clean=True)
    file = again.segments.active.file
    reads = []
    original = type(file).pread

    def pread(self, length, offset):
        if self is file:
            reads.append(offset)
        return original(self, length, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(file), "pread", pread)
        assert set(again.producers.by_id) == {7}
    assert min(reads) > file.size() - 300 * 1024


@each_case("clean", [True, False])
@each_case("damaged", [False, True])
def test_after_a_start_the_last_five_batches_are_known_whatever_segments_they_are_in(clean, damaged):
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=SMALL_SEGMENTS)
    for sequence in range(8):
        send(log, sequence)
        append(log, batch(value=bytes(150)))
    # A producer of whom the last segment has nothing.
    send(log, producer=8)
    end(log, commit=True, producer=8)
    append(log, batch(value=bytes(300)))
    append(log, batch(value=bytes(300)))
    expected = {key: as_told(found.batches) for key, found in log.producers.by_id.items()}
    assert len(expected[7]) == 5
    homes = [segment.base_offset for segment in log.segments]
    assert len({bisect(homes, offset) for _, _, offset, _, _ in expected[7]}) > 2
    log.close(clean=clean, now_ms=NOW_MS)
    if damaged:
        # The look back ends where it cannot read.
        spoilt = homes[bisect(homes, expected[7][2][2]) - 1]
        file_system.files[f"{DIRECTORY}/{spoilt:020d}.log"].data[16] ^= 0xFF
        expected[7] = [each for each in expected[7] if bisect(homes, each[2]) > bisect(homes, spoilt)]
        assert 0 < len(expected[7]) < 5
    again = open_log(file_system, config=SMALL_SEGMENTS, clean=clean, recovery_point=homes[-1])
    assert {key: as_told(found.batches) for key, found in again.producers.by_id.items()} == expected


def test_after_a_kill_only_the_end_is_read_of_segments_before_the_last_snapshot():
    file_system, log = with_history(SMALL_SEGMENTS)
    active = log.segments.active.base_offset
    log.close(clean=False, now_ms=NOW_MS)
    first = file_system.files[f"{DIRECTORY}/{0:020d}.log"]
    reads = []
    original = type(first).pread

    def pread(self, length, offset):
        reads.append((self, offset))
        return original(self, length, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(first), "pread", pread)
        again = open_log(file_system, config=SMALL_SEGMENTS, recovery_point=active)
    assert sum(file is first for file, _ in reads) <= 4
    assert state_of(again) == state_of(log)


@each_case("clean", [True, False])
@each_case("missing", [slice(-1, None), slice(0, 1), slice(0, None)])
@each_case("way", ["removed", "damaged"])
def test_without_snapshots_the_log_itself_tells_the_same(clean, missing, way):
    file_system, log = with_history(SMALL_SEGMENTS)
    log.close(clean=clean, now_ms=NOW_MS)
    for offset in snapshots(file_system)[missing]:
        if way == "removed":
            file_system.remove(snapshot_path(offset))
        else:
            file_system.files[snapshot_path(offset)].data[-1] ^= 1
    warn = Warnings()
    again = open_log(file_system, config=SMALL_SEGMENTS, clean=clean, warn=warn, recovery_point=log.segments.active.base_offset)
    assert state_of(again) == state_of(log)
    if way == "damaged" and missing != slice(0, 1):
        assert warn.fields("producer snapshot ignored")


def test_a_snapshot_that_cannot_be_written_does_not_keep_a_segment_from_beginning():
    class Full(MemoryFileSystem):
        def write_atomic(self, path, data, *, durable=True):
            if path.endswith(".snapshot"):
                raise OSError(28, "No space left on device")
            super().write_atomic(path, data, durable=durable)

    file_system = Full()
    log = open_log(file_system)
    send(log)
    log.roll(NOW_MS)
    assert len(log.segments) == 2
    assert snapshots(file_system) == []


def test_snapshots_beyond_the_ends_of_a_log_and_stray_ones_go():
    file_system, log = with_history(SMALL_SEGMENTS)
    bases = [segment.base_offset for segment in log.segments]
    log.close(clean=True, now_ms=NOW_MS)
    strays = ProducerSnapshots(file_system, DIRECTORY, (), Warnings())
    for offset in (bases[1] + 1, log.log_end_offset + 5):
        strays.take(ProducerStates(), offset)
    open_log(file_system, config=SMALL_SEGMENTS, clean=True, log_start_offset=bases[2])
    assert snapshots(file_system) == [*bases[2:], log.log_end_offset]


def test_a_torn_tail_takes_the_snapshot_behind_it_along():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    send(log, 1)
    log.close(clean=True, now_ms=NOW_MS)
    del file_system.files[log.segments.active.path].data[-1:]
    again = open_log(file_system)
    assert snapshots(file_system) == []
    assert send(again, 1).first_offset == 1


def test_what_was_appended_by_nobody_after_a_clean_stop_needs_no_look_into_the_log():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, clean=True)
    append(again)
    again.close(clean=True, now_ms=NOW_MS)
    once_more = open_log(file_system, clean=True)
    assert snapshots(file_system) == [2]
    assert known(once_more.producers) == known(log.producers)


def test_a_producer_of_a_snapshot_expires_by_the_time_of_the_start():
    file_system = MemoryFileSystem()
    config = LogConfig(producer_id_expiration_ms=1000)
    log = open_log(file_system, config=config)
    send(log, producer=1)
    send(log, producer=2)
    end(log, commit=True, producer=1)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(file_system, config=config, clean=True, now_ms=NOW_MS + 1000)
    assert set(again.producers.by_id) == {2}


def test_snapshots_on_disk_are_found_again(tmp_path):
    taken = ProducerSnapshots(RealFileSystem(), str(tmp_path), (), Warnings())
    log = open_log()
    send(log)
    taken.take(log.producers, 1)
    found = ProducerSnapshots(RealFileSystem(), str(tmp_path), [path.name for path in tmp_path.iterdir()], Warnings())
    assert found.offsets == [1]
    assert known(found.load(1)) == known(log.producers)
