"""What goes wrong in a fetch that waits is the fetch's own trouble."""

from types import SimpleNamespace

import pytest

from odradek.broker.replica.delayed_fetch import DelayedFetch
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Purgatory, Timer

pytestmark = pytest.mark.interpreted


def test_a_try_that_fails_is_answered_at_once_and_not_raised_at_the_producer(capsys):
    clock, answers = VirtualClock(), []
    read = SimpleNamespace(has_enough=lambda: False)
    purgatory = Purgatory("Fetch", Timer(clock))
    operation = DelayedFetch(clock.monotonic_ms() + 500, read, lambda: answers.append(clock.monotonic_ms()))
    purgatory.try_complete_else_watch(operation, ["partition"])
    read.has_enough = lambda: 1 // 0
    assert purgatory.check_and_complete("partition") == 1
    assert answers == [0]
    assert "ZeroDivisionError" in capsys.readouterr().err
