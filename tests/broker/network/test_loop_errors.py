"""What goes wrong in the event loop itself is one line of the broker's log."""

import asyncio
import errno
import json

import pytest

from odradek.broker.network.event_loop import LoopErrors
from odradek.timing.clock import VirtualClock

pytestmark = pytest.mark.interpreted


class FakeTransport:
    def get_extra_info(self, name):
        return ("10.0.0.1", 5) if name == "peername" else None


async def reported(capsys, context):
    """The one line for what the loop was told."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopErrors(VirtualClock()).report)
    loop.call_exception_handler(context)
    (line,) = capsys.readouterr().err.splitlines()
    return json.loads(line)


async def test_the_line_names_peer_and_cause(capsys):
    error = OSError(errno.EMFILE, "Too many open files")
    context = {"message": "socket.accept() out of system resource", "exception": error, "transport": FakeTransport()}
    line = await reported(capsys, context)
    assert (line["cause"], line["peer"]) == ("socket.accept() out of system resource", "10.0.0.1:5")
    assert "Too many open files" in line["error"]
    assert "exception" not in line


async def test_a_fault_of_ours_comes_with_its_traceback_in_the_same_line(capsys):
    line = await reported(capsys, {"message": "Exception in callback", "exception": ZeroDivisionError("why")})
    assert line["cause"] == "Exception in callback"
    assert "ZeroDivisionError: why" in line["exception"]


async def test_the_same_error_again_and_again_is_told_ten_times(capsys):
    loop = asyncio.get_running_loop()
    clock = VirtualClock()
    loop.set_exception_handler(LoopErrors(clock).report)
    for _ in range(1000):
        loop.call_exception_handler({"message": "no memory", "exception": MemoryError()})
    assert len(capsys.readouterr().err.splitlines()) == 10
    clock.advance(10_000)
    loop.call_exception_handler({"message": "no memory", "exception": MemoryError()})
    assert json.loads(capsys.readouterr().err)["left_out"] == 990


async def test_a_report_without_an_exception_is_told_too(capsys):
    assert (await reported(capsys, {"message": "a task was destroyed"}))["cause"] == "a task was destroyed"
