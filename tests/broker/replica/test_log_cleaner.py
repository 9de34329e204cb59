"""The cleaner in a broker: under the virtual clock at once, else in a thread; which log it takes, and what it leaves."""

import asyncio
import threading
from types import SimpleNamespace
from uuid import uuid4

import pytest

from odradek.broker.replica.log_cleaner import LogCleaner, _Pace
from odradek.common.config.broker_config import load
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground
from odradek.timing.timer import Timer
from tests.memory_filesystem import MemoryFileSystem

_BACKOFF_MS = 15_000
_COMPACTED = LogConfig(cleanup_policy=("compact",), segment_bytes=1000)


class Setup:
    def __init__(self, clock=None, *, files=None, background=None, **properties):
        self.clock = clock or VirtualClock()
        self.background = background or InlineBackground()
        self.files = files or MemoryFileSystem()
        self.warnings = []
        self.manager = LogManager(
            self.files, "/data", node_id=1, new_uuid=uuid4, warn=lambda event, **_: self.warnings.append(event)
        )
        self.manager.start()
        overrides = {name.replace("_", "."): str(value) for name, value in properties.items()}
        self.cleaner = LogCleaner(load(overrides=overrides), self.manager, Timer(self.clock), self.background)

    def create(self, topic="t", config=_COMPACTED):
        return self.manager.create(topic, 0, uuid4(), config, now_ms=self.clock.now_ms())

    def fill(self, log, count=100, keys=10):
        for number in range(count):
            record = Record(timestamp=self.clock.now_ms(), key=b"key %d" % (number % keys), value=b"%d" % number)
            log.append(build_batch([record]), leader_epoch=0, now_ms=self.clock.now_ms())


def offsets_of(log):
    offset = log.log_start_offset
    found = []
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, upper_offset=log.log_end_offset, min_one_batch=True).read()
        for position, header in iter_batches(data):
            found += [record.offset for record in read_records(data, position)]
            offset = header.next_offset
    return found


def checkpoint(setup):
    return setup.files.read_bytes("/data/cleaner-offset-checkpoint").decode()


def test_a_dirty_log_is_cleaned_when_its_time_comes_and_the_offset_written():
    setup = Setup()
    log = setup.create()
    setup.fill(log)
    setup.clock.advance(_BACKOFF_MS)
    active = log.segments.active.base_offset
    assert offsets_of(log) == [*range(active - 10, active), *range(active, 100)]
    assert checkpoint(setup) == f"0\n1\nt 0 {active}\n"
    assert setup.cleaner.cleans == 1
    assert not log.is_being_cleaned


def test_a_log_that_is_deleted_from_and_one_that_is_clean_enough_are_left_alone():
    setup = Setup()
    kept = setup.create("kept", LogConfig(segment_bytes=1000))
    setup.fill(kept)
    log = setup.create()
    setup.fill(log)
    setup.clock.advance(_BACKOFF_MS)
    setup.fill(log, 5)
    setup.clock.advance(_BACKOFF_MS)
    assert setup.cleaner.cleans == 1
    assert offsets_of(kept) == list(range(100))


def test_a_clean_reads_into_half_of_the_io_buffer_as_in_kafka():
    assert Setup(log_cleaner_io_buffer_size=8192).cleaner._limits().io_buffer_bytes == 4096


def test_log_cleaner_enable_false_leaves_all_logs_alone():
    setup = Setup(log_cleaner_enable=False)
    log = setup.create()
    setup.fill(log)
    setup.clock.advance(10 * _BACKOFF_MS)
    assert offsets_of(log) == list(range(100))


def test_the_dirtiest_log_comes_first_and_the_others_follow_at_once(monkeypatch):
    setup = Setup()
    half, whole = setup.create("half"), setup.create("whole")
    setup.fill(half)
    setup.clock.advance(_BACKOFF_MS)
    setup.fill(half)
    setup.fill(whole)
    order = []
    begin = setup.cleaner._begin
    monkeypatch.setattr(setup.cleaner, "_begin", lambda found: order.append(found.log.topic) or begin(found))
    setup.clock.advance(_BACKOFF_MS)
    assert order == ["whole", "half"]


