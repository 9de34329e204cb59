"""``odradek serve`` where ``process.roles`` is controller: its one line, its exit status, and what it leaves on disk."""

import subprocess
import sys

import pytest

from tests.broker_process import BrokerProcess, command_environment

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "4",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:0",
}


def serve(directory, *arguments, **settings):
    told = [word for name, value in (CONTROLLER | settings).items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, *BrokerProcess.program, "serve", "--data-dir", str(directory), *told, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=command_environment())


@pytest.fixture
def running(tmp_path):
    process = serve(tmp_path / "data")
    yield process
    process.kill()
    process.communicate()


def refused(process):
    """Its one line, of a process that could not start."""
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (2, "")
    assert len(stderr.splitlines()) == 1
    return stderr


def test_it_says_where_brokers_can_come_and_stops_in_good_order(running, tmp_path):
    line = running.stdout.readline()
    assert line.startswith("odradek controller ready on 127.0.0.1:")
    running.terminate()
    stdout, _ = running.communicate(timeout=30)
    assert (running.returncode, stdout) == (0, "")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_directory_or_a_port_that_is_taken_is_told(running, tmp_path):
    port = running.stdout.readline().rpartition(":")[2].strip()
    assert str(tmp_path / "data") in refused(serve(tmp_path / "data"))
    assert "in use" in refused(serve(tmp_path / "other", listeners=f"CONTROLLER://127.0.0.1:{port}"))
    assert not (tmp_path / "other").exists()


def test_a_brokers_flags_are_refused(tmp_path):
    line = refused(serve(tmp_path / "data", "--http-port", "0", "--topic", "orders"))
    assert "--http-port, --topic: these are for a broker, but process.roles is controller" in line
    assert not (tmp_path / "data").exists()
