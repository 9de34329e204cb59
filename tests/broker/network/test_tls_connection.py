"""TLS between a connection and a socket that are both doubles, with a client of OpenSSL's on the other side."""

import asyncio
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.network.tls_connection import HANDSHAKE_TIMEOUT_MS
from tests.broker.network.tls_pair import Pair


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
    hello = bytearray(pair.hello())
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
