"""What goes wrong in a fetch that waits is the fetch's own trouble."""

import pytest

from odradek.broker.replica.delayed_fetch import DelayedFetch
from odradek.timing.clock import VirtualClock
from odradek.timing.purgatory import Purgatory
from odradek.timing.timer import Timer

pytestmark = pytest.mark.interpreted


class Read:
    def __init__(self):
        self.outcome = lambda: False

    def has_enough(self):
        return self.outcome()


def _fail():
    raise ZeroDivisionError


def _waiting(read):
    clock = VirtualClock()
    purgatory = Purgatory("Fetch", Timer(clock))
    answers = []
    operation = DelayedFetch(clock.monotonic_ms() + 500, read, lambda: answers.append(clock.monotonic_ms()))
    purgatory.try_complete_else_watch(operation, ["partition"])
    return clock, purgatory, answers


def test_a_try_that_fails_is_answered_at_once_and_not_raised_at_the_producer(capsys):
    read = Read()
    _, purgatory, answers = _waiting(read)
    read.outcome = _fail
    assert purgatory.check_and_complete("partition") == 1
    assert answers == [0]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_it_is_answered_when_there_is_enough_or_time_is_up():
    read = Read()
    clock, purgatory, answers = _waiting(read)
    assert purgatory.check_and_complete("partition") == 0
    clock.advance(500)
    assert answers == [500]
    assert purgatory.expired == 1
