"""The line that tells how far a command has come."""

import io
import sys

import pytest

from odradek.cli.progress import Progress
from odradek.timing.clock import VirtualClock


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture
def clock():
    return VirtualClock()


def test_it_is_shown_once_a_second_and_removed_at_the_end(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    progress = Progress(clock, is_shown=True)
    for _ in range(4):
        clock.advance(500)
        progress.add(1000)
    progress.end()
    progress.end()
    clear = "\r\x1b[K"
    assert terminal.getvalue() == f"{clear}2,000 records, 2,000 a second{clear}4,000 records, 2,000 a second{clear}"


@pytest.mark.parametrize(("stderr", "is_shown"), [(io.StringIO(), True), (Terminal(), False)])
def test_nothing_is_shown_to_files_or_among_records(clock, monkeypatch, stderr, is_shown):
    monkeypatch.setattr(sys, "stderr", stderr)
    progress = Progress(clock, is_shown=is_shown)
    clock.advance(5000)
    progress.add(1)
    progress.end()
    assert stderr.getvalue() == ""
