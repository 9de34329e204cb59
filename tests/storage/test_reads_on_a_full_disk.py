"""Readers on a full disk: they never need to write, whatever of an index is only in memory."""

import errno

import pytest

from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.transaction_index import AbortedTransaction, TransactionIndex
from tests.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.storage.support import NOW_MS, append, batch, open_log, read
from tests.storage.transactional import end, send, state_of, with_history

ENDLESS = 1 << 40


class FullFile(MemoryFile):
    """A file of a ``FullDisk``."""

    def __init__(self, file_system, path):
        super().__init__()
        self._file_system = file_system
        self._path = path

    def append(self, buffers):
        if self._file_system.is_full and not self._path.endswith(self._file_system.growing):
            raise full()
        super().append(buffers)


class FullDisk(MemoryFileSystem):
    """A disk that may be full: no file is made or replaced, and only the ``growing`` have room in their last block."""

    is_full = False
    growing = (".log",)

    def open(self, path, *, create=False):
        if create and path not in self.files:
            self._refuse()
            if super().exists(path.rpartition("/")[0]):
                self.files[path] = FullFile(self, path)
        return super().open(path, create=create)

    def write_atomic(self, path, data, *, durable=True):
        self._refuse()
        super().write_atomic(path, data, durable=durable)

    def _refuse(self):
        if self.is_full:
            raise full()


def full():
    return OSError(errno.ENOSPC, "No space left on device")


def everything_read_from(log):
    """What each kind of reader finds at each offset."""
    end_offset = log.log_end_offset
    found = []
    for offset in range(log.log_start_offset, end_offset):
        for max_bytes in (1, 400, ENDLESS):
            part = log.read(offset, max_bytes, upper_offset=end_offset, min_one_batch=True)
            found.append((part.read(), sorted(log.aborted_in(part, offset, end_offset))))
    found += [log.offset_for_timestamp(NOW_MS + offset) for offset in range(-1, end_offset)]
    return (
        found,
        log.max_timestamp_offset(),
        log.last_stable_offset(end_offset),
        log.first_unstable_offset,
        log.end_offset_for_epoch(0),
        state_of(log),
    )


def filled(file_system, log):
    """Transactions that end, and other batches, so that every index has entries."""
    for number in range(30):
        append(log, batch(timestamp=NOW_MS + 3 * number, value=bytes(100)))
        send(log, number, producer=9)
        if number % 4 == 3:
            end(log, commit=number % 8 == 3, producer=9)
    return file_system, log


@pytest.mark.parametrize("before", [0, 12], ids=["nothing on disk before", "a part on disk"])
def test_all_that_is_read_is_the_same_where_no_index_can_be_written(before):
    config = LogConfig(index_interval_bytes=100)
    roomy, tight = FullDisk(), FullDisk()
    logs = []
    for file_system in (roomy, tight):
        log = open_log(file_system, config=config)
        append(log)
        for number in range(before):
            send(log, number, producer=8)
            end(log, commit=number % 2 == 0, producer=8)
        log.write_out()
        file_system.is_full = file_system is tight
        logs.append(filled(file_system, log)[1])
    expected, found = map(everything_read_from, logs)
    assert found == expected
    assert any(name.endswith(".txnindex") for name in roomy.files)
    # With room again, all of it gets to the disk.
    tight.is_full = False
    for log in logs:
        log.write_out()
    for path, file in roomy.files.items():
        if path.endswith(("index", ".log")):
            assert bytes(tight.files[path].data) == bytes(file.data), path


def lose_all(entries):
    entries.clear()


def lose_half_an_entry(entries):
    del entries[-17:]


def lose_the_last_entry(entries):
    del entries[-34:]


def spoil_the_first_entry(entries):
    entries[5] = 9


@pytest.mark.parametrize("damage", [lose_all, lose_half_an_entry, lose_the_last_entry, spoil_the_first_entry])
def test_a_start_on_a_full_disk_serves_aborts_whose_entries_are_lost(damage):
    file_system = FullDisk()
    log = open_log(file_system)
    filled(file_system, log)
    expected = everything_read_from(log)
    [path] = [name for name in file_system.files if name.endswith(".txnindex")]
    whole = bytes(file_system.files[path].data)
    damage(file_system.files[path].data)
    # A start rebuilds these on the reserve of its data directory.
    file_system.growing = (".log", ".index", ".timeindex")
    file_system.is_full = True
    again = open_log(file_system)
    assert everything_read_from(again) == expected
    file_system.is_full = False
    again.flush(NOW_MS)
    assert bytes(file_system.files[path].data) == whole


@pytest.mark.parametrize("offset", [0, 2, 3, 5, 6, 100])
def test_entries_are_cut_from_memory_and_from_the_file(offset):
    def entry(first):
        return AbortedTransaction(7, first, first + 1, first + 2)

    file_system = FullDisk()
    index = TransactionIndex(file_system, "/index", 0)
    index.append(entry(0))
    index.append(entry(2))
    file_system.is_full = True
    index.append(entry(4))
    index.keep_below(offset)
    kept = [each for each in (entry(0), entry(2), entry(4)) if each.last_offset < offset]
    assert index.collect(0, ENDLESS)[0] == kept
    file_system.is_full = False
    index.append(entry(200))
    again = TransactionIndex(file_system, "/index", file_system.size("/index"))
    assert again.collect(0, ENDLESS)[0] == [*kept, entry(200)]


def test_a_log_with_a_long_history_is_read_without_a_write():
    file_system, log = with_history()
    expected = read(log, 0), state_of(log)
    written = {path: bytes(file.data) for path, file in file_system.files.items()}
    everything_read_from(log)
    assert (read(log, 0), state_of(log)) == expected
    assert {path: bytes(file.data) for path, file in file_system.files.items()} == written
