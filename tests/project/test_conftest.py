"""The promises of tests/conftest.py: a test's time ends it, also on uvloop, and the compiled run leaves out the right tests."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from tests.broker_process import REPOSITORY
from tests.conftest import LEFT_OUT_COMPILED, TimedLoop
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
