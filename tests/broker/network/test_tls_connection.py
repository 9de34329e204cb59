"""TLS between a connection and a socket that are both doubles, with a client of OpenSSL's on the other side."""

import asyncio
import contextlib
import ssl
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.broker_config import load
from odradek.broker.context import Session
from odradek.broker.line_limit import LineLimit
from odradek.broker.logging import lines_to
from odradek.broker.network.handshake_turns import HandshakeTurns
from odradek.broker.network.tls_connection import HANDSHAKE_TIMEOUT_MS, TlsConnection
from odradek.broker.security.tls_listeners import TlsListeners
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer


class Socket(asyncio.Transport):
    """A transport that keeps what it is given."""

    def __init__(self):
        super().__init__({"peername": ("10.0.0.1", 5)})
        self.sent = b""
        self.is_open = True
        self.is_aborted = False
        self.is_read = True

    def set_write_buffer_limits(self, high=None, low=None):
        self.limits = (high, low)

    def get_write_buffer_size(self):
        return 0

    def write(self, data):
        assert self.is_open
        self.sent += data

    def is_closing(self):
        return not self.is_open

    def pause_reading(self):
        self.is_read = False

    def resume_reading(self):
        self.is_read = True

    def close(self):
        self.is_open = False

    def abort(self):
        self.is_open = False
        self.is_aborted = True


class Plain:
    """The connection: keeps what it receives, and owes answers if the test says so."""

    def __init__(self, room=64):
        self.session = Session("SSL", ("10.0.0.1", 5))
        self.room = bytearray(room)
        self.received = b""
        self.pieces = []
        self.owes_answers = False
        self.has_ended = self.is_lost = False
        self.reads_at_most = None

    def connection_made(self, transport):
        self.transport = transport
        assert transport.get_extra_info("socket") is None
        assert transport.get_extra_info("peername") == ("10.0.0.1", 5)

    def connection_lost(self, exc):
        self.is_lost = True

    def get_buffer(self, sizehint):
        return memoryview(self.room)

    def buffer_updated(self, nbytes):
        self.received += self.room[:nbytes]
        self.pieces.append(nbytes)
        if self.reads_at_most is not None and len(self.received) >= self.reads_at_most:
            self.transport.pause_reading()

    def eof_received(self):
        self.has_ended = True
        return self.owes_answers

    def pause_writing(self):
        self.is_paused = True

    def resume_writing(self):
        self.is_paused = False


class Pair:
    """A client and a broker's end, joined by hand."""

    def __init__(self, certificates, room=64, **ssl_configs):
        config = load(None, {"listeners": "SSL://:0", **certificates.settings(**ssl_configs)})
        self.clock = VirtualClock()
        self.lines = []
        self.soon = []
        # The clock calls a timer back with the lines of who has made it.
        with self.told():
            self.timer = Timer(self.clock)
        self.socket = Socket()
        self.plain = Plain(room)
        listener = TlsListeners(config, [SimpleNamespace(name="SSL")])["SSL"]
        self.end = TlsConnection(self.plain, listener, self.timer, HandshakeTurns(self.call_soon), LineLimit(self.clock))
        self.end.connection_made(self.socket)
        self._to_client, self._to_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = certificates.client_context().wrap_bio(self._to_client, self._to_broker, server_hostname="localhost")

    def call_soon(self, callback):
        self.soon.append(callback)

    def next_turn(self):
        """Of the event loop."""
        due, self.soon = self.soon, []
        for callback in due:
            callback()

    def told(self):
        """Within, lines of the log are kept."""
        return lines_to(lambda level, event, fields: self.lines.append((event, dict(fields))))

    def give(self, data):
        """Ciphertext, or what is to pass for it, from the socket."""
        with self.told():
            while data and self.socket.is_open:
                room = self.end.get_buffer(-1)
                size = min(len(data), len(room))
                room[:size] = data[:size]
                self.end.buffer_updated(size)
                self.next_turn()
                data = data[size:]

    def exchange(self):
        """Carry what either has written to the other."""
        self.give(self._to_broker.read())
        self._to_client.write(self.socket.sent)
        self.socket.sent = b""

    def shake_hands(self):
        for _ in range(4):
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.exchange()
        return self

    def send(self, data):
        self.client.write(data)
        self.exchange()

    def receive(self):
        self.exchange()
        return self.client.read(1 << 20)

    def pass_ms(self, elapsed_ms):
        self.clock.advance(elapsed_ms)


@pytest.fixture
def pair(certificates):
    return Pair(certificates).shake_hands()


def test_bytes_come_and_go(pair):
    pair.send(b"asked")
    assert pair.plain.received == b"asked"
    pair.end.write(b"answered")
    assert b"answered" not in pair.socket.sent
    assert pair.receive() == b"answered"


@pytest.mark.parametrize("room", [1, 64, 100_000])
def test_what_was_sent_comes_whole_and_in_order_whatever_the_room(certificates, room):
    pair = Pair(certificates, room).shake_hands()
    sent = bytes(range(256)) * 160
    pair.send(sent[:20_000])
    pair.client.write(sent[20_000:20_010])
    pair.send(sent[20_010:])
    assert pair.plain.received == sent


def test_brokers_of_two_threads_do_not_read_into_the_same_place(certificates):
    pairs = [Pair(certificates) for _ in range(2)]
    assert pairs[0].end.get_buffer(-1).obj is not pairs[1].end.get_buffer(-1).obj


def test_requests_that_came_together_are_handed_on_together(certificates):
    pair = Pair(certificates, 1000).shake_hands()
    for _ in range(5):
        pair.client.write(b"request")
    pair.exchange()
    assert pair.plain.pieces == [35]


