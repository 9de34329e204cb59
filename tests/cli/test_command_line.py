"""What can be said on the command line, and how mistakes are told."""

import pytest

from odradek.build import description
from odradek.cli import serve


@pytest.fixture
def served(monkeypatch):
    """What ``serve`` is asked for, instead of a broker."""
    calls = []
    monkeypatch.setattr(serve, "run", lambda options: calls.append(options) or 0)
    return calls


def test_the_version_is_printed(command):
    assert command("--version") == (0, f"odradek {description()}\n", "")


def test_without_a_command_the_help_goes_to_stderr_with_status_2(command):
    status, out, err = command()
    assert (status, out) == (2, "")
    assert "serve" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "70000"),
        ("serve", "--port", "http"),
        ("serve", "--set", "num.partitions"),
        ("serve", "--set", "=3"),
        ("serve", "--nonsense"),
        ("serve", "surplus"),
        ("broker",),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_status_2(command, served, arguments):
    status, out, err = command(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("odradek: ")
    assert served == []


def test_settings_are_split_at_their_first_equals_sign(command, served):
    command("serve", "--set", "log.dir=/tmp/a=b", "--set", " broker.rack = west ")
    assert served[0].settings == {"log.dir": "/tmp/a=b", "broker.rack": "west"}


def test_the_later_of_two_settings_of_a_key_counts(command, served):
    command("serve", "--set", "num.partitions=1", "--set", "num.partitions=2")
    assert served[0].settings == {"num.partitions": "2"}


def test_the_status_of_serve_is_the_status_of_the_command(command, monkeypatch):
    monkeypatch.setattr(serve, "run", lambda _: 2)
    assert command("serve")[0] == 2


def test_a_wrong_command_is_told_the_one_it_resembles(command):
    assert command("topcs", "list") == (2, "", "odradek: there is no command topcs; did you mean topics?\n")
    assert command("zzz") == (2, "", "odradek: there is no command zzz; odradek --help lists them\n")


def test_a_shell_completes_commands_and_options(command, monkeypatch):
    monkeypatch.setenv("_ODRADEK_COMPLETE", "bash_complete")
    for words, expected in (("odradek cons", "plain,consume"), ("odradek topics de", "plain,delete-records")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        status, out, _ = command()
        assert (status, expected in out.split()) == (0, True)
