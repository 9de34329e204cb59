"""A connection between a dispatcher that does what the test says and a transport that keeps what it is given."""

import asyncio

import pytest

from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_registry import ConnectionLimits, ConnectionRegistry
from odradek.broker.network.dispatch import CloseConnection
from odradek.protocol.errors import MalformedMessage
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.broker.network.turns import in_the_next_turn

pytestmark = pytest.mark.interpreted


class FakeTransport:
    def __init__(self, peer=("10.0.0.1", 5)):
        self.peer = peer
        self.sent = b""
        self.writes = []
        self.reading = True
        self.closed = False
        self.aborted = False
        self.queued = 0

    def get_extra_info(self, name):
        return self.peer if name == "peername" else None

    def set_write_buffer_limits(self, high):
        pass

    def get_write_buffer_size(self):
        return self.queued

    def write(self, data):
        self.sent += data
        self.writes.append(data)

    def pause_reading(self):
        assert self.reading
        self.reading = False

    def resume_reading(self):
        assert not self.reading
        self.reading = True

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True


# Of a request that is refused when a part of it has come.
REFUSED_KEY = 77


class FakeDispatcher:
    """Echoes a frame; ``w...`` waits, ``m...`` is malformed, ``c...`` closes, ``n...`` is not answered, ``x...`` fails.

    ``h...`` has an answer of half a megabyte. Of those that may begin behind others ``d...`` is decided and waits, ``u...`` waits
    to be decided, ``p...`` is answered, ``q...`` is malformed, ``e...`` closes. The latest to wait is the last of ``waiting``.
    """

    def __init__(self):
        self.waiting = []
        self.seen = []

    def pipeline_depth(self, frame):
        return 4 if frame[:1] in (b"d", b"u", b"p", b"q", b"e") else 1

    def ensure_allowed(self, key, size_bytes):
        if key == REFUSED_KEY:
            raise MalformedMessage(f"{size_bytes} bytes are too many")

    def dispatch(self, frame, session, arrived_ms):
        self.seen.append(bytes(frame))
        self.arrived_ms = arrived_ms
        match bytes(frame[:1]):
            case b"w" | b"d" | b"u":
                reply = Reply()
                reply.is_decided = frame[:1] == b"d"
                self.waiting.append(lambda: reply.complete([bytes(frame)]))
                self.last_reply = reply
                return reply
            case b"m" | b"q":
                raise MalformedMessage("no")
            case b"c" | b"e":
                raise CloseConnection
            case b"n":
                return []
            case b"x":
                raise ZeroDivisionError
        return [bytes(512 * 1024 if frame[:1] == b"h" else frame)]


class Setup:
    def __init__(self, **limits):
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        values = ConnectionLimits(10, 2**31 - 1, 10, {}, 600_000)._replace(**limits)
        self.registry = ConnectionRegistry(lambda: values, self.clock, self.timer, in_the_next_turn)
        self.dispatcher = FakeDispatcher()

    def connect(self, peer=("10.0.0.1", 5)):
        connection = Connection(self.dispatcher, self.registry, "PLAINTEXT", 1024)
        transport = FakeTransport(peer)
        connection.connection_made(transport)
        return connection, transport


async def answered(setup):
    """Answer what waits, and let the loop turn for what waited behind it."""
    setup.dispatcher.waiting.pop()()
    await asyncio.sleep(0)


def send(connection, *bodies):
    for data in [b"".join(len(body).to_bytes(4, "big") + body for body in bodies)]:
        room = connection.get_buffer(-1)
        room[: len(data)] = data
        connection.buffer_updated(len(data))


def test_requests_are_answered_in_order():
    connection, transport = Setup().connect()
    send(connection, b"aaaaaaaa", b"bbbbbbbb")
    assert transport.sent == b"aaaaaaaabbbbbbbb"
    assert transport.reading


