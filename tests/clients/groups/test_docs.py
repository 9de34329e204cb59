"""The page on groups is a program: its example prints what it says, and its commands answer what it shows."""

import re
import shlex
import subprocess
import sys

from tests.broker_process import command_environment
from tests.project.documents import DOCS, code_blocks

PAGE = DOCS / "groups.md"
DOCUMENTED_ADDRESS = "127.0.0.1:9092"


def run(*arguments):
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=command_environment(), timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(console):
    """(command, what it prints) for each line with a $ in a console block."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def words(printed, address):
    """Columns are as wide as what is in them, and the broker is at another address than the documented one."""
    return [line.replace(address, DOCUMENTED_ADDRESS).split() for line in printed.splitlines() if line]


def test_the_example_and_the_commands_print_what_the_page_says(broker_process):
    address = broker_process().address
    example = "\n".join(code_blocks(PAGE, "python"))
    assert DOCUMENTED_ADDRESS in example
    assert run("-c", example.replace(DOCUMENTED_ADDRESS, address)) == "".join(code_blocks(PAGE, "text"))
    # The others show share groups, whose members are not in this example.
    console, *_ = code_blocks(PAGE, "console")
    for command, shown in answers(console):
        name, *arguments = shlex.split(command)
        assert name == "odradek"
        printed = run("-m", "odradek", *arguments, "--bootstrap-server", address)
        assert words(printed, address) == words(shown, address), printed
