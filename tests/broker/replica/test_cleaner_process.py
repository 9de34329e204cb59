"""Another process compacts the logs of a broker that serves: as a thread does, to the byte, and gone whenever its broker is."""

import asyncio
import os
import pickle
import shutil
import signal
from functools import partial
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from odradek.broker.replica import cleaner_process
from odradek.broker.replica.cleaner_process import CleanerProcess, CleanOrder, _sendable
from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.common.config.broker_config import load
from odradek.common.logging import lines_to
from odradek.storage.cleaning.candidates import look_at
from odradek.storage.cleaning.cleaner import CleanerLimits, clean
from odradek.storage.cleaning.swap import CleanJob, clean_log
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log import Log
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground
from odradek.timing.timer import Timer
from tests.storage.cleaner.support import DAY_MS, compacted, pairs_of, put
from tests.storage.support import NOW_MS, Warnings
from tests.storage.transactional import end

_PRODUCERS = (7, 8)
_FAST = float("inf")


def open_log(directory, config):
    return Log.open(
        RealFileSystem(),
        str(directory),
        "t",
        0,
        config,
        recovery_point=0,
        log_start_offset=0,
        cleaned_offset=None,
        clean=False,
        now_ms=NOW_MS,
        warn=Warnings(),
    )


def job_of(log, now_ms):
    found = look_at(log, 0, now_ms)
    return CleanJob.of(log, found.first_dirty_offset, found.first_uncleanable_offset, now_ms)


def fill_at_random(log, random):
    """Batches of few keys: tombstones, compression, transactions that commit or abort, segments of all sizes."""
    sequences, open_producers = dict.fromkeys(_PRODUCERS, 0), set()
    for _ in range(150):
        pairs = [
            (b"key %d" % random.randrange(12), random.choice([None, b"", random.randbytes(random.randrange(60))]))
            for _ in range(random.randint(1, 6))
        ]
        match random.choice(["plain", "send", "end", "roll"] if random.random() < 0.3 else ["plain", "send"]):
            case "plain":
                put(log, *pairs, compression=random.randrange(5))
            case "send":
                producer = random.choice(_PRODUCERS)
                put(log, *pairs, producer_id=producer, producer_epoch=0, base_sequence=sequences[producer], transactional=True)
                sequences[producer] += len(pairs)
                open_producers.add(producer)
            case "end" if open_producers:
                end(log, commit=random.random() < 0.5, producer=open_producers.pop())
            case "roll":
                log.roll(NOW_MS)
    for producer in open_producers:
        end(log, commit=True, producer=producer)
    log.roll(NOW_MS)


def spoil(path):
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)


def move_away(path):
    path.rename(path.with_suffix(".away"))


def content_of(directory):
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


@pytest.mark.parametrize("seed", range(6))
def test_the_process_leaves_the_files_that_a_clean_in_the_same_process_leaves(tmp_path, seed):
    random = Random(seed)
    config = compacted(segment_bytes=random.choice([600, 2000, 100_000]), delete_retention_ms=DAY_MS)
    limits = CleanerLimits(dedupe_buffer_bytes=random.choice([1000, 1 << 20]), load_factor=0.9, io_buffer_bytes=1024)
    log = open_log(tmp_path / "origin", config)
    fill_at_random(log, random)
    log.flush(NOW_MS)
    log.close(clean=False, now_ms=NOW_MS)
    shutil.copytree(tmp_path / "origin", tmp_path / "alone")
    shutil.copytree(tmp_path / "origin", tmp_path / "beside")
    alone, beside = open_log(tmp_path / "alone", config), open_log(tmp_path / "beside", config)
    process = CleanerProcess()
    try:
        for now_ms in (NOW_MS, NOW_MS + 2 * DAY_MS):
            job = job_of(alone, now_ms)
            expected = clean_log(job, partial(clean, job.plan, RealFileSystem(), limits, lambda _: None), lambda act: act())
            job = job_of(beside, now_ms)
            order = CleanOrder(job.plan, limits, _FAST)
            assert clean_log(job, partial(process.clean, order, lambda: None), lambda act: act()) == expected
    finally:
        process.close()
    assert content_of(tmp_path / "beside") == content_of(tmp_path / "alone")
    assert content_of(tmp_path / "beside") != content_of(tmp_path / "origin")


