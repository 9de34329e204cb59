"""Which requests of a connection begin while others of it are unanswered, and in what order it ends."""

import asyncio

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from tests.broker.network.test_connection import Setup, send

pytestmark = pytest.mark.interpreted


async def complete(setup, number):
    """Answer the request that was the ``number``-th to wait, and let the loop turn."""
    setup.dispatcher.waiting[number]()
    await asyncio.sleep(0)


@pytest.fixture
def setup():
    return Setup()


@pytest.fixture
def client(setup):
    return setup.connect()


def test_what_waits_for_a_log_alone_may_follow_others_and_nothing_else():
    deep = {api_key: served.pipeline_depth for api_key, served in SERVED.items() if served.pipeline_depth > 1}
    waiting = {ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.WRITE_TXN_MARKERS}
    share_state = {api_key for api_key in ApiKey if "SHARE_GROUP_STATE" in api_key.name}
    assert deep == dict.fromkeys(waiting | share_state, 128)


async def test_requests_that_may_follow_begin_behind_decided_ones_up_to_their_depth(setup, client):
    connection, transport = client
    send(connection, *[b"decided%d" % number for number in range(6)])
    assert len(setup.dispatcher.seen) == 4
    assert not transport.reading
    await complete(setup, 0)
    assert transport.sent == b"decided0"
    assert len(setup.dispatcher.seen) == 5


async def test_they_are_answered_in_order_whoever_is_done_first(setup, client):
    connection, transport = client
    send(connection, b"decided0", b"decided1", b"put----2")
    await complete(setup, 1)
    assert transport.sent == b""
    await complete(setup, 0)
    assert transport.sent == b"decided0decided1put----2"


async def test_those_that_are_done_in_one_turn_are_answered_in_one_write(setup, client):
    connection, transport = client
    send(connection, *[b"decided%d" % number for number in range(3)])
    for done in setup.dispatcher.waiting:
        done()
    await asyncio.sleep(0)
    assert transport.writes == [b"decided0decided1decided2"]


def test_a_lone_request_is_answered_as_soon_as_it_is_done(setup, client):
    connection, transport = client
    send(connection, b"decided0")
    setup.dispatcher.waiting[0]()
    assert transport.sent == b"decided0"


async def test_another_request_waits_for_all_of_them(setup, client):
    connection, transport = client
    send(connection, b"decided0", b"decided1", b"aaaaaaaa")
    await complete(setup, 0)
    assert setup.dispatcher.seen[2:] == []
    await complete(setup, 1)
    assert transport.sent == b"decided0decided1aaaaaaaa"
    assert transport.reading


async def test_none_begins_behind_one_that_is_yet_to_be_decided(setup, client):
    connection, transport = client
    send(connection, b"decided0", b"undecid1", b"decided2")
    assert setup.dispatcher.seen == [b"decided0", b"undecid1"]
    await complete(setup, 1)
    assert setup.dispatcher.seen == [b"decided0", b"undecid1", b"decided2"]
    assert transport.sent == b""


def test_none_begins_behind_a_request_that_waits_for_something_else(setup, client):
    connection, _ = client
    send(connection, b"wwwwwwww", b"decided1")
    assert setup.dispatcher.seen == [b"wwwwwwww"]


def test_requests_go_on_though_the_last_of_them_answered_those_before_it(setup, client):
    connection, transport = client
    send(connection, b"decided0", b"decided1")
    dispatch = setup.dispatcher.dispatch

    def completing(frame, session, arrived_ms):
        if frame[:1] == b"p":
            for done in setup.dispatcher.waiting:
                done()
        return dispatch(frame, session, arrived_ms)

    setup.dispatcher.dispatch = completing
    send(connection, b"put----2", b"aaaaaaaa")
    assert transport.sent == b"decided0decided1put----2aaaaaaaa"
    assert not connection.is_busy


@pytest.mark.parametrize("last", [b"qqqqqqqq", b"eeeeeeee"])
async def test_a_connection_that_is_to_close_answers_first_what_waits(setup, client, last):
    connection, transport = client
    send(connection, b"decided0", b"decided1", last, b"decided3")
    assert not transport.closed
    assert not transport.reading
    await complete(setup, 0)
    await complete(setup, 1)
    assert transport.sent == b"decided0decided1"
    assert transport.closed
    assert setup.dispatcher.seen == [b"decided0", b"decided1", last]


async def test_a_malformed_frame_behind_a_request_that_waits_closes_after_its_answer(setup, client, capsys):
    connection, transport = client
    send(connection, b"wwwwwwww")
    connection.get_buffer(-1)[:4] = b"\xff\xff\xff\xff"
    connection.buffer_updated(4)
    assert not transport.closed
    assert not transport.reading
    await complete(setup, 0)
    assert transport.sent == b"wwwwwwww"
    assert transport.closed
    assert setup.registry.closed_malformed == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "a frame has -1 bytes" in line


async def test_a_response_that_cannot_be_told_closes_in_its_turn(setup, client):
    connection, transport = client
    send(connection, b"decided0")
    first = setup.dispatcher.last_reply
    send(connection, b"decided1")
    last = setup.dispatcher.last_reply
    last.complete(None)
    await asyncio.sleep(0)
    assert not transport.aborted
    first.complete([b"decided0"])
    await asyncio.sleep(0)
    assert transport.sent == b"decided0"
    assert transport.aborted
