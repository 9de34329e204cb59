"""The fuzzer of the live socket, for a few seconds; the campaign fuzz runs it for longer."""

import re

import pytest

from tests.campaigns.fuzz import socket_fuzz
from tests.campaigns.fuzz.socket_fuzz import Fuzzer, WorkingClient


@pytest.fixture
def fuzz(monkeypatch, capsys):
    """Run the program with these arguments; its exit status, and what it says on stdout and on stderr."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["", *arguments])
        return socket_fuzz.main(), *capsys.readouterr()

    return run


def test_a_live_broker_and_its_client_are_unharmed_by_spoilt_frames(fuzz):
    status, out, err = fuzz("--frames", "800", "--seed", "20")

    assert status == 0, out + err
    assert "800 frames, failures 0" in out
    assert "client's operations, errors 0" in out


def _kill(fuzzer):
    fuzzer._broker.kill9()


FAULTS = {
    "an exception in the log": ({"_FAULT": re.compile("ApiVersions|closing a connection")}, {}, "unhandled exceptions"),
    "growth": ({"_MAX_GROWTH_OF_A_SHORT_RUN_KIB": 1}, {}, "memory (PSS)"),
    "an error of the client's": ({}, {"_work": lambda client: client._fetch(10**9)}, "the client: AssertionError"),
    "a lost record": ({}, {"_values": property(lambda _: [b"lost"], lambda *_: None)}, "AssertionError"),
    "a broker that ends": ({"Fuzzer._clean": _kill, "_CLEAN_EVERY_FRAMES": 50}, {}, "no connection"),
}


@pytest.mark.parametrize(("of_the_program", "of_the_client", "sign"), FAULTS.values(), ids=FAULTS)
def test_a_fault_fails_the_run_and_is_named_with_the_command_that_repeats_it(
    fuzz, monkeypatch, of_the_program, of_the_client, sign
):
    for name, value in of_the_program.items():
        monkeypatch.setattr(f"tests.campaigns.fuzz.socket_fuzz.{name}", value)
    for name, value in of_the_client.items():
        monkeypatch.setattr(WorkingClient, name, value, raising=False)
    status, out, err = fuzz("--frames", "120", "--seed", "20")

    assert status == 1, out
    assert sign in err
    assert "python -m tests.campaigns.fuzz.socket_fuzz --frames 120 --seed 20" in err


def test_a_frame_is_the_same_whichever_was_the_first():
    streams = [Fuzzer(None, 3, first, 10).stream(7) for first in (0, 7)]

    assert streams[0] == streams[1]
