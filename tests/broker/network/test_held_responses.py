"""A connection's large response: its memory is held until the client, or the kernel, has it."""

import pytest

from tests.broker.network.test_connection import Setup, send

pytestmark = pytest.mark.interpreted


class Held:
    def __init__(self, session):
        self.session = session
        self.is_held = True
        session.held_response = self

    def release(self):
        self.is_held = False
        self.session.held_response = None


class Responses:
    """What is asked for those that leave theirs untaken."""

    def __init__(self, *sessions):
        self.sessions = frozenset(sessions)

    def stalled(self):
        return self.sessions


@pytest.fixture
def setup():
    return Setup()


@pytest.fixture
def client(setup):
    return setup.connect()


def test_it_is_let_go_of_when_it_was_sent(setup, client):
    connection, transport = client
    send(connection, b"wwwwwwww")
    held = Held(connection.session)
    setup.dispatcher.waiting.pop()()
    assert transport.sent == b"wwwwwwww"
    assert not held.is_held


def test_it_is_kept_while_another_request_comes(setup, client):
    connection, _ = client
    send(connection, b"wwwwwwww")
    held = Held(connection.session)
    send(connection, b"aaaaaaaa")
    assert held.is_held


def test_it_is_kept_while_the_socket_is_full(setup, client):
    connection, _ = client
    send(connection, b"wwwwwwww")
    held = Held(connection.session)
    connection._writer.queue.append(b"not taken yet")
    setup.dispatcher.waiting.pop()()
    assert held.is_held
    connection._writer.queue.clear()
    connection._on_drained()
    assert not held.is_held


def test_it_is_let_go_of_when_the_connection_is_lost(client):
    connection, _ = client
    send(connection, b"wwwwwwww")
    held = Held(connection.session)
    connection.connection_lost(None)
    assert not held.is_held


def test_a_connection_that_leaves_it_untaken_while_others_wait_is_closed(setup, client, capsys):
    connection, transport = client
    other, other_transport = setup.connect(("10.0.0.2", 6))
    setup.registry.response_memory = Responses(connection.session)
    transport.queued = 1_000
    setup.clock.advance(10_000)
    assert transport.closed
    assert not other_transport.closed
    assert other.session.held_response is None
    (line,) = capsys.readouterr().err.splitlines()
    assert "10.0.0.1:5" in line
    assert "queued.max.response.bytes" in line
