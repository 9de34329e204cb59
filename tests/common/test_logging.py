"""The log on stderr: a JSON object a line, never the broker's undoing."""

import io
import json
import re
import sys

import pytest

from odradek.common.logging import BrokerLogger


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_off_a_terminal_a_line_is_a_json_object_with_its_fields(capsys):
    BrokerLogger().warn("torn tail truncated", topic="orders", bytes=512)
    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "torn tail truncated", "level": "warning", "topic": "orders", "bytes": 512}


def test_on_a_terminal_a_line_is_for_people(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    BrokerLogger().info("data directory", path="/my data")
    BrokerLogger().warn("torn tail truncated")
    info, warning = terminal.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d data directory \(path='/my data'\)", info)
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning: torn tail truncated", warning)


@pytest.mark.parametrize(("no_color", "is_colored"), [("", True), ("1", False)])
def test_a_terminal_has_no_colors_where_nobody_wants_them(monkeypatch, no_color, is_colored):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    BrokerLogger().info("data directory", path="/data")
    assert ("\x1b[" in terminal.getvalue()) is is_colored


def test_an_exception_is_told_with_its_traceback(capsys):
    try:
        int("broken")
    except ValueError as error:
        BrokerLogger().error("a request failed", exception=error, api="FETCH")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["api"]) == ("error", "FETCH")
    assert "ValueError: invalid literal" in line["exception"]


def test_the_log_follows_stderr_where_it_is_put(monkeypatch):
    log = BrokerLogger()
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    log.info("first")
    monkeypatch.setattr(sys, "stderr", second)
    log.info("second")
    assert [json.loads(stream.getvalue())["event"] for stream in (first, second)] == ["first", "second"]


def test_a_log_that_cannot_be_written_is_lost_without_an_error(monkeypatch):
    log = BrokerLogger()
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        log.info("into nothing")


def test_a_value_that_could_draw_on_a_terminal_is_quoted(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    BrokerLogger().warn("closing a connection", peer="127.0.0.1:9", client="a\x1b[2J\n[error] b")
    (line,) = terminal.getvalue().splitlines()
    assert "peer=127.0.0.1:9" in line
    assert "\x1b[2J" not in line


def test_a_value_without_json_is_told_as_it_is_written_in_python(capsys):
    BrokerLogger().info("data", raw=b"\x00", names={"one"})
    line = json.loads(capsys.readouterr().err)
    assert (line["raw"], line["names"]) == (repr(b"\x00"), "{'one'}")
