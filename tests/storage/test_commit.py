"""What a commit promises: records that it has synced outlive the machine, indexes being made anew, and nothing else moves."""

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.storage.support import DIRECTORY, NOW_MS, append, batch, names, open_log, read


class ForgetfulDisk(MemoryFileSystem):
    """Knows what was synced: of contents how many bytes, of directories which names."""

    def __init__(self):
        super().__init__()
        self.synced_bytes = {}
        self.synced_names = set()

    def write_atomic(self, path, data, *, durable=True):
        super().write_atomic(path, data, durable=durable)
        if durable:
            self.synced_bytes[id(self.files[path])] = len(data)
            self.sync_dir(path.rpartition("/")[0])

    def sync_dir(self, path):
        inside = {name for name in self.files if name.rpartition("/")[0] == path}
        self.synced_names = {name for name in self.synced_names if name.rpartition("/")[0] != path} | inside

    def without_power(self):
        """What is left on it."""
        left = MemoryFileSystem()
        left.make_dirs(DIRECTORY)
        for path in self.synced_names & self.files.keys():
            file = self.files[path]
            left.open(path, create=True).append([file.data[: self.synced_bytes.get(id(file), 0)]])
        return left


@pytest.fixture
def disk(monkeypatch):
    disk = ForgetfulDisk()

    def sync(file):
        disk.synced_bytes[id(file)] = len(file.data)

    monkeypatch.setattr(MemoryFile, "sync", sync)
    return disk


def deferring(disk, **config):
    """A log whose flushes are somebody else's, and what it has asked for."""
    log = open_log(disk, config=LogConfig(**{"flush_messages": 1} | config))
    asked = []
    log.flush_state.on_flush_due = lambda _: asked.append(log)
    return log, asked


def commit(log):
    task = log.flush_state.commit_task()
    task.run()
    log.flush_state.flushed(task, NOW_MS)


def test_an_append_that_makes_a_flush_due_asks_for_it_and_syncs_nothing(disk):
    log, asked = deferring(disk, flush_messages=3)
    append(log, batch(2))
    assert (asked, log.awaits_flush) == ([], False)
    append(log)
    assert (asked, log.awaits_flush, log.flushed_offset) == ([log], True, 0)


@pytest.mark.parametrize("segment_bytes", [100, 1 << 20])
def test_what_is_committed_outlives_the_machine_and_what_came_later_does_not(disk, segment_bytes):
    log, _ = deferring(disk, segment_bytes=segment_bytes)
    for _ in range(5):
        append(log)
    commit(log)
    append(log)
    left = disk.without_power()
    again = open_log(left, config=log.config)
    assert again.log_end_offset == 5
    assert read(again, 4)
    assert again.producers.by_id == {}


def test_a_commit_that_began_before_an_append_does_not_cover_it(disk):
    log, _ = deferring(disk)
    append(log)
    task = log.flush_state.commit_task()
    append(log)
    task.run()
    log.flush_state.flushed(task, NOW_MS)
    assert (log.flushed_offset, log.awaits_flush) == (1, True)
    commit(log)
    assert (log.flushed_offset, log.awaits_flush) == (2, False)


def test_a_commit_leaves_the_recovery_point_where_the_indexes_are_synced(disk):
    log, _ = deferring(disk)
    append(log)
    commit(log)
    assert (log.flushed_offset, log.recovery_point) == (1, 0)
    log.flush(NOW_MS)
    assert (log.flushed_offset, log.recovery_point) == (1, 1)


def test_a_commit_syncs_what_is_new_and_no_directory_twice(disk):
    log, _ = deferring(disk, segment_bytes=100)
    append(log)
    append(log)
    first = log.flush_state.commit_task()
    assert (len(first.files), len(first.directories)) == (2, 2)
    first.run()
    log.flush_state.flushed(first, NOW_MS)
    assert log.flush_state.commit_task().files == ()
    append(log)
    second = log.flush_state.commit_task()
    assert (len(second.files), len(second.directories)) == (1, 2)
    second.run()
    log.flush_state.flushed(second, NOW_MS)
    log.config = LogConfig(flush_messages=1)
    append(log)
    third = log.flush_state.commit_task()
    assert (len(third.files), len(third.directories)) == (1, 0)


def test_a_marker_is_flushed_with_all_before_it(disk):
    log, asked = deferring(disk)
    append(log)
    log.coordinator_appends.append_internal([(b"a", b"1"), (b"b", b"2")], leader_epoch=0, now_ms=NOW_MS)
    assert (log.flushed_offset, log.awaits_flush, len(asked)) == (0, True, 2)
    log.coordinator_appends.append_marker(7, 0, 0, True, leader_epoch=0, now_ms=NOW_MS)
    assert (log.flushed_offset, log.awaits_flush) == (4, False)
    assert open_log(disk.without_power(), config=log.config).log_end_offset == 4


def test_a_failed_commit_takes_the_log_out_of_service(disk):
    log, _ = deferring(disk)
    append(log)
    log.flush_state.sync_failed(OSError(5, "Input/output error"))
    with pytest.raises(KafkaError) as refused:
        append(log)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.has_lost_sync


def test_after_a_failed_append_the_flush_is_the_logs_own(disk, monkeypatch):
    log, asked = deferring(disk)
    append(log)

    def refuse(self, buffers):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFile, "append", refuse)
        with pytest.raises(KafkaError):
            append(log)
    append(log)
    assert (len(asked), log.flushed_offset) == (1, 2)


def test_records_that_are_not_on_disk_are_not_deleted(disk):
    log, _ = deferring(disk, segment_bytes=100, retention_ms=0)
    append(log)
    commit(log)
    append(log)
    log.retention.release_old_segments(NOW_MS + 10)
    assert [segment.base_offset for segment in log.segments] == [1]
    commit(log)
    log.retention.release_old_segments(NOW_MS + 10)
    assert [segment.base_offset for segment in log.segments] == [2]
    assert f"{2:020d}.log" in names(disk)


def killed_after(disk, count, *, flush_messages):
    """A log with so many records, none of them synced, opened again."""
    log = open_log(disk)
    for _ in range(count):
        append(log)
    return open_log(disk, config=LogConfig(flush_messages=flush_messages))


def test_what_a_kill_has_left_is_flushed_before_it_is_read(disk):
    log = killed_after(disk, 3, flush_messages=1)
    log.flush_found(NOW_MS)
    assert (log.flush_state.readable_offset, open_log(disk.without_power(), config=log.config).log_end_offset) == (3, 3)


def test_as_much_as_may_be_lost_is_not_flushed_at_the_start(disk):
    log = killed_after(disk, 3, flush_messages=4)
    log.flush_found(NOW_MS)
    assert (log.flush_state.readable_offset, log.flushed_offset) == (3, 0)


def test_a_recovery_point_does_not_pass_an_index_that_another_flush_has_not_synced_yet(disk):
    log = open_log(disk, config=LogConfig(segment_bytes=4 * len(batch()), index_interval_bytes=1))
    for number in range(9):
        append(log, batch(timestamp=NOW_MS + number))
    log.flush_state.flush_task(active=False)
    log.flush(NOW_MS)
    left = open_log(disk.without_power(), recovery_point=log.recovery_point)
    assert [left.offset_for_timestamp(NOW_MS + number).offset for number in range(9)] == [*range(9)]
    assert [segment.offset_index.entry_count for segment in left.segments] == [3, 3, 0]