async def test_what_comes_behind_a_waiting_request_waits_with_it():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"aaaaaaaa", b"wwwwwwww", b"bbbbbbbb")
    assert transport.sent == b"aaaaaaaa"
    assert not transport.reading
    assert connection.is_busy
    await answered(setup)
    assert transport.sent == b"aaaaaaaawwwwwwwwbbbbbbbb"
    assert transport.reading
    assert not connection.is_busy


async def test_two_requests_wait_one_after_the_other():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"w1111111", b"w2222222", b"aaaaaaaa")
    await answered(setup)
    assert transport.sent == b"w1111111"
    await answered(setup)
    assert transport.sent == b"w1111111w2222222aaaaaaaa"


async def test_who_answers_a_waiting_request_does_not_handle_those_behind_it():
    setup = Setup()
    connection, _ = setup.connect()
    send(connection, b"wwwwwwww", b"aaaaaaaa")
    setup.dispatcher.waiting.pop()()
    assert setup.dispatcher.seen == [b"wwwwwwww"]
    await asyncio.sleep(0)
    assert setup.dispatcher.seen == [b"wwwwwwww", b"aaaaaaaa"]


def test_a_waiting_request_that_has_no_answer_ends_its_connection():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"wwwwwwww", b"aaaaaaaa")
    setup.dispatcher.last_reply.complete(None)
    assert transport.aborted
    assert setup.dispatcher.seen == [b"wwwwwwww"]


def test_an_answer_that_cannot_be_read_from_its_log_ends_its_connection_alone(capsys):
    setup = Setup()
    connection, transport = setup.connect()

    class Unreadable(bytes):
        def read(self):
            raise OSError(5, "Input/output error")

    send(connection, b"wwwwwwww")
    setup.dispatcher.last_reply.complete([Unreadable(b"wwwwwwww")])
    assert transport.aborted
    assert "Input/output error" in capsys.readouterr().err


def test_a_fault_in_a_request_ends_its_connection_alone(capsys):
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"xxxxxxxx", b"aaaaaaaa")
    assert transport.aborted
    assert not connection.is_busy
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_answers_to_pipelined_requests_do_not_pile_up():
    connection, transport = Setup().connect()
    send(connection, *[b"half a megabyte"] * 5)
    assert len(transport.writes) == 2


def test_a_client_that_does_not_read_is_not_read_from():
    connection, transport = Setup().connect()
    connection.pause_writing()
    assert not transport.reading
    send(connection, b"aaaaaaaa")
    assert transport.sent == b""
    connection.resume_writing()
    assert transport.sent == b"aaaaaaaa"
    assert transport.reading


def test_a_malformed_request_closes_its_connection_after_the_answers_before_it():
    setup = Setup()
    connection, transport = setup.connect()
    other, other_transport = setup.connect(("10.0.0.2", 6))
    send(connection, b"aaaaaaaa", b"mmmmmmmm", b"bbbbbbbb")
    assert transport.sent == b"aaaaaaaa"
    assert transport.closed
    assert b"bbbbbbbb" not in setup.dispatcher.seen
    send(other, b"ffffffff")
    assert other_transport.sent == b"ffffffff"


def with_an_answer_held():
    """In a turn of the loop in which others have sent something too."""
    setup = Setup()
    connection, transport = setup.connect()
    for _ in range(2):
        setup.registry.outbox.arrived()
    send(connection, b"aaaaaaaa")
    return setup, connection, transport


def test_an_answer_that_is_held_goes_out_before_the_connection_is_closed():
    _, connection, transport = with_an_answer_held()
    assert transport.sent == b""
    connection.get_buffer(-1)[:4] = b"\xff\xff\xff\xff"
    connection.buffer_updated(4)
    assert transport.sent == b"aaaaaaaa"
    assert transport.closed


def test_while_an_answer_is_held_the_connection_is_busy():
    setup, _, transport = with_an_answer_held()
    assert setup.registry.busy() == 1
    setup.registry.outbox.turn_ended()
    assert transport.sent == b"aaaaaaaa"
    assert setup.registry.busy() == 0