class Bed:
    """A log manager on disk, and a cleaner that has a process."""

    def __init__(self, directory, monkeypatch, **properties):
        self.directory = directory
        self.processes = []
        self.lines = []
        bed = self

        class Noted(CleanerProcess):
            def __init__(self):
                super().__init__()
                bed.processes.append(self._process)

        monkeypatch.setattr(cleaner_process, "CleanerProcess", Noted)
        self.background = ThreadedBackground()
        self.manager = LogManager(RealFileSystem(), str(directory), node_id=1, new_uuid=uuid4, warn=Warnings())
        self.manager.start()
        self.cleaner = self.new_cleaner(**properties)

    def new_cleaner(self, *, in_process=True, **properties):
        """One that looks when it is told to."""
        overrides = {"log.cleaner.enable": "false"} | {key.replace("_", "."): str(value) for key, value in properties.items()}
        return LogCleaner(load(overrides=overrides), self.manager, Timer(SystemClock()), self.background, in_process=in_process)

    def create(self, topic="t", **config):
        log = self.manager.create(topic, 0, uuid4(), compacted(segment_bytes=2000, **config), now_ms=NOW_MS)
        for number in range(300):
            put(log, (b"key %d" % (number % 7), b"%d" % number))
        return log

    async def clean(self):
        with lines_to(lambda _, event, fields: self.lines.append((event, fields))):
            self.cleaner.clean_due()
        while self.cleaner.is_cleaning:  # noqa: ASYNC110  another process gets there
            await asyncio.sleep(0.001)
        await self.background.finish()

    async def until_it_writes(self):
        """Until a clean that began has something on disk; the clean's task."""
        task = asyncio.get_running_loop().create_task(self.clean())
        while not self.unfinished():
            assert not task.done(), "the clean is over, and nobody has seen it write"
            await asyncio.sleep(0.001)
        return task

    def unfinished(self):
        return sorted(path.name for path in self.directory.glob("*/*") if path.suffix in {".cleaned", ".swap"})

    def events(self):
        return [event for event, _ in self.lines]


def newest_of(log):
    """Each key's last record. A clean that is ended has done some segments, or none."""
    return {key: (offset, value) for offset, key, value in pairs_of(log)}


@pytest.fixture
def make_bed(tmp_path, monkeypatch):
    return partial(Bed, tmp_path, monkeypatch)


async def test_one_process_cleans_all_logs_that_are_due_and_is_gone_afterwards(make_bed):
    bed = make_bed()
    logs = [bed.create("a"), bed.create("b")]
    await bed.clean()
    assert bed.cleaner.cleans == 2
    assert [len(pairs_of(log)) < 100 for log in logs] == [True, True]
    assert [process.returncode is None for process in bed.processes] == [False]
    assert bed.lines == []


def test_an_error_that_ends_a_clean_says_in_the_broker_what_it_said_in_the_process():
    class Local(Exception):
        """One that cannot be pickled."""

    errors = [LogCorrupt("a reason"), OSError(5, "an error", "a path"), MemoryError(), Local("a reason")]
    told = [pickle.loads(pickle.dumps(_sendable(error))) for error in errors]
    assert [type(error) for error in told] == [LogCorrupt, OSError, MemoryError, RuntimeError]
    assert [str(error) for error in told[:3]] == [str(error) for error in errors[:3]]
    assert (told[0].reason, told[1].errno, told[1].filename) == ("a reason", 5, "a path")
    assert "a reason" in str(told[3])


async def test_there_is_no_process_before_a_log_is_due(make_bed):
    bed = make_bed()
    bed.create("t", min_cleanable_dirty_ratio=1.0)
    await bed.clean()
    assert bed.processes == []


