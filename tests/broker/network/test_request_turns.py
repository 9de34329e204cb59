"""Turns of connections with requests to begin: who goes when, and for how long. Then the same of connections themselves."""

import pytest

from odradek.broker.network.request_limits import ROUND_MS, SLICE_MS, TURN_MS, RequestTurns
from tests.broker.network.test_connection import FakeDispatcher, Setup, send

pytestmark = pytest.mark.interpreted


class Loop:
    """The next turns of an event loop, a clock that requests move, and the requests that began."""

    def __init__(self):
        self.now_ms = 0.0
        self.begun = []
        self.soon = []
        self.turns = RequestTurns(lambda: self.now_ms, self.soon.append)

    def turn(self):
        """One turn; what began in it."""
        self.begun.clear()
        due, self.soon[:] = self.soon[:], []
        for callback in due:
            callback()
        return list(self.begun)


class Client:
    """A connection with so many requests, each of which takes ``request_ms``."""

    def __init__(self, loop, name, requests=0, request_ms=0.25):
        self.loop = loop
        self.name = name
        self.requests = requests
        self.request_ms = request_ms
        self.during = None
        self.served_ms = 0.0
        self.asks_little = False
        self.waits_for_turn = False

    def send(self, requests):
        self.requests += requests
        return self.loop.turns.ask(self, self.loop.now_ms)

    def take_turn(self, until_ms):
        while self.requests:
            self.requests -= 1
            self.loop.begun.append(self.name)
            self.loop.now_ms += self.request_ms
            if self.during is not None:
                self.during()
            if self.loop.now_ms >= until_ms:
                return self.requests > 0
        return False


@pytest.fixture
def loop():
    return Loop()


def test_requests_begin_when_they_come(loop):
    assert Client(loop, "one").send(3)
    assert loop.begun == ["one"] * 3
    assert loop.turn() == []
    assert loop.soon == []


def test_who_is_alone_has_the_whole_turn(loop):
    Client(loop, "one").send(1_000)
    assert len(loop.begun) * 0.25 == TURN_MS
    assert len(loop.turn()) * 0.25 == TURN_MS


def test_all_that_comes_in_one_turn_has_no_more_time_than_one(loop):
    clients = [Client(loop, name, request_ms=TURN_MS / 2) for name in range(50)]
    assert [client.send(1) for client in clients] == [True] * 2 + [False] * 48
    assert loop.turn() == [2, 3]


def test_those_that_wait_have_a_slice_each_in_turns(loop):
    clients = [Client(loop, name) for name in range(3)]
    for client in clients:
        client.send(100)
    slice_of_requests = int(SLICE_MS / 0.25)
    began = loop.turn() + loop.turn()
    slices = began[::slice_of_requests]
    assert began == [name for name in slices for _ in range(slice_of_requests)]
    assert {slices.count(name) for name in range(3)} <= {2, 3}


def test_a_round_takes_no_longer_for_hundreds(loop):
    clients = [Client(loop, name, request_ms=0.01) for name in range(200)]
    for client in clients:
        client.send(10_000)
    began_ms = loop.now_ms
    # The first one had a turn to itself.
    seen = {0}
    while len(seen) < 200:
        seen.update(loop.turn())
    assert loop.now_ms - began_ms < 2 * ROUND_MS


def test_who_was_idle_is_behind_nobodys_backlog(loop):
    idle = Client(loop, "idle", request_ms=0.01)
    idle.send(1)
    flooders = [Client(loop, name) for name in range(50)]
    for client in flooders:
        client.send(3_000)
    while any(client.requests == 3_000 for client in flooders):
        loop.turn()
    for _ in range(20):
        assert not idle.send(1)
        assert loop.turn()[0] == "idle"


def test_who_asks_for_little_is_behind_no_crowd_of_new_connections(loop):
    light = Client(loop, "light", request_ms=0.01)
    light.send(1)
    crowd = [Client(loop, name, request_ms=TURN_MS) for name in range(100)]
    for client in crowd:
        client.send(1)
    loop.turn()
    assert not light.send(1)
    assert loop.turn()[0] == "light"


def test_who_takes_long_for_each_request_goes_behind_the_others(loop):
    heavy = [Client(loop, name, request_ms=5 * TURN_MS) for name in range(10)]
    light = Client(loop, "light", request_ms=0.01)
    for client in heavy:
        client.send(2)
    while any(client.requests == 2 for client in heavy):
        loop.turn()
    for _ in range(5):
        light.send(1)
        began = loop.turn()
        assert began[0] == "light"
        for name in began[1:]:
            heavy[name].send(1)


