"""``odradek cluster`` as a process: started, asked from outside, and ended by a signal."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.broker_process import STOP_TIMEOUT_S, command_environment

START_TIMEOUT_S = 30.0
STAND_IN = str(Path(__file__).with_name("stand_in.py"))


class ClusterProcess:
    """``program`` is what Python runs: the command, or its stand-in. Without ``data_dir`` the directory is a temporary one."""

    def __init__(self, scratch, *arguments, data_dir=None, program=("-m", "odradek")):
        self.diary = scratch / "diary"
        self.data_dir = data_dir
        self._program = program
        self._temporary = scratch / "tmp"
        self._temporary.mkdir(exist_ok=True)
        place = ("--data-dir", data_dir) if data_dir else ()
        self.process = subprocess.Popen(
            [sys.executable, *program, "cluster", "--port", "0", *map(str, (*place, *arguments))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
        )
        self.ready_line = ""

    def wait_ready(self):
        """Read the ready line."""
        readable, _, _ = select.select([self.process.stdout], [], [], START_TIMEOUT_S)
        self.ready_line = self.process.stdout.readline() if readable else ""
        assert self.ready_line.startswith("odradek cluster ready on "), (self.ready_line, self.end(signal.SIGKILL))
        return self

    @property
    def addresses(self):
        return self.ready_line.removeprefix("odradek cluster ready on ").strip().split(",")

    def ask(self, *arguments):
        """Another ``odradek cluster``: (status, stdout, stderr)."""
        place = ("--data-dir", str(self.data_dir)) if self.data_dir else ()
        command = [sys.executable, "-m", "odradek", "cluster", *map(str, arguments), *place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False, env=self._environment())
        return done.returncode, done.stdout, done.stderr

    def nodes(self):
        """What ``status`` says, by node."""
        status, out, err = self.ask("status", "--json")
        assert status == 0, err
        return {row["node"]: row for row in json.loads(out)}

    def end(self, number):
        """Send a signal, and wait for the end: (status, what was said on stdout and stderr meanwhile)."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=STOP_TIMEOUT_S)
        return self.process.returncode, out, err

    def close(self):
        """Leave nothing behind, whatever the test has done: nodes end with the command."""
        self.process.kill()
        self.process.communicate()

    def said(self):
        """The diary's lines."""
        return self.diary.read_text().splitlines()

    def _environment(self):
        return command_environment() | {"STAND_IN_DIARY": os.fspath(self.diary), "TMPDIR": os.fspath(self._temporary)}


def is_alive(pid):
    """Whether there is such a process; one that has ended and is not reaped is none."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
