"""The promises of tests/conftest.py: a test's time ends it, also on uvloop; and which tests run, and in which order."""

import asyncio
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.broker_process import REPOSITORY
from tests.conftest import LEFT_OUT_COMPILED, TimedLoop, longest_first
from tests.project.test_tools import tool

hook = tool("build_hook")


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_signal_ends_what_a_loop_runs(is_busy):
    # uvloop runs a signal's handler in a callback, and goes on whatever that raises. pytest-timeout's raises the same.
    before = signal.signal(signal.SIGUSR1, lambda *_: pytest.fail("late"))
    loop = TimedLoop()

    def work():
        loop.call_later(0.0001, work)

    if is_busy:
        loop.call_soon(work)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(pytest.fail.Exception, match="late"):
            loop.run_until_complete(asyncio.sleep(40))
    finally:
        timer.join()
        loop.close()
        signal.signal(signal.SIGUSR1, before)


def test_the_compiled_run_has_the_tests_of_every_room_with_a_compiled_module():
    rooms = {f"{Path(module).parent.as_posix().replace('odradek', 'tests', 1)}/" for module in hook.compiled_modules(REPOSITORY)}
    assert "tests/coordinator/group/classic/" in rooms
    assert [room for room in rooms if room.startswith(LEFT_OUT_COMPILED)] == []


def test_what_the_compiled_run_leaves_out_is_there():
    places = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "tests").rglob("*.py")]
    assert [left_out for left_out in LEFT_OUT_COMPILED if not any(place.startswith(left_out) for place in places)] == []


class CollectedTest:
    """What its place in the order depends on."""

    config = SimpleNamespace(getini=lambda name: {"timeout": 60}[name])

    def __init__(self, nodeid, **marks):
        self.nodeid = nodeid
        self.marks = marks

    def get_closest_marker(self, name):
        return SimpleNamespace(args=(self.marks[name],)) if name in self.marks else None


def test_the_longest_begin_first_and_then_the_largest_group():
    collected = [
        CollectedTest("alone"),
        CollectedTest("of two", xdist_group="two"),
        CollectedTest("beside the longest", xdist_group="the long"),
        CollectedTest("long", timeout=90),
        CollectedTest("the other of two", xdist_group="two"),
        CollectedTest("longest", xdist_group="the long", timeout=100),
    ]
    assert [test.nodeid for test in longest_first(collected)] == [
        *("beside the longest", "longest", "long", "of two", "the other of two", "alone")
    ]
