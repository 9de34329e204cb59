"""The fuzzer of protocol/, for a few seconds; the campaign fuzz runs it for longer."""

import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY


def fuzz(*arguments: str, program: str = "import sys; from tests.campaigns.fuzz.protocol_fuzz import main; sys.exit(main())"):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=50, cwd=REPOSITORY
    )


def test_spoilt_frames_raise_typed_errors_only_and_take_no_memory():
    done = fuzz("--frames", "10000", "--seed", "20")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("10000 frames, failures 0\n")


@pytest.mark.parametrize(
    ("fault", "sign"),
    [
        ("raise KeyError('fault')", "KeyError"),
        ("raise BaseException('panic')", "BaseException"),
        ("bytearray(1 << 30)", "MemoryError"),
        ("os.abort()", "exit status -6"),
    ],
    ids=["untyped error", "panic", "huge allocation", "abort"],
)
def test_a_fault_is_named_with_the_command_that_repeats_it(fault, sign):
    program = f"""
import os, sys
from tests.campaigns.fuzz import protocol_fuzz

def read_records(*args, **kwargs):
    {fault}

protocol_fuzz.read_records = read_records
sys.exit(protocol_fuzz.main())
"""
    done = fuzz("--frames", "1000", "--seed", "20", program=program)

    assert done.returncode == 1
    assert sign in done.stderr
    assert "--seed 20 --first" in done.stderr


def test_a_frame_is_the_same_whichever_was_the_first():
    program = """
import sys
from tests.campaigns.fuzz import protocol_fuzz

protocol_fuzz._send = lambda frame, rng, outcomes: print("frame", frame.hex())
sys.exit(protocol_fuzz.main())
"""
    several = fuzz("--frames", "10", "--seed", "3", program=program).stdout
    one = fuzz("--frames", "1", "--first", "7", "--seed", "3", program=program).stdout

    assert [line for line in one.splitlines() if line.startswith("frame")] == [
        line for line in several.splitlines() if line.startswith("frame")
    ][7:8]