def test_the_log_names_peer_and_cause_of_a_malformed_frame(capsys):
    connection, transport = Setup().connect()
    room = connection.get_buffer(-1)
    room[:4] = b"\xff\xff\xff\xff"
    connection.buffer_updated(4)
    assert transport.closed
    (line,) = capsys.readouterr().err.splitlines()
    assert "10.0.0.1:5" in line
    assert "a frame has -1 bytes" in line


def test_a_request_without_an_answer_does_not_hold_up_the_next():
    connection, transport = Setup().connect()
    send(connection, b"nnnnnnnn", b"aaaaaaaa")
    assert transport.sent == b"aaaaaaaa"


def test_a_failed_request_without_an_answer_closes_the_connection():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"cccccccc", b"aaaaaaaa")
    assert transport.closed
    assert setup.dispatcher.seen == [b"cccccccc"]


def test_an_answer_to_a_lost_connection_is_dropped():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"wwwwwwww")
    connection.connection_lost(None)
    setup.dispatcher.waiting.pop()()
    assert transport.sent == b""
    assert len(setup.registry) == 0


def test_connections_over_the_limit_are_refused():
    setup = Setup(max_connections=1)
    _, first = setup.connect()
    refused, second = setup.connect()
    assert not first.aborted
    assert second.aborted
    refused.connection_lost(None)
    assert len(setup.registry) == 1


def test_the_limit_per_ip_has_overrides_and_frees_its_places():
    setup = Setup(max_connections_per_ip=1, per_ip_overrides={"10.0.0.2": 2})
    first, _ = setup.connect(("10.0.0.1", 1))
    assert setup.connect(("10.0.0.1", 2))[1].aborted
    assert not setup.connect(("10.0.0.2", 1))[1].aborted
    assert not setup.connect(("10.0.0.2", 2))[1].aborted
    assert setup.connect(("10.0.0.2", 3))[1].aborted
    first.connection_lost(None)
    assert not setup.connect(("10.0.0.1", 3))[1].aborted


@pytest.mark.parametrize(("silent_ms", "closed"), [(599_000, False), (800_000, True)])
def test_a_silent_connection_is_closed(silent_ms, closed):
    setup = Setup()
    _, transport = setup.connect()
    setup.clock.advance(silent_ms)
    assert transport.closed is closed


def test_a_waiting_request_keeps_its_connection_open():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"wwwwwwww")
    setup.clock.advance(2_000_000)
    assert not transport.closed
    setup.dispatcher.waiting.pop()()
    assert transport.sent == b"wwwwwwww"


@pytest.mark.parametrize(("takes_bytes", "ended"), [(0, True), (1, False)])
def test_a_client_that_takes_nothing_of_its_answer_is_silent(takes_bytes, ended):
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"aaaaaaaa")
    transport.queued = 100
    for _ in range(80):
        setup.clock.advance(10_000)
        transport.queued -= takes_bytes
    assert transport.aborted is ended


def test_at_the_end_a_client_that_takes_nothing_is_not_waited_for():
    setup = Setup()
    _, transport = setup.connect()
    transport.queued = 100
    setup.registry.close_all()
    assert transport.aborted


def test_a_negative_idle_limit_means_never():
    setup = Setup(max_idle_ms=-1)
    _, transport = setup.connect()
    setup.clock.advance(10_000_000)
    assert not transport.closed


@pytest.mark.parametrize("max_idle_ms", [-1, 600_000])
def test_a_silent_connection_gives_memory_back(monkeypatch, max_idle_ms):
    trimmed = []
    monkeypatch.setattr(Connection, "trim", lambda self: trimmed.append(self.session.peer))
    setup = Setup(max_idle_ms=max_idle_ms)
    setup.connect()
    setup.clock.advance(30_000)
    assert trimmed


def test_nothing_more_is_read_once_the_broker_stops():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"wwwwwwww")
    setup.registry.stop_reading()
    assert setup.registry.busy() == 1
    setup.dispatcher.waiting.pop()()
    assert transport.sent == b"wwwwwwww"
    assert setup.registry.busy() == 0
    assert not transport.reading


