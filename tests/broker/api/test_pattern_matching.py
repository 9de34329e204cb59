"""Patterns that take long do so in a thread, for a while, and find what they would find at once."""

import pytest

from odradek.broker.api import pattern_matching
from odradek.broker.api.pattern_matching import matching
from odradek.broker.replica.inspections import Inspections
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.patterns import compile_pattern
from odradek.testing import SocketlessBroker
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock

LABORIOUS = "(a|b)*a(a|b){500}"
NAMES = ["a" * 1_000, "b" * 1_000, "a" * 400, "c"]


class Threads(Inspections):
    """Counts what it is given to do."""

    runs = 0

    def run(self, inspect, then, client=None):
        self.runs += 1
        super().run(inspect, then, client)


def find(pattern, names, clock=None):
    threads = Threads(InlineBackground())
    outcome = matching(compile_pattern(pattern, 1024), names, str, threads, clock or VirtualClock()).response
    return outcome, threads.runs


@pytest.mark.parametrize(("pattern", "runs"), [("a+", 0), (LABORIOUS, 1)])
def test_a_match_that_may_be_long_is_made_in_a_thread(pattern, runs):
    found, ran = find(pattern, NAMES)
    assert (found, ran) == ([name for name in NAMES if set(name) == {"a"} and (runs == 0 or len(name) > 500)], runs)


def test_a_match_is_given_up_after_a_while():
    class Hasty(VirtualClock):
        def monotonic_ms(self):
            self._monotonic_ms += pattern_matching._MOST_MS / 2
            return self._monotonic_ms

    outcome, _ = find(LABORIOUS, NAMES, Hasty())
    assert isinstance(outcome, KafkaError)
    assert outcome.code == ErrorCode.REQUEST_TIMED_OUT


async def test_a_broker_that_stops_gives_up_its_matches():
    async with SocketlessBroker() as broker:
        reply = matching(
            compile_pattern("(a|b)*a(a|b){1000}", 1024),
            ["a" * 30_000] * 10_000,
            str,
            broker.core.pattern_matches,
            broker.core.clock,
        )
        assert not reply.done
    assert isinstance(reply.response, KafkaError)
    assert reply.response.code != ErrorCode.REQUEST_TIMED_OUT
