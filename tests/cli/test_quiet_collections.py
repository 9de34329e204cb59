"""Full garbage collections wait until the broker rests, but not for ever."""

import subprocess
import sys

import pytest

from odradek.cli import process as cli_process
from odradek.cli.process import QuietCollections
from tests.broker_process import command_environment


class Collector:
    """What stands for the module ``gc``."""

    def __init__(self):
        self.count = (0, 0, 0)
        self.frozen = 0
        self.called = []

    def get_count(self):
        return self.count

    def get_freeze_count(self):
        return self.frozen

    def __getattr__(self, name):
        return lambda *arguments: self.called.append(name)


class Process:
    def __init__(self):
        self.is_busy = False
        self.requests = 0
        self.later = []
        QuietCollections(lambda: self.is_busy, lambda: self.requests, lambda _, look: self.later.append(look)).begin()

    def look(self, times=1):
        for _ in range(times):
            (look,) = self.later
            self.later = []
            look()


@pytest.fixture
def collector(monkeypatch):
    found = Collector()
    monkeypatch.setattr(cli_process, "gc", found)
    return found


@pytest.fixture
def process(collector):
    process = Process()
    assert collector.called == ["freeze", "enable", "set_threshold"]
    collector.called = []
    return process


def test_where_little_was_made_nothing_is_collected(process, collector):
    collector.count = (20_000, 4, 0)
    process.look(1_000)
    assert collector.called == []


def test_what_is_left_after_a_collection_is_not_looked_at_again(process, collector):
    collector.count = (0, 0, 4)
    process.look()
    assert collector.called == ["collect", "freeze"]


def test_what_was_set_aside_is_looked_at_again_when_it_has_grown_by_a_quarter(process, collector):
    collector.count = (0, 0, 4)
    collector.frozen = 100_001
    process.look()
    assert collector.called == ["collect", "freeze", "unfreeze", "collect", "freeze"]
    collector.called = []
    collector.frozen = 225_001
    process.look()
    assert collector.called == ["collect", "freeze"]
    collector.frozen = 225_002
    process.look()
    assert collector.called == ["collect", "freeze"] * 2 + ["unfreeze", "collect", "freeze"]


def test_while_clients_ask_that_waits_until_it_has_grown_sixteenfold(process, collector):
    def look():
        process.requests += 1
        process.look()

    collector.count = (0, 0, 4)
    collector.frozen = 100_001
    process.look()
    collector.called = []
    collector.frozen = 1_700_016
    look()
    assert collector.called == ["collect", "freeze"]
    collector.count = (0, 0, 0)
    look()
    assert collector.called == ["collect", "freeze"]
    process.look()
    assert collector.called == ["collect", "freeze", "unfreeze", "collect", "freeze"]
    collector.count = (0, 0, 4)
    collector.frozen = 16 * 1_700_016 + 100_001
    look()
    assert collector.called == ["collect", "freeze", "unfreeze", "collect", "freeze"] * 2


def test_a_cycle_that_was_set_aside_while_it_was_in_use_is_freed():
    program = """
import gc, weakref
from odradek.cli import process
from odradek.cli.process import QuietCollections

class Part:
    pass

later = []
QuietCollections(lambda: False, lambda: 0, lambda _, look: later.append(look)).begin()
part = Part()
part.whole = part
known = weakref.ref(part)
gc.set_threshold(100, 1, gc.get_threshold()[2])
grown = [[number] for number in range(1_000)]
later.pop()()
assert not gc.get_referrers(part)  # it is set aside
del part
grown += [[number] for number in range(10 * process._GROWTH_AT_LEAST)]
later.pop()()
print(known())
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=command_environment())
    assert done.stdout.strip() == "None"


def test_a_collection_waits_for_the_end_of_long_work_but_not_for_ever(process, collector):
    collector.count = (0, 0, 4)
    process.is_busy = True
    process.look(60)
    assert collector.called == []
    process.look()
    assert collector.called == ["collect", "freeze"]
    process.look(60)
    assert collector.called == ["collect", "freeze"]
    process.is_busy = False
    process.look()
    assert collector.called == ["collect", "freeze"] * 2
