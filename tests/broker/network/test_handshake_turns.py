"""The turns of handshakes, and clients that come by the hundred at once."""

import os
import signal
import socket
import ssl

import pytest

from benchmarks.ports import free_ports
from odradek.broker.network.handshake_turns import MOST_UNDER_WAY, STEPS_A_TURN, HandshakeTurns
from odradek.protocol.api_keys import ApiKey
from tests.raw_client import RawClient
from tests.tls import TlsClient


class Loop:
    """The next turns of an event loop, and who took steps in each."""

    def __init__(self):
        self.soon = []
        self.steps = []
        self.turns = HandshakeTurns(self.soon.append)

    def turn(self):
        self.steps.clear()
        due, self.soon[:] = self.soon[:], []
        for callback in due:
            callback()
        return list(self.steps)


class End:
    def __init__(self, loop, name):
        self.loop = loop
        self.name = name
        self.has_given_way = False

    def take_step(self):
        self.loop.steps.append(self.name)

    def give_way(self):
        self.has_given_way = True
        self.loop.turns.over(self)


@pytest.fixture
def loop():
    return Loop()


def test_one_that_comes_alone_is_served_at_once(loop):
    loop.turns.ask(End(loop, "one"))
    assert loop.steps == ["one"]
    assert loop.turn() == []
    assert loop.soon == []


def test_those_that_come_together_take_turns_in_their_order(loop):
    for number in range(10):
        loop.turns.ask(End(loop, number))
    assert loop.steps == [0]
    assert [loop.turn() for _ in range(4)] == [[1, 2, 3, 4], [5, 6, 7, 8], [9], []]
    assert STEPS_A_TURN == 4


def test_one_that_has_begun_goes_before_those_that_have_not(loop):
    first = End(loop, "first")
    loop.turns.ask(first)
    for number in range(10):
        loop.turns.ask(End(loop, number))
    loop.turns.ask(first)
    assert loop.turn() == ["first", 0, 1, 2]


def test_the_oldest_gives_way_to_one_too_many_and_one_that_is_over_does_not_count(loop):
    ends = [End(loop, number) for number in range(MOST_UNDER_WAY + 2)]
    for end in ends[:MOST_UNDER_WAY]:
        loop.turns.ask(end)
        loop.turn()
    loop.turns.over(ends[0])
    loop.turns.ask(ends[-2])
    assert not any(end.has_given_way for end in ends)
    loop.turn()
    loop.turns.ask(ends[-1])
    assert [end.name for end in ends if end.has_given_way] == [1]


def test_a_thousand_clients_at_once_hold_up_nobody_and_leave_little_behind(broker_process, certificates):
    (plain_port,) = free_ports(1)
    listeners = {"listeners": f"SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:{plain_port}", "socket.listen.backlog.size": 3000}
    broker = broker_process(settings={**listeners, **certificates.settings()})
    context = certificates.client_context()
    to_broker = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), to_broker, server_hostname="localhost").do_handshake()
    hello = to_broker.read()
    half_open = []
    try:
        with RawClient(broker.host, plain_port) as plain:
            place = (broker.host, broker.port)
            half_open += [socket.create_connection(place) for _ in range(MOST_UNDER_WAY + 500)]
            plain.call(ApiKey.API_VERSIONS, 0)
            os.kill(broker.pid, signal.SIGSTOP)
            for each in half_open:
                each.sendall(hello)
            os.kill(broker.pid, signal.SIGCONT)
            answered = 0
            # The first to give way is the first that came, when all others have begun.
            half_open[0].setblocking(False)
            while not _is_closed(half_open[0]):
                plain.call(ApiKey.API_VERSIONS, 0)
                answered += 1
        with TlsClient(broker, context) as client:
            assert client.call(ApiKey.API_VERSIONS, 0).error_code == 0
    finally:
        for each in half_open:
            each.close()
    # A thousand steps take 250 turns of the loop, each of which serves the other client.
    assert answered > 50
    assert "too many other handshakes" in broker.stderr


def _is_closed(connection):
    try:
        return connection.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
