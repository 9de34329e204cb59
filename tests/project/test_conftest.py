"""The promise of tests/conftest.py: a test's time ends it, also on uvloop."""

import asyncio
import os
import signal
import threading

import pytest

from tests.conftest import TimedLoop


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