def test_a_handshake_that_comes_a_byte_at_a_time_is_one(certificates):
    pair = Pair(certificates)
    give = pair.give
    pair.give = lambda data: [give(data[at : at + 1]) for at in range(len(data))]
    pair.shake_hands().send(b"asked")
    assert pair.plain.received == b"asked"


async def test_a_connection_that_does_not_read_gets_the_rest_when_it_does(pair):
    pair.plain.reads_at_most = 100
    pair.send(bytes(1000))
    assert len(pair.plain.received) == 128
    assert not pair.socket.is_read
    pair.plain.reads_at_most = None
    pair.end.resume_reading()
    assert len(pair.plain.received) == 128
    await asyncio.sleep(0)
    assert len(pair.plain.received) == 1000
    assert pair.socket.is_read


def test_a_connection_that_is_held_still_shakes_hands(certificates):
    pair = Pair(certificates)
    pair.end.pause_reading()
    pair.shake_hands()
    assert pair.client.version() == "TLSv1.3"
    assert not pair.socket.is_read
    pair.send(b"asked")
    assert pair.plain.received == b""


def test_a_handshake_that_takes_too_long_is_ended_and_told(certificates):
    pair = Pair(certificates)
    pair.give(b"\x16\x03\x01")
    pair.pass_ms(HANDSHAKE_TIMEOUT_MS - 1)
    assert (pair.socket.is_open, pair.lines) == (True, [])
    pair.pass_ms(1)
    assert not pair.socket.is_open
    assert [(event, fields["peer"]) for event, fields in pair.lines] == [("TLS handshake failed", "10.0.0.1:5")]
    pair.end.connection_lost(None)
    assert pair.plain.is_lost


def test_a_connection_that_is_made_has_no_deadline(pair):
    pair.pass_ms(10 * HANDSHAKE_TIMEOUT_MS)
    assert (pair.socket.is_open, pair.lines) == (True, [])


def test_the_deadline_of_a_connection_that_is_lost_is_forgotten(certificates):
    pair = Pair(certificates)
    pair.end.connection_lost(None)
    pair.pass_ms(HANDSHAKE_TIMEOUT_MS)
    assert (pair.plain.is_lost, pair.lines) == (True, [])


def test_a_client_is_told_goodbye(pair):
    pair.end.write(b"the last")
    pair.end.close()
    assert not pair.socket.is_open
    assert not pair.socket.is_aborted
    assert pair.receive() == b"the last"
    assert pair.client.read(1) == b""


@pytest.mark.parametrize("owes_answers", [False, True])
def test_a_clients_goodbye_ends_the_connection_when_nothing_is_owed(pair, owes_answers):
    pair.plain.owes_answers = owes_answers
    pair.client.write(b"asked")
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.exchange()
    assert (pair.plain.received, pair.plain.has_ended) == (b"asked", True)
    assert pair.socket.is_open is owes_answers


def test_a_client_that_leaves_without_goodbye_may_be_owed_an_answer(pair):
    pair.plain.owes_answers = True
    assert pair.end.eof_received() is True
    pair.plain.owes_answers = False
    assert pair.end.eof_received() is False


def test_a_socket_that_is_full_is_the_connections_to_know(pair):
    pair.end.pause_writing()
    assert pair.plain.is_paused
    pair.end.resume_writing()
    assert not pair.plain.is_paused


def test_a_client_that_leaves_within_the_handshake_is_told_of_and_one_that_has_not_begun_is_not(certificates):
    for begun, told in ((b"", 0), (b"\x16\x03\x01", 1)):
        pair = Pair(certificates)
        pair.give(begun)
        with pair.told():
            assert pair.end.eof_received() is False
        assert len(pair.lines) == told


def _ended_well_or_waits(pair):
    """No exception has come this far; the connection waits for more, or was closed with one line at most."""
    assert len(pair.lines) <= 1
    assert pair.socket.is_open or pair.lines or pair.plain.has_ended
    assert pair.plain.received == b""


@given(garbage=st.binary(min_size=1, max_size=400), kind=st.sampled_from([b"", b"\x16\x03\x01", b"\x16\x03\x01\x00\x20"]))
def test_no_first_bytes_are_too_odd(certificates, garbage, kind):
    pair = Pair(certificates)
    pair.give(kind + garbage)
    _ended_well_or_waits(pair)


@given(place=st.integers(0, 400), octet=st.integers(0, 255))
def test_no_hello_is_too_odd(certificates, place, octet):
    pair = Pair(certificates)
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.do_handshake()
    hello = bytearray(pair._to_broker.read())
    hello[place % len(hello)] = octet
    pair.give(bytes(hello))
    _ended_well_or_waits(pair)


@given(garbage=st.binary(min_size=1, max_size=400), kind=st.sampled_from([b"", b"\x17\x03\x03\x00\x20", b"\x15\x03\x03\x00\x02"]))
def test_no_bytes_behind_a_handshake_are_too_odd(certificates, garbage, kind):
    pair = Pair(certificates).shake_hands()
    pair.give(kind + garbage)
    _ended_well_or_waits(pair)


def test_a_record_that_was_changed_on_its_way_ends_the_connection(pair):
    pair.client.write(b"asked")
    record = bytearray(pair._to_broker.read())
    record[-1] ^= 1
    pair.give(bytes(record))
    assert pair.socket.is_aborted
    assert pair.plain.received == b""
    [(event, fields)] = pair.lines
    assert event == "closing a connection"
    assert "mac" in fields["cause"]
