"""A loop that looks again instead of sleeping, for as long as that pays."""

import pytest

from odradek.broker.network.event_loop import BusyPoll
from odradek.broker.network.response_queue import Outbox
from odradek.timing.clock import VirtualClock

WINDOW_MS = 10


class Bed:
    """``soon`` is what the loop was asked to run before it would sleep."""

    def __init__(self):
        self.clock = VirtualClock()
        self.soon = []
        self.poll = BusyPoll(self.soon.append, self.clock, WINDOW_MS, Outbox())

    @property
    def sleeps(self):
        return not self.soon

    def turn(self):
        """One turn of the loop, in which nothing comes."""
        callbacks, self.soon[:] = self.soon[:], []
        for callback in callbacks:
            callback()

    def request(self, after_ms):
        """A client's bytes come ``after_ms`` after the last were handled, and are handled at once."""
        for _ in range(after_ms):
            self.clock.advance(1)
            self.turn()
        self.poll.arrived(self.clock.monotonic_ms())
        self.turn()


@pytest.fixture
def bed():
    return Bed()


def test_a_loop_that_was_never_asked_for_anything_sleeps(bed):
    bed.turn()
    assert bed.sleeps


def test_one_request_or_two_do_not_keep_it_awake(bed):
    bed.request(0)
    bed.request(1)
    assert bed.sleeps


def test_a_client_that_comes_back_at_once_finds_it_awake(bed):
    for _ in range(5):
        bed.request(WINDOW_MS)
    assert not bed.sleeps
    bed.request(WINDOW_MS)
    assert not bed.sleeps
    assert bed.poll.polls > WINDOW_MS


def test_it_sleeps_when_the_window_is_over(bed):
    for _ in range(5):
        bed.request(1)
    for _ in range(WINDOW_MS):
        bed.clock.advance(1)
        bed.turn()
        assert not bed.sleeps
    bed.clock.advance(1)
    bed.turn()
    assert bed.sleeps


def test_clients_at_longer_intervals_find_it_asleep(bed):
    for _ in range(100):
        bed.request(WINDOW_MS + 1)
        assert bed.sleeps
    assert bed.poll.polls == 0


def test_one_long_gap_among_many_short_ones_is_forgiven(bed):
    for _ in range(20):
        bed.request(1)
    bed.request(WINDOW_MS + 5)
    assert not bed.sleeps


def test_where_as_many_gaps_are_long_as_short_it_sleeps(bed):
    for _ in range(20):
        bed.request(1)
    for _ in range(20):
        bed.request(WINDOW_MS + 5)
        bed.request(1)
    assert bed.sleeps
    before = bed.poll.polls
    for _ in range(20):
        bed.request(WINDOW_MS + 5)
        bed.request(1)
    assert bed.poll.polls == before


def test_what_many_clients_send_in_one_turn_is_one_gap(bed):
    bed.request(0)
    for _ in range(50):
        bed.poll.arrived(bed.clock.monotonic_ms())
    assert len(bed.soon) == 1
    bed.turn()
    assert bed.sleeps


def test_the_gap_begins_when_all_has_been_handled(bed):
    for _ in range(6):
        bed.poll.arrived(bed.clock.monotonic_ms())
        # The handling itself takes longer than the window.
        bed.clock.advance(WINDOW_MS * 3)
        bed.turn()
        bed.clock.advance(1)
    assert not bed.sleeps
