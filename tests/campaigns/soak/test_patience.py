"""Silence is excused by the broker's absence and by waiting for a processor, and by no more than these."""

import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.campaigns.soak import staff
from tests.campaigns.soak.books import Violation
from tests.campaigns.soak.patience import ServedClock, Silence, waited_s
from tests.campaigns.soak.report import Costs
from tests.campaigns.soak.settings import Pace

BROKER, OTHER_BROKER, TELLER = 1, 2, 3
CHECK_S = 0.02


class Machine:
    """Time, and how long each process has waited for a processor."""

    def __init__(self):
        self.now_s = 100.0
        self.waited_s = {BROKER: 5.0, OTHER_BROKER: 7.0, TELLER: 9.0}

    def passes(self, seconds, waited=None):
        self.now_s += seconds
        for pid, seconds_waited in (waited or {}).items():
            self.waited_s[pid] += seconds_waited


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def clock(machine):
    clock = ServedClock(lambda: machine.now_s, lambda pid: machine.waited_s[pid])
    clock.look(BROKER)
    return clock


def test_a_teller_is_silent_since_its_last_step(machine, clock):
    silence = Silence(clock, TELLER)
    machine.passes(4)
    assert silence.seconds(0) == 4
    assert silence.seconds(1) == 0
    machine.passes(3)
    assert silence.seconds(1) == 3


def test_a_silence_is_excused_while_the_broker_is_away(machine, clock):
    silence = Silence(clock, TELLER)
    machine.passes(4)
    with clock.away():
        machine.passes(20)
    machine.passes(5)
    assert silence.seconds(0) == 9
    assert silence.wall_seconds() == 29


def test_a_silence_is_excused_by_as_much_as_broker_and_teller_waited_for_a_processor(machine, clock):
    silence = Silence(clock, TELLER)
    machine.passes(10, {BROKER: 2, TELLER: 3})
    clock.look(BROKER)
    assert silence.seconds(0) == 5


def test_what_was_waited_before_the_last_step_excuses_nothing(machine, clock):
    silence = Silence(clock, TELLER)
    machine.passes(10, {BROKER: 2, TELLER: 3})
    clock.look(BROKER)
    assert silence.seconds(1) == 0
    machine.passes(6)
    clock.look(BROKER)
    assert silence.seconds(1) == 6


def test_what_another_broker_waited_in_its_life_excuses_nothing(machine, clock):
    silence = Silence(clock, TELLER)
    machine.passes(6)
    clock.look(OTHER_BROKER)
    assert silence.seconds(0) == 6


def test_an_unknown_process_has_not_waited():
    assert waited_s(2**30) == 0


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="reads /proc")
def test_the_kernel_counts_how_long_a_process_waits():
    before_s = waited_s(os.getpid())
    assert 0 <= before_s <= waited_s(os.getpid())


def tend_until_violated(tellers):
    while True:
        tellers.tend()
        time.sleep(CHECK_S)


def test_a_teller_that_makes_no_step_is_ended_and_says_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(staff, "MAKES", ("librdkafka",))
    monkeypatch.setattr(staff, "TELLERS_A_MAKE", 1)
    monkeypatch.setitem(staff.HANG_TIMEOUT_S, "librdkafka", 2.0)
    nobody = "127.0.0.1:1"
    with (
        staff.Staff(nobody, tmp_path / "tellers", Random(0), Pace(), ServedClock(), Costs()) as tellers,
        pytest.raises(Violation, match=r"librdkafka.0.1 made no step for \d s, without those"),
    ):
        tend_until_violated(tellers)
    assert "in work\n" in (tmp_path / "tellers" / "librdkafka.0.1.stderr").read_text()
