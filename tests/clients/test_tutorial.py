"""The tutorial runs as its reader would: commands in one shell, Python in another, and each prints what the page shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.ports import free_ports
from tests.broker_process import command_environment
from tests.project.documents import DOCS

_BLOCK = re.compile(r"^```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "--- done ---"


class _Session:
    """A program that reads commands from its standard input, one after the other."""

    def __init__(self, command: list[str], end: str, directory: Path) -> None:
        environment = command_environment() | {"PATH": f"{directory}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
        self._end = end
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=directory,
            env=environment,
        )

    def say(self, text: str, last_line: str = _END) -> str:
        """Type ``text``, and return what it prints up to a line that begins with ``last_line``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{text}\n{self._end if last_line == _END else ''}\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line.startswith(_END):
                break
            printed.append(line)
            if line.startswith(last_line):
                break
        return "".join(printed)

    def close(self) -> None:
        self._process.communicate(timeout=30)


# The page's commands ask the broker on the default port.
_COMMAND = """\
#!/bin/sh
test "$1" = serve || set -- "$@" --bootstrap-server 127.0.0.1:{port}
exec {python} -m odradek "$@"
"""


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def sessions(tmp_path: Path, port: int) -> Iterator[tuple[_Session, _Session]]:
    command = tmp_path / "odradek"
    command.write_text(_COMMAND.format(port=port, python=sys.executable))
    command.chmod(0o755)
    shell = _Session(["bash"], f"echo '{_END}'", tmp_path)
    python = _Session([sys.executable, "-i", "-q", "-u"], f"print('{_END}')", tmp_path)
    yield shell, python
    shell.say("kill -9 $(jobs -p)")
    shell.close()
    python.close()


def _words(printed: str) -> list[list[str]]:
    """The words of each line: columns are as wide as what is in them."""
    return [line.split() for line in printed.splitlines() if line]


def _run(shell: _Session, console: str) -> None:
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("pip install"):
            continue
        ready = "odradek ready" if command.endswith("&") else _END
        printed = shell.say(command, ready)
        assert _words(printed) == _words(shown), (command, printed)


@pytest.mark.timeout(120)
def test_the_tutorial_prints_what_it_shows(sessions: tuple[_Session, _Session], port: int) -> None:
    shell, python = sessions
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8").replace("9092", str(port))
    printed = ""
    shown = 0
    for language, block in _BLOCK.findall(page):
        if language == "console":
            _run(shell, block)
        elif language == "python":
            printed = python.say(block)
        else:
            assert printed == block
            shown += 1
    assert shown == page.count("print(")
