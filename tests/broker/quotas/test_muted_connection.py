"""A connection that is muted for its client's quotas."""

import pytest

from tests.broker.network.test_connection import Setup, answered, send

pytestmark = pytest.mark.interpreted


@pytest.fixture
def setup():
    return Setup()


def test_a_muted_connection_begins_no_request_until_its_time_is_over(setup):
    connection, transport = setup.connect()
    connection.mute(100)
    send(connection, b"aaaaaaaa")
    assert setup.dispatcher.seen == []
    assert not transport.reading
    setup.clock.advance(99)
    assert setup.dispatcher.seen == []
    setup.clock.advance(1)
    assert transport.sent == b"aaaaaaaa"
    assert transport.reading


async def test_what_has_begun_is_answered(setup):
    connection, transport = setup.connect()
    send(connection, b"wwwwwwww")
    connection.mute(100)
    await answered(setup)
    assert transport.sent == b"wwwwwwww"


def test_a_request_that_mutes_is_the_last_to_begin(setup):
    connection, transport = setup.connect()
    dispatch = setup.dispatcher.dispatch

    def mute(frame, session, arrived_ms):
        session.connection.mute(50)
        return dispatch(frame, session, arrived_ms)

    setup.dispatcher.dispatch = mute
    send(connection, b"aaaaaaaa", b"nnnnnnnn", b"bbbbbbbb")
    assert transport.sent == b"aaaaaaaa"
    setup.clock.advance(50)
    assert setup.dispatcher.seen == [b"aaaaaaaa", b"nnnnnnnn"]
    setup.clock.advance(50)
    assert transport.sent == b"aaaaaaaabbbbbbbb"


def test_the_longest_time_counts(setup):
    connection, transport = setup.connect()
    connection.mute(100)
    connection.mute(200)
    connection.mute(50)
    send(connection, b"aaaaaaaa")
    setup.clock.advance(199)
    assert transport.sent == b""
    setup.clock.advance(1)
    assert transport.sent == b"aaaaaaaa"


def test_a_client_that_catches_up_with_its_answers_stays_muted(setup):
    connection, transport = setup.connect()
    connection.pause_writing()
    connection.mute(100)
    connection.resume_writing()
    send(connection, b"aaaaaaaa")
    assert transport.sent == b""
    connection.pause_writing()
    setup.clock.advance(100)
    assert transport.sent == b""
    connection.resume_writing()
    assert transport.sent == b"aaaaaaaa"


def test_a_muted_connection_can_be_closed_and_is_not_waited_for(setup):
    connection, transport = setup.connect()
    connection.mute(100_000)
    send(connection, b"aaaaaaaa")
    assert setup.registry.busy() == 0
    setup.registry.close_all()
    assert transport.closed


def test_an_idle_muted_connection_is_swept():
    setup = Setup(max_idle_ms=1_000)
    connection, transport = setup.connect()
    connection.mute(100_000)
    setup.clock.advance(1_500)
    assert transport.closed


def test_a_lost_connection_leaves_no_deadline(setup):
    connection, _ = setup.connect()
    pending = len(setup.timer)
    connection.mute(100)
    assert len(setup.timer) == pending + 1
    connection.connection_lost(None)
    assert len(setup.timer) == pending
    assert connection.session.connection is None
    connection.mute(100)
    assert len(setup.timer) == pending