def test_a_record_that_waited_max_compaction_lag_ms_is_compacted_however_little_there_is():
    setup = Setup()
    config = LogConfig(
        cleanup_policy=("compact",), segment_bytes=1000, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=3_600_000
    )
    log = setup.create("t", config)
    setup.fill(log)
    setup.clock.advance(3_500_000)
    assert setup.cleaner.cleans == 0
    setup.clock.advance(200_000)
    assert setup.cleaner.cleans == 1


def test_the_active_segment_is_rolled_when_a_record_in_it_has_waited_max_compaction_lag_ms():
    setup = Setup()
    log = setup.create("t", LogConfig(cleanup_policy=("compact",), max_compaction_lag_ms=3_600_000))
    setup.fill(log, 10)
    setup.clock.advance(3_700_000)
    setup.fill(log, 1)
    assert log.segments.active.base_offset == 10


def test_a_log_that_cannot_be_read_is_left_alone_and_holds_up_no_other():
    setup = Setup()
    bad, good = setup.create("bad"), setup.create("good")
    setup.fill(bad, 200)
    setup.fill(good)
    setup.files.files["/data/bad-0/00000000000000000000.log"].data[70] ^= 1
    setup.clock.advance(3 * _BACKOFF_MS)
    assert list(setup.cleaner.uncleanable) == [("bad", 0)]
    assert len(offsets_of(good)) < 30
    assert setup.cleaner.cleans == 1


def test_an_offset_beyond_the_log_is_forgotten_and_all_of_it_cleaned():
    files = MemoryFileSystem()
    setup = Setup(files=files)
    log = setup.create()
    setup.fill(log)
    log.cleaned_offset = 1000
    setup.clock.advance(_BACKOFF_MS)
    assert len(offsets_of(log)) < 30
    assert log.cleaned_offset == log.segments.active.base_offset


def test_the_offset_is_there_after_a_restart_and_gone_with_the_topic():
    files = MemoryFileSystem()
    setup = Setup(files=files)
    log = setup.create()
    setup.fill(log)
    setup.clock.advance(_BACKOFF_MS)
    setup.manager.shutdown(setup.clock.now_ms())
    again = Setup(files=files)
    again.manager.load_all(lambda _: _COMPACTED, again.clock.now_ms())
    assert again.manager.logs["t", 0].cleaned_offset == log.segments.active.base_offset
    again.manager.delete("t", 0)
    assert again.create().cleaned_offset is None


@pytest.fixture
async def threads():
    """A cleaner with the machine's clock, in threads."""
    setup = Setup(SystemClock(), background=ThreadedBackground())
    yield setup
    setup.cleaner.close()
    await setup.background.finish()


@pytest.mark.timeout(20)
async def test_with_the_machines_clock_the_work_is_done_in_a_thread(threads):
    log = threads.create()
    threads.fill(log, 1000)
    threads.cleaner.clean_due()
    assert log.is_being_cleaned
    assert "log-cleaner" in {thread.name for thread in threading.enumerate()}
    while threads.cleaner.cleans < 1:  # noqa: ASYNC110  another thread gets there
        await asyncio.sleep(0.001)
    assert len(offsets_of(log)) < 30


@pytest.mark.timeout(20)
async def test_appends_and_reads_go_on_while_a_log_is_cleaned(threads):
    log = threads.create(config=LogConfig(cleanup_policy=("compact",), segment_bytes=40_000))
    threads.fill(log, 3000, keys=50)
    threads.cleaner.clean_due()
    while threads.cleaner.cleans < 1:
        threads.fill(log, 1, keys=50)
        end = log.log_end_offset
        assert log.read(end - 50, 1 << 20, upper_offset=end, min_one_batch=True).read()[:8] == (end - 50).to_bytes(8, "big")
        await asyncio.sleep(0)
    last = range(log.log_end_offset - 50, log.log_end_offset)
    assert [offset for offset in offsets_of(log) if offset >= last.start] == list(last)


@pytest.mark.parametrize(("worked_ms", "rest_ms"), [(0.4, None), (1, 4), (5, 20), (90, 100)])
def test_it_rests_four_times_as_long_as_it_worked_but_not_for_the_time_it_waited_for_the_interpreter(worked_ms, rest_ms):
    clock, rests = VirtualClock(), []
    beside = SimpleNamespace(is_cancelled=False, checkpoint=lambda: None, rest=rests.append)
    pace = _Pace(SimpleNamespace(is_closed=False), clock, beside, float("inf"))
    clock.advance(worked_ms)
    pace(1)
    assert rests == ([] if rest_ms is None else [rest_ms])
