"""A broker in process leaves no thread, no socket and no file."""

import subprocess
import sys

import pytest

from tests.broker_process import command_environment
from tests.testing.test_socketless import BACKGROUNDS


def left(ending, background, directory):
    """What tests.testing.left_open prints."""
    command = [sys.executable, "-m", "tests.testing.left_open", ending, background, str(directory)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=command_environment()).stdout.strip()


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_hundred_brokers_leave_no_thread_no_socket_and_no_file(tmp_path, background, ending):
    assert left(ending, background, tmp_path) == "[]"


def test_what_a_broker_leaves_is_found(tmp_path):
    assert str(tmp_path) in left("nothing", "inline", tmp_path)


def test_brokers_without_a_loop_leave_no_loop_open(tmp_path):
    assert left("stop", "no-loop", tmp_path) == "[]"