def test_a_long_request_is_a_debt_of_one_slice(loop):
    others = [Client(loop, name) for name in range(9)]
    slow = Client(loop, "slow", request_ms=100)
    slow.send(1)
    slow.request_ms = 0.25
    for client in others:
        client.send(3_000)
    slow.send(1)
    began_ms = loop.now_ms
    while "slow" not in loop.turn():
        pass
    assert loop.now_ms - began_ms <= ROUND_MS + SLICE_MS


def test_what_another_request_brings_about_waits_for_the_next_turn(loop):
    first, second = Client(loop, "first"), Client(loop, "second")
    first.during = lambda: second.send(1)
    first.send(1)
    assert loop.begun == ["first"]
    assert loop.turn() == ["second"]


def test_under_a_clock_that_stands_still_everything_begins_at_once(loop):
    assert Client(loop, "one", request_ms=0).send(10_000)
    assert len(loop.begun) == 10_000


class SlowDispatcher(FakeDispatcher):
    """Takes half a millisecond for each request."""

    def dispatch(self, frame, session, arrived_ms):
        self.clock.advance(0.5)
        return super().dispatch(frame, session, arrived_ms)


class FloodedSetup(Setup):
    """Its loop turns when the test says so."""

    def __init__(self):
        super().__init__()
        self.dispatcher = SlowDispatcher()
        self.dispatcher.clock = self.clock
        self.soon = []
        self.registry.turns = RequestTurns(self.clock.monotonic_ms, self.soon.append)

    def turn(self):
        due, self.soon[:] = self.soon[:], []
        for callback in due:
            callback()


@pytest.fixture
def flooded():
    """A connection that has sent 300 requests, and its broker."""
    setup = FloodedSetup()
    connection, transport = setup.connect()
    send(connection, *[b"flood%3d" % number for number in range(300)])
    return setup, connection, transport


def test_a_flood_is_not_read_while_its_requests_wait(flooded):
    setup, connection, transport = flooded
    assert len(setup.dispatcher.seen) == TURN_MS / 0.5
    assert not transport.reading
    assert connection.is_busy


def test_a_flood_is_answered_in_order_and_whole(flooded):
    setup, _, transport = flooded
    while setup.soon:
        setup.turn()
    assert transport.sent == b"".join(b"flood%3d" % number for number in range(300))
    assert transport.reading


def test_another_clients_request_begins_in_the_next_turn(flooded):
    setup, _, _ = flooded
    other, transport = setup.connect(("10.0.0.2", 6))
    send(other, b"anything")
    setup.turn()
    assert transport.sent == b"anything"
    assert setup.dispatcher.seen.index(b"anything") == TURN_MS / 0.5


def test_a_client_that_floods_and_sends_no_more_is_answered_whole(flooded):
    setup, connection, transport = flooded
    assert connection.eof_received()
    while setup.soon:
        setup.turn()
    assert len(transport.sent) == 2_400
    assert transport.closed


def test_a_flood_whose_connection_is_lost_is_forgotten(flooded):
    setup, connection, _ = flooded
    seen = len(setup.dispatcher.seen)
    connection.connection_lost(None)
    while setup.soon:
        setup.turn()
    assert len(setup.dispatcher.seen) == seen


def test_nothing_begins_behind_a_malformed_request_far_back_in_a_flood():
    setup = FloodedSetup()
    connection, transport = setup.connect()
    send(connection, *[b"aaaaaaaa"] * 150, b"mmmmmmmm", *[b"bbbbbbbb"] * 150)
    while setup.soon:
        setup.turn()
    assert transport.sent == b"aaaaaaaa" * 150
    assert transport.closed
    assert b"bbbbbbbb" not in setup.dispatcher.seen


def test_a_length_that_cannot_be_far_back_in_a_flood_closes_behind_the_answers():
    setup = FloodedSetup()
    connection, transport = setup.connect()
    data = b"\0\0\0\x08aaaaaaaa" * 150 + b"\xff\xff\xff\xff"
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))
    while setup.soon:
        setup.turn()
    assert transport.sent == b"aaaaaaaa" * 150
    assert transport.closed
