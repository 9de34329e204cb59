"""The command in this process, asking a real broker in another."""

import json
import sys

import pytest

from odradek.cli.main import main


@pytest.fixture
def command(monkeypatch, capsys):
    """Run ``odradek`` with these arguments: (exit status, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["odradek", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return exit_.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def ask(command, broker):
    """The same, of the module's broker."""
    return lambda *arguments: command(*arguments, "--bootstrap-server", broker.address)


@pytest.fixture
def ask_json(ask):
    """What ``--json`` says of something that goes well."""

    def run(*arguments):
        status, out, err = ask(*arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def topic(ask_json, new_name):
    """A topic of three partitions."""
    name = new_name()
    ask_json("topics", "create", name, "--partitions", 3)
    return name
