"""The examples of docs/commands.md, run in a shell one after the other, print what the page says."""

import subprocess
import sys

import pytest

from odradek.cli.main import command
from odradek.cli.profiles import read_profile
from tests.broker_process import command_environment
from tests.project.documents import DOCS, code_blocks, table

PAGE = DOCS / "commands.md"


def examples():
    """(command, output) of each example, in order."""
    found = []
    for line in "".join(code_blocks(PAGE, "console")).splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def run(address, directory):
    """Run the examples against a broker: (command, output) of each."""
    environment = {**command_environment(), "ODRADEK_BOOTSTRAP": address, "XDG_CONFIG_HOME": str(directory)}
    define = f'odradek() {{ "{sys.executable}" -m odradek "$@"; }}\n'
    printed = []
    for line, _ in examples():
        shell = subprocess.run(
            ["bash", "-c", define + line],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        printed.append((line, shell.stdout))
    return printed


@pytest.mark.timeout(120)
def test_each_example_prints_what_the_page_says(broker_process, tmp_path):
    assert run(broker_process().address, tmp_path) == examples()


def test_the_profiles_of_the_page_are_valid(tmp_path):
    [text] = code_blocks(PAGE, "toml")
    (tmp_path / "profiles.toml").write_text(text)
    profiles = {name: read_profile(tmp_path / "profiles.toml", name) for name in (None, "production", "staging")}
    assert profiles[None].bootstrap == "localhost:9092"
    assert profiles["production"].properties["security.protocol"] == "SASL_SSL"
    assert profiles["staging"].command_config.name == "staging.properties"


def test_each_command_of_the_table_is_there():
    rows = table(PAGE, "task", "Kafka's script", "kcat", "rpk", "odradek")
    context = command.make_context("odradek", [], resilient_parsing=True)
    words = [cell.split() for row in rows for cell in row["odradek"].split("`")[1::2] if cell.startswith("odradek ")]
    assert [line for line in words if command.get_command(context, line[1]) is None] == []
    assert len(words) > 10