def test_bytes_are_counted_while_the_connection_is_open_and_after():
    setup = Setup()
    first, _ = setup.connect()
    second, _ = setup.connect()
    send(first, b"aaaaaaaa", b"nnnnnnnn")
    send(second, b"bbbbbbbb")
    assert (setup.registry.received_bytes, setup.registry.sent_bytes) == (36, 16)
    first.connection_lost(None)
    assert (setup.registry.received_bytes, setup.registry.sent_bytes) == (36, 16)


def test_a_frame_is_dispatched_with_the_moment_it_came():
    setup = Setup()
    connection, _ = setup.connect()
    setup.clock.advance(250)
    send(connection, b"aaaaaaaa")
    assert setup.dispatcher.arrived_ms == 250


def test_connections_closed_for_nonsense_are_counted():
    setup = Setup()
    connection, _ = setup.connect()
    send(connection, b"mmmmmmmm")
    assert setup.registry.closed_malformed == 1


def test_the_socket_is_read_while_a_lone_request_waits():
    connection, transport = Setup().connect()
    send(connection, b"waits--1")
    assert transport.reading


async def test_a_request_behind_one_that_waits_stops_the_reading_until_it_is_answered():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"waits--1")
    send(connection, b"answer-2")
    assert not transport.reading
    assert transport.sent == b""
    await answered(setup)
    assert transport.sent == b"waits--1answer-2"
    assert transport.reading


def connect_large(setup):
    connection = Connection(setup.dispatcher, setup.registry, "PLAINTEXT", 1024 * 1024)
    transport = FakeTransport(("10.0.0.1", 5))
    connection.connection_made(transport)
    return connection, transport


def send_large(connection, body):
    data = len(body).to_bytes(4, "big") + body
    while data:
        room = connection.get_buffer(-1)
        count = min(len(room), len(data))
        room[:count], data = data[:count], data[count:]
        connection.buffer_updated(count)


async def test_nothing_is_read_over_a_frame_that_waits_to_be_begun():
    setup = Setup()
    connection, transport = connect_large(setup)
    body = b"b" + bytes(64 * 1024)
    send(connection, b"waits--1")
    send_large(connection, body)
    assert setup.dispatcher.seen == [b"waits--1"]
    assert not transport.reading
    await answered(setup)
    assert setup.dispatcher.seen == [b"waits--1", body]
    assert transport.reading


def test_the_socket_is_read_while_a_lone_large_request_waits():
    setup = Setup()
    connection, transport = connect_large(setup)
    send_large(connection, b"w" + bytes(64 * 1024))
    assert transport.reading


async def test_a_client_that_sends_no_more_is_given_what_it_waits_for():
    setup = Setup()
    connection, transport = setup.connect()
    send(connection, b"waits--1")
    send(connection, b"answer-2")
    assert connection.eof_received()
    assert not transport.closed
    await answered(setup)
    assert transport.sent == b"waits--1answer-2"
    assert transport.closed


def test_a_client_that_sends_no_more_and_waits_for_nothing_is_let_go():
    connection, _ = Setup().connect()
    send(connection, b"answer-1")
    assert not connection.eof_received()


def test_the_first_request_of_a_connection_above_the_rate_waits_for_its_turn():
    setup = Setup(max_creation_rate=0)
    held, transport = setup.connect()
    send(held, b"aaaaaaaa", b"bbbbbbbb")
    assert not transport.reading
    setup.clock.advance(999)
    setup.timer.advance()
    assert transport.sent == b""
    setup.clock.advance(1)
    setup.timer.advance()
    assert transport.sent == b"aaaaaaaabbbbbbbb"
    assert transport.reading


def test_a_connection_that_is_lost_before_its_turn_is_forgotten():
    setup = Setup(max_creation_rate=0)
    held, _ = setup.connect()
    held.connection_lost(None)
    setup.clock.advance(1000)
    setup.timer.advance()
    assert len(setup.registry) == 0
