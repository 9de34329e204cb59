"""``odradek serve`` on a terminal: five aligned lines, and the HTTP port."""

import os
import pty
import re
import subprocess
import sys
from contextlib import contextmanager
from urllib.request import urlopen

from odradek import __version__
from tests.broker_process import command_environment
from tests.clients.groups.observer import wait_until


@contextmanager
def on_a_terminal(*arguments, cwd):
    """The lines that a broker prints on a terminal, up to the last of them."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "odradek", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=follower, stderr=subprocess.PIPE, env=command_environment(), cwd=cwd)
    os.close(follower)
    try:
        with os.fdopen(leader, errors="replace") as stdout:
            lines = []
            while not (lines and lines[-1].startswith("Try")):
                lines.append(stdout.readline().rstrip("\n"))
                assert lines[-1], process.stderr.read()
            yield dict(re.split(r" {2,}", line, maxsplit=1) if "  " in line else line.split(" ", 1) for line in lines)
            process.terminate()
            assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_person_is_told_what_runs_where_and_what_to_try(tmp_path):
    with on_a_terminal("--data-dir", "data", cwd=tmp_path) as told:
        address = told["Kafka"]
        assert list(told) == ["odradek", "Kafka", "Page", "Data", "Try"]
        assert told["odradek"] == __version__
        assert re.fullmatch(r"localhost:\d+", address)
        assert told["Data"] == "./data  (Kafka's own format)"
        assert told["Try"] == f"odradek produce -b {address} orders '{{\"total\": 12}}'     odradek consume -b {address} orders"
        assert re.fullmatch(r"http://localhost:8\d{3}", told["Page"])
        with urlopen(told["Page"], timeout=20) as page:
            assert f"odradek {__version__}" in page.read().decode()


def test_two_brokers_on_a_terminal_have_a_port_each(tmp_path):
    with on_a_terminal("--in-memory", cwd=tmp_path) as first, on_a_terminal("--in-memory", cwd=tmp_path) as second:
        assert first["Page"] != second["Page"]
        assert first["Data"] == "in memory, gone when this stops"
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_was_asked_for_comes_with_its_token(tmp_path):
    with on_a_terminal("--in-memory", "--http-port", "0", cwd=tmp_path) as told:
        assert re.fullmatch(r"http://localhost:\d+/v1  token \S+", told["Control"])


def test_without_http_there_is_no_page(tmp_path):
    with on_a_terminal("--in-memory", "--no-http", cwd=tmp_path) as told:
        assert list(told) == ["odradek", "Kafka", "Data", "Try"]


def test_without_the_page_its_line_is_that_of_the_port(tmp_path):
    with on_a_terminal("--in-memory", "--no-page", cwd=tmp_path) as told:
        assert "Page" not in told
        with urlopen(f"{told['HTTP']}/metrics", timeout=20) as metrics:
            assert metrics.status == 200


def test_the_page_is_opened_in_a_browser(tmp_path, monkeypatch):
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho $1 > {tmp_path}/opened.part && mv {tmp_path}/opened.part {tmp_path}/opened\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    with on_a_terminal("--in-memory", "--open", cwd=tmp_path) as told:
        wait_until((tmp_path / "opened").exists, "the page is opened")
        assert (tmp_path / "opened").read_text().strip() == told["Page"].replace("localhost", "127.0.0.1")
