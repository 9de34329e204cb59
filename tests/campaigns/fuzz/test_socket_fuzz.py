"""The fuzzer of the live socket, for a few seconds; the campaign fuzz runs it for longer."""

import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.campaigns.fuzz.socket_fuzz import Fuzzer

RUN = "import sys; from tests.campaigns.fuzz.socket_fuzz import main; sys.exit(main())"


def fuzz(*arguments: str, program: str = RUN):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=50, cwd=REPOSITORY
    )


def test_a_live_broker_and_its_client_are_unharmed_by_spoilt_frames():
    done = fuzz("--frames", "800", "--seed", "20")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "800 frames, failures 0" in done.stdout
    assert "client's operations, errors 0" in done.stdout


@pytest.mark.parametrize(
    ("fault", "sign"),
    [
        ("socket_fuzz._FAULT = re.compile('ApiVersions|closing a connection')", "unhandled exceptions"),
        ("socket_fuzz._MAX_GROWTH_OF_A_SHORT_RUN_KIB = 1", "memory (PSS)"),
        ("socket_fuzz.WorkingClient._work = lambda client: client._fetch(10**9)", "the client: AssertionError"),
        ("socket_fuzz.WorkingClient._values = property(lambda client: [b'lost'], lambda *_: None)", "AssertionError"),
        (
            "socket_fuzz.Fuzzer._clean = lambda fuzzer: fuzzer._broker.kill9(); socket_fuzz._CLEAN_EVERY_FRAMES = 50",
            "no connection",
        ),
    ],
    ids=["an exception in the log", "growth", "an error of the client's", "a lost record", "a broker that ends"],
)
def test_a_fault_fails_the_run_and_is_named_with_the_command_that_repeats_it(fault, sign):
    program = f"""
import re, sys
from tests.campaigns.fuzz import socket_fuzz

{fault}
sys.exit(socket_fuzz.main())
"""
    done = fuzz("--frames", "120", "--seed", "20", program=program)

    assert done.returncode == 1, done.stdout
    assert sign in done.stderr
    assert "python -m tests.campaigns.fuzz.socket_fuzz --frames 120 --seed 20" in done.stderr


def test_a_frame_is_the_same_whichever_was_the_first():
    streams = [Fuzzer(None, 3, first, 10).stream(7) for first in (0, 7)]

    assert streams[0] == streams[1]
