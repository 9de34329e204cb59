"""A process that transforms one record, as ``transformer`` does in Python, and programs of other languages do."""

import signal
import subprocess
import sys
from contextlib import ExitStack

from tests.broker_process import command_environment

END_TIMEOUT_S = 30.0


def python_program(make: str) -> list[str]:
    """The command line of ``transformer`` up to its name."""
    return [sys.executable, "-m", "tests.clients.transformer", make]


class TransformerProcess:
    """The process of a command line, killed at the end of the ``stack`` if it still runs."""

    def __init__(self, stack: ExitStack, command: list[str]) -> None:
        self._process = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=command_environment())
        )
        stack.callback(self._process.kill)

    def wait_for_its_step(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "waits\n"

    def freeze_where_it_waits(self) -> None:
        self.wait_for_its_step()
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def go_on(self) -> None:
        """Let it do its step."""
        assert self._process.stdin is not None
        self._process.stdin.write("go on\n")
        self._process.stdin.flush()

    def run_to_its_end(self) -> str:
        """Let it do its step, and return the last word it said."""
        said, _ = self._process.communicate("go on\n", END_TIMEOUT_S)
        return said.split()[-1]
