"""Files of segments are open while they are used, and never more than a bound."""

import os
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from odradek.cli.process import raise_open_files_limit
from odradek.protocol.errors import KafkaError
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.open_segments import MAX_OPEN, OPEN_SEGMENTS, OpenSegments, fit_limit
from tests.storage.support import NOW_MS, Warnings, append, batch, read

LOGS, SEGMENTS, LIMIT = 20, 5, 8
CONFIG = LogConfig(segment_bytes=200)


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(OPEN_SEGMENTS, "limit", LIMIT)


@pytest.fixture
def switching():
    """Threads that take turns every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def manager(tmp_path, limit):
    manager = LogManager(RealFileSystem(), str(tmp_path), node_id=1, new_uuid=uuid4, warn=Warnings())
    manager.start()
    yield manager
    manager.release()


def descriptors(tmp_path):
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += str(descriptor.readlink()).startswith(f"{tmp_path}/t-")
        except FileNotFoundError:
            continue
    return count


def filled(manager):
    for partition in range(LOGS):
        manager.create("t", partition, UUID(int=1), CONFIG, now_ms=NOW_MS)
    for _ in range(SEGMENTS):
        for log in manager.logs.values():
            append(log, batch(value=b"x" * 100))


def test_many_logs_with_many_segments_have_few_files_open(manager, tmp_path):
    filled(manager)
    assert all(len(log.segments) == SEGMENTS for log in manager.logs.values())
    assert descriptors(tmp_path) == LIMIT
    for log in manager.logs.values():
        for offset in range(SEGMENTS):
            assert b"x" * 100 in read(log, offset)
            assert descriptors(tmp_path) <= LIMIT


def test_what_is_being_sent_stays_readable(manager, tmp_path):
    filled(manager)
    log = manager.logs["t", 0]
    held = log.read(0, 1 << 20, upper_offset=SEGMENTS, min_one_batch=True)
    for other in manager.logs.values():
        read(other, 1)
    assert b"x" * 100 in held.read()
    assert descriptors(tmp_path) == LIMIT + 1


def test_a_log_that_is_closed_leaves_no_file_open(manager, tmp_path):
    filled(manager)
    for partition in range(LOGS):
        manager.delete("t", partition)
    assert descriptors(tmp_path) == 0


def in_threads(action, logs):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(action, logs))


def test_all_is_there_after_a_restart(manager, tmp_path):
    filled(manager)
    manager.shutdown(NOW_MS, for_each=in_threads)
    again = LogManager(RealFileSystem(), str(tmp_path), node_id=1, new_uuid=uuid4, warn=Warnings())
    again.start()
    again.load_all(lambda _: CONFIG, now_ms=NOW_MS)
    assert (again.was_clean, again.offline) == (True, {})
    assert [log.log_end_offset for log in again.logs.values()] == [SEGMENTS] * LOGS
    assert descriptors(tmp_path) == 0
    again.release()


def test_a_file_of_which_something_may_have_to_be_cut_off_is_kept(manager, monkeypatch):
    filled(manager)
    log = manager.logs["t", 0]
    file = log.segments.active.file

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    monkeypatch.setattr(log, "config", LogConfig(segment_bytes=10_000))
    with pytest.raises(KafkaError):
        append(log)
    monkeypatch.undo()
    monkeypatch.setattr(OPEN_SEGMENTS, "limit", LIMIT)
    for other in manager.logs.values():
        read(other, 0)
    assert log.segments.active.file is file


class Segment:
    def __init__(self):
        self.is_open = True

    def let_go(self):
        self.is_open = False


@pytest.mark.usefixtures("switching")
def test_brokers_in_several_threads_share_the_limit():
    open_segments = OpenSegments(5)
    segments = [Segment() for _ in range(8_000)]

    def use(own):
        for place, segment in enumerate(own):
            open_segments.opened(segment)
            if place % 3 == 0:
                open_segments.forget(segment)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, [segments[place::8] for place in range(8)]))
    kept = [segment for place, segment in enumerate(segments) if place // 8 % 3 and segment.is_open]
    assert len(open_segments) <= 5
    assert len(kept) <= 5


def test_the_longest_open_goes_first():
    open_segments, segments = OpenSegments(2), [Segment() for _ in range(4)]
    for segment in segments[:3]:
        open_segments.opened(segment)
    assert [segment.is_open for segment in segments[:3]] == [False, True, True]
    open_segments.forget(segments[1])
    open_segments.opened(segments[3])
    assert ([segment.is_open for segment in segments[1:]], len(open_segments)) == ([True] * 3, 2)


@pytest.mark.parametrize(("descriptors", "limit"), [(1, 1), (256, 128), (10**6, MAX_OPEN)])
def test_connections_are_left_half_of_the_descriptors(monkeypatch, descriptors, limit):
    monkeypatch.setattr(OPEN_SEGMENTS, "limit", 0)
    fit_limit(descriptors)
    assert OPEN_SEGMENTS.limit == limit


def test_a_broker_takes_as_many_descriptors_as_it_may_have(monkeypatch):
    monkeypatch.setattr(OPEN_SEGMENTS, "limit", 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    raise_open_files_limit()
    assert OPEN_SEGMENTS.limit == 50