async def test_a_process_that_is_killed_loses_nothing_and_the_next_look_cleans(make_bed):
    bed = make_bed(log_cleaner_io_max_bytes_per_second=10_000)
    log = bed.create()
    cleaning = await bed.until_it_writes()
    before = newest_of(log)
    os.kill(bed.processes[0].pid, signal.SIGKILL)
    await cleaning
    assert bed.events() == ["the cleaner's process ended unexpectedly"]
    assert (bed.cleaner.cleans, bed.cleaner.uncleanable, log.is_being_cleaned) == (0, {}, False)
    assert bed.unfinished() == []
    assert newest_of(log) == before
    bed.cleaner = bed.new_cleaner()
    await bed.clean()
    assert (bed.cleaner.cleans, len(bed.processes)) == (1, 2)
    assert len(pairs_of(log)) < 100


_ENDS_WITHIN_AN_ANSWER = """
import os
from multiprocessing.connection import Connection
broker = Connection(0)
broker.send(None)
broker.recv()
os.write(0, (100_000).to_bytes(4) + b"the first of so many bytes")
"""


async def test_a_process_that_ends_within_an_answer_is_no_error_of_the_disk(make_bed, monkeypatch):
    bed = make_bed()
    bed.create()
    monkeypatch.setattr(cleaner_process, "_PROGRAM", _ENDS_WITHIN_AN_ANSWER)
    await bed.clean()
    assert bed.events() == ["the cleaner's process ended unexpectedly"]
    assert bed.cleaner.uncleanable == {}


@pytest.mark.parametrize("in_process", [True, False])
async def test_a_stop_ends_the_clean_and_loses_nothing(make_bed, in_process):
    bed = make_bed(in_process=in_process, log_cleaner_io_max_bytes_per_second=10_000)
    log = bed.create()
    cleaning = await bed.until_it_writes()
    before = newest_of(log)
    bed.cleaner.close()
    await cleaning
    assert [process.returncode for process in bed.processes] == [-signal.SIGKILL] * in_process
    assert (bed.lines, bed.unfinished(), newest_of(log)) == ([], [], before)
    assert (bed.cleaner.cleans, log.is_being_cleaned) == (0, False)


@pytest.mark.parametrize("in_process", [True, False])
@pytest.mark.parametrize("again", [True, False])
async def test_a_topic_deleted_meanwhile_ends_the_clean_and_its_successor_is_not_touched(make_bed, in_process, again):
    bed = make_bed(in_process=in_process, log_cleaner_io_max_bytes_per_second=10_000)
    bed.create()
    cleaning = await bed.until_it_writes()
    bed.manager.delete("t", 0)
    successor = bed.create(min_cleanable_dirty_ratio=1.0) if again else None
    await cleaning
    assert [process.returncode for process in bed.processes] == [-signal.SIGKILL] * in_process
    assert successor is None or len(pairs_of(successor)) == 300
    assert not [*bed.directory.glob("t-0/*.cleaned"), *bed.directory.glob("t-0/*.swap")]
    assert (bed.cleaner.uncleanable, bed.lines) == ({}, [])


async def test_a_damaged_log_is_left_alone_with_the_reason_that_a_clean_in_a_thread_gives(make_bed):
    bed = make_bed()
    log = bed.create()
    spoil(Path(log.segments[1].path))
    for in_process in (True, False):
        bed.cleaner = bed.new_cleaner(in_process=in_process)
        await bed.clean()
        assert list(bed.cleaner.uncleanable) == [("t", 0)]
    assert len(bed.processes) == 1
    assert bed.events() == ["compaction of a log failed: not trying again before the next start"] * 2
    assert bed.lines[0] == bed.lines[1]


async def test_a_file_that_cannot_be_read_is_an_error_of_the_disk(make_bed, monkeypatch):
    bed = make_bed()
    log = bed.create()
    move_away(Path(log.segments[1].path))
    errors = []
    monkeypatch.setattr(Log, "storage_error", lambda _, error: errors.append(error))
    await bed.clean()
    assert [type(error) for error in errors] == [FileNotFoundError]
    assert bed.events() == ["compaction of a log failed: not trying again before the next start"]


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false"])
async def test_where_no_process_can_be_started_a_thread_cleans(make_bed, monkeypatch, executable):
    bed = make_bed()
    log = bed.create()
    monkeypatch.setattr("sys.executable", executable)
    await bed.clean()
    assert bed.events() == ["cannot start the cleaner's process: cleaning in a thread instead"]
    assert bed.cleaner.cleans == 1
    assert len(pairs_of(log)) < 100
