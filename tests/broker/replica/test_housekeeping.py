"""What happens now and then, under the virtual clock; and that slow work leaves the loop to others."""

import errno
import threading
from uuid import uuid4

import pytest

from odradek.broker.replica.housekeeping import Housekeeping
from odradek.common.config.broker_config import load
from odradek.protocol.records import Record, build_batch
from odradek.storage.directories.data_directories import RemovedLogs
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.flush import FlushTask
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground
from odradek.timing.timer import Timer
from tests.memory_filesystem import MemoryFileSystem

_MINUTE_MS = 60_000


class Setup:
    def __init__(self, **log_config):
        self.clock = VirtualClock()
        self.files = MemoryFileSystem()
        self.manager = LogManager(self.files, "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: None)
        self.manager.start()
        config = LogConfig(**{"retention_ms": -1} | log_config)
        self.log = self.manager.create("t", 0, uuid4(), config, now_ms=self.clock.now_ms())
        self.housekeeping = Housekeeping(load(), self.manager, Timer(self.clock), InlineBackground())
        self.housekeeping.start()

    def append(self, count=1):
        for _ in range(count):
            batch = build_batch([Record(timestamp=0, value=b"v" * 50)])
            self.log.append(batch, leader_epoch=0, now_ms=self.clock.now_ms())


def _without_room_for_starts(files):
    written = files.write_atomic

    def refuse(path, data, **options):
        if path.endswith(("log-start-offset-checkpoint", "leader-epoch-checkpoint")):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        written(path, data, **options)

    return refuse


def _refuse_for(*refused):
    def refuse(*arguments):
        if arguments == refused:
            raise OSError(5, "Input/output error")

    return refuse


def test_full_segments_are_flushed_and_the_recovery_point_written():
    setup = Setup(segment_bytes=300)
    setup.append(5)
    active = setup.log.segments.active.base_offset
    assert active > 0
    setup.clock.advance(_MINUTE_MS)
    assert setup.log.recovery_point == active
    assert f"t 0 {active}".encode() in setup.files.read_bytes("/data/recovery-point-offset-checkpoint")


def test_many_logs_are_flushed_some_at_a_time(monkeypatch):
    monkeypatch.setattr("odradek.broker.replica.housekeeping._FLUSHED_TOGETHER", 2)
    setup = Setup(flush_ms=1000)
    setup.append()
    others = [
        setup.manager.create("u", index, uuid4(), LogConfig(flush_ms=1000), now_ms=setup.clock.now_ms()) for index in range(4)
    ]
    for other in others:
        other.append(build_batch([Record(timestamp=0)]), leader_epoch=0, now_ms=setup.clock.now_ms())
    together = []
    monkeypatch.setattr(
        "odradek.broker.replica.housekeeping._sync", lambda tasks: [together.append(len(tasks)), *map(FlushTask.run, tasks)][1:]
    )
    setup.clock.advance(_MINUTE_MS)
    assert [log.recovery_point for log in (setup.log, *others)] == [1] * 5
    assert together[:3] == [2, 2, 1]
    points = setup.files.read_bytes("/data/recovery-point-offset-checkpoint")
    assert all(b"u %d 1\n" % index in points for index in range(4))


def test_the_active_segment_is_left_to_the_system():
    setup = Setup()
    setup.append(5)
    setup.clock.advance(10 * _MINUTE_MS)
    assert setup.log.recovery_point == 0


def test_flush_ms_makes_the_active_segment_due():
    setup = Setup(flush_ms=1000)
    setup.append(5)
    setup.clock.advance(_MINUTE_MS)
    assert setup.log.recovery_point == 5


def test_a_log_that_cannot_be_synced_holds_up_no_other(monkeypatch, capsys):
    setup = Setup(segment_bytes=300)
    other = setup.manager.create("u", 0, uuid4(), LogConfig(flush_ms=0), now_ms=setup.clock.now_ms())
    setup.append(5)
    other.append(build_batch([Record(timestamp=0)]), leader_epoch=0, now_ms=setup.clock.now_ms())
    monkeypatch.setattr(setup.files, "sync_dir", _refuse_for("/data/t-0"))
    setup.clock.advance(_MINUTE_MS)
    assert (setup.log.recovery_point, other.recovery_point) == (0, 1)


def test_old_segments_are_looked_for_after_the_initial_delay_and_then_every_interval():
    setup = Setup(segment_bytes=150, retention_ms=0)
    setup.append(3)
    setup.clock.advance(29_999)
    assert setup.log.log_start_offset == 0
    setup.clock.advance(1)
    assert (setup.log.log_start_offset, len(setup.log.segments)) == (3, 1)
    setup.append(1)
    setup.clock.advance(5 * _MINUTE_MS - 1)
    assert setup.log.log_start_offset == 3
    setup.clock.advance(1)
    assert setup.log.log_start_offset == 4


def test_files_of_old_segments_go_after_file_delete_delay_ms():
    setup = Setup(segment_bytes=150, retention_ms=0, file_delete_delay_ms=5000)
    setup.append(3)
    setup.clock.advance(30_000)
    deleted = [name for name in setup.files.list_dir("/data/t-0") if name.endswith(".deleted")]
    assert len(deleted) == 9
    setup.clock.advance(4999)
    assert all(setup.files.exists(f"/data/t-0/{name}") for name in deleted)
    setup.clock.advance(1)
    assert not any(name.endswith(".deleted") for name in setup.files.list_dir("/data/t-0"))


def test_new_log_starts_are_written_down_by_themselves():
    setup = Setup()
    setup.append(3)
    setup.log.delete_records_before(2)
    setup.clock.advance(30_000)
    assert b"t 0 2" in setup.files.read_bytes("/data/log-start-offset-checkpoint")


def test_log_starts_that_a_full_disk_refused_are_written_before_files_go(monkeypatch):
    setup = Setup(segment_bytes=300, retention_bytes=300, file_delete_delay_ms=1_000)
    setup.append(20)
    with monkeypatch.context() as full:
        full.setattr(setup.files, "write_atomic", _without_room_for_starts(setup.files))
        setup.manager.retention.run(setup.clock.now_ms())
    start = setup.log.log_start_offset
    remove, held = setup.files.remove, []

    def note(path):
        held.append(setup.files.read_bytes("/data/log-start-offset-checkpoint"))
        remove(path)

    monkeypatch.setattr(setup.files, "remove", note)
    setup.clock.advance(1_000)
    assert start > 0
    assert set(held) == {f"0\n1\nt 0 {start}\n".encode()}


def test_a_kill_on_a_disk_that_stays_full_leaves_a_log_whose_start_is_known(monkeypatch):
    setup = Setup(segment_bytes=300, retention_bytes=300, file_delete_delay_ms=1_000)
    setup.append(20)
    with monkeypatch.context() as full:
        full.setattr(setup.files, "write_atomic", _without_room_for_starts(setup.files))
        setup.manager.retention.run(setup.clock.now_ms())
        start = setup.log.log_start_offset
        setup.clock.advance(10_000)
    deleted = [name for name in setup.files.list_dir("/data/t-0") if name.endswith(".deleted")]
    assert deleted
    assert all(name.endswith(".log.deleted") for name in deleted)
    assert all(setup.files.size(f"/data/t-0/{name}") < 50 for name in deleted)
    remove, epochs = setup.files.remove, []

    def note(path):
        if path.startswith("/data/t-0"):
            epochs.append(setup.files.read_bytes("/data/t-0/leader-epoch-checkpoint"))
        remove(path)

    monkeypatch.setattr(setup.files, "remove", note)
    setup.manager.release()
    started = LogManager(setup.files, "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: None)
    started.start()
    started.load_all(lambda _: LogConfig(), setup.clock.now_ms())
    assert not started.offline
    assert started.logs["t", 0].log_start_offset == start > 0
    # A kill in the middle of that start finds them, too.
    assert set(epochs) == {f"0\n1\n0 {start}\n".encode()}


def test_files_go_when_a_full_disk_has_room_for_log_starts_again(monkeypatch):
    setup = Setup(segment_bytes=300, retention_bytes=300, file_delete_delay_ms=1_000)
    setup.append(20)
    with monkeypatch.context() as full:
        full.setattr(setup.files, "write_atomic", _without_room_for_starts(setup.files))
        setup.manager.retention.run(setup.clock.now_ms())
        setup.clock.advance(10_000)
    setup.clock.advance(10_000)
    assert f"t 0 {setup.log.log_start_offset}".encode() in setup.files.read_bytes("/data/log-start-offset-checkpoint")
    assert not any(name.endswith(".deleted") for name in setup.files.list_dir("/data/t-0"))


async def test_a_check_of_many_logs_lets_others_have_their_turn():
    timer = Timer(SystemClock())
    manager = LogManager(MemoryFileSystem(), "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: None)
    manager.start()
    housekeeping = Housekeeping(load(), manager, timer, InlineBackground())
    now_ms = SystemClock().now_ms()
    for number in range(20):
        log = manager.create("t", number, uuid4(), LogConfig(retention_ms=0), now_ms=now_ms)
        log.append(build_batch([Record(timestamp=0)]), leader_epoch=0, now_ms=now_ms)
    housekeeping.delete_old_segments()
    at_first = [log.log_start_offset for log in manager.logs.values()]
    # The next look for the data directory is a second away.
    while timer.next_deadline_ms() < timer.clock.monotonic_ms() + 500:
        timer.advance()
    at_last = [log.log_start_offset for log in manager.logs.values()]
    assert 0 < sum(at_first) < 20
    assert at_last == [1] * 20


def test_checkpoints_that_cannot_be_written_are_tried_again(monkeypatch, capsys):
    setup = Setup(segment_bytes=300)
    setup.append(5)
    with monkeypatch.context() as patch:
        patch.setattr(setup.manager.checkpoints, "steps", _refuse_for())
        setup.clock.advance(_MINUTE_MS)
    assert "Input/output error" in capsys.readouterr().err
    setup.clock.advance(_MINUTE_MS)
    assert setup.files.exists("/data/recovery-point-offset-checkpoint")


def test_deleted_files_go_when_their_time_has_come():
    setup = Setup()
    setup.manager.delete("t", 0)
    setup.housekeeping.remove_deleted_after(60_000)
    setup.clock.advance(59_999)
    assert any(name.endswith("-delete") for name in setup.files.list_dir("/data"))
    setup.clock.advance(1)
    assert not any(name.endswith("-delete") for name in setup.files.list_dir("/data"))


async def test_files_are_removed_in_a_thread_and_the_end_waits_for_it():
    threads = []

    class Removed(RemovedLogs):
        def remove_all(self):
            threads.append(threading.current_thread())

    timer = Timer(SystemClock())
    manager = LogManager(MemoryFileSystem(), "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: None)
    manager.removed_logs = Removed(manager.file_system, manager.directories)
    background = ThreadedBackground()
    housekeeping = Housekeeping(load(), manager, timer, background)
    housekeeping.remove_deleted_after(0)
    timer.advance()
    await background.finish()
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("interval", ["9223372036854775807"])
def test_an_interval_of_centuries_means_never(interval):
    clock = VirtualClock()
    timer = Timer(clock)
    manager = LogManager(MemoryFileSystem(), "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: None)
    config = load(overrides={"log.flush.scheduler.interval.ms": interval})
    Housekeeping(config, manager, timer, InlineBackground()).start()
    clock.advance(config["log.initial.task.delay.ms"])
    assert timer.next_deadline_ms() - clock.monotonic_ms() == _MINUTE_MS
