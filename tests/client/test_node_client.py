"""A client of one node, under a virtual clock, on a network in memory."""

import asyncio
from random import Random

import pytest

from odradek.client.api import Api
from odradek.client.config import ClientConfig
from odradek.client.errors import (
    ConnectFailed,
    Disconnected,
    InvalidFrame,
    RequestTimedOut,
    TooManyRequests,
    UnsupportedVersion,
)
from odradek.client.node_client import NodeClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.client.net import Net, settle
from tests.client.peer import EVERY_VERSION

HEARTBEAT = Api(ApiKey.HEARTBEAT)
METADATA = Api(ApiKey.METADATA)
PRODUCE = Api(ApiKey.PRODUCE, 3, 12)
FETCH = Api(ApiKey.FETCH)

HeartbeatRequest = messages(ApiKey.HEARTBEAT).HeartbeatRequest
MetadataRequest = messages(ApiKey.METADATA).MetadataRequest

CONFIG = ClientConfig(
    request_timeout_ms=3000,
    connection_setup_timeout_ms=1000,
    reconnect_backoff_ms=100,
    reconnect_backoff_max_ms=400,
    max_in_flight_requests=2,
    max_queued_requests=5,
)


def silent(_api_key, _version, _request):
    """A node that never answers."""


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
async def make(clock):
    """Clients that are closed at the end."""
    clients = []

    def make_client(net, config=CONFIG):
        client = NodeClient(net.connect, Timer(clock), Random(1), config)
        clients.append(client)
        return client

    yield make_client
    for client in clients:
        client.close()
    await settle()


async def failure(future):
    """The error that the request ends with."""
    await settle()
    assert future.done()
    return future.exception()


def asked(net):
    """The APIs that were asked for over all connections, without the negotiations."""
    return [key for link in net.links for key, _, _ in link.peer.asked if key != ApiKey.API_VERSIONS]


# Asking.


async def test_a_request_makes_the_connection_and_is_answered(make):
    def answer(api_key, _version, _request):
        return messages(api_key).response(throttle_time_ms=7)

    net = Net(answer)
    client = make(net)
    assert not client.is_connected
    response = await client.request(METADATA, MetadataRequest())
    assert response.throttle_time_ms == 7
    assert client.is_connected


async def test_nothing_is_connected_before_something_is_asked(make):
    net = Net()
    make(net)
    await settle()
    assert net.attempts == 0


async def test_requests_go_in_their_order_over_one_connection(make):
    net = Net()
    client = make(net)
    keys = [HEARTBEAT, METADATA, METADATA, HEARTBEAT]
    await asyncio.gather(*(client.request(api, messages(api.key).request()) for api in keys))
    await client.request(HEARTBEAT, HeartbeatRequest())
    assert asked(net) == [api.key for api in [*keys, HEARTBEAT]]
    assert net.attempts == 1


async def test_no_more_than_the_limit_are_in_flight(make):
    net = Net(silent)
    client = make(net)
    futures = [client.request(HEARTBEAT, HeartbeatRequest()) for _ in range(4)]
    await settle()
    assert len(asked(net)) == CONFIG.max_in_flight_requests
    assert not any(future.done() for future in futures)


async def test_no_more_than_the_limit_wait_to_be_sent(make):
    client = make(Net(silent))
    for _ in range(CONFIG.max_queued_requests):
        client.request(HEARTBEAT, HeartbeatRequest())
    with pytest.raises(TooManyRequests):
        client.request(HEARTBEAT, HeartbeatRequest())
    await settle()
    # Those in flight wait no more.
    for _ in range(CONFIG.max_in_flight_requests):
        client.request(HEARTBEAT, HeartbeatRequest())


async def test_an_unsupported_version_fails_that_request_alone(make):
    net = Net(served={**EVERY_VERSION, ApiKey.HEARTBEAT: (0, 1)})
    client = make(net)
    too_new = client.request(Api(ApiKey.HEARTBEAT, 3), HeartbeatRequest())
    other = client.request(METADATA, MetadataRequest())
    assert isinstance(await failure(too_new), UnsupportedVersion)
    await other
    assert asked(net) == [ApiKey.METADATA]


async def test_a_produce_without_acks_is_done_when_it_is_sent(make):
    net = Net(silent)
    assert await make(net).request(PRODUCE, ProduceRequest(None, 0, 100, [("t", [(0, b"records")])])) is None
    assert asked(net) == [ApiKey.PRODUCE]


async def test_a_request_whose_caller_is_gone_is_not_sent(make):
    net = Net()
    client = make(net)
    gone = client.request(HEARTBEAT, HeartbeatRequest())
    gone.cancel()
    await client.request(METADATA, MetadataRequest())
    assert asked(net) == [ApiKey.METADATA]


async def test_a_response_whose_caller_is_gone_is_dropped_and_the_connection_goes_on(make):
    net = Net()
    client = make(net)
    await client.request(METADATA, MetadataRequest())
    gone = client.request(HEARTBEAT, HeartbeatRequest())
    assert asked(net) == [ApiKey.METADATA, ApiKey.HEARTBEAT]
    gone.cancel()
    await client.request(METADATA, MetadataRequest())
    assert net.attempts == 1


async def test_a_fetch_that_waits_holds_up_nobody_on_another_connection(make):
    def answer(api_key, _version, _request):
        return None if api_key == ApiKey.FETCH else messages(api_key).response()

    net = Net(answer)
    fetched = make(net).request(FETCH, messages(ApiKey.FETCH).FetchRequest())
    await make(net).request(HEARTBEAT, HeartbeatRequest())
    assert not fetched.done()


async def test_a_full_socket_holds_requests_back(make):
    net = Net()
    client = make(net)
    await client.request(METADATA, MetadataRequest())
    session = net.links[0]._protocol
    session.pause_writing()
    waiting = client.request(HEARTBEAT, HeartbeatRequest())
    await settle()
    assert asked(net) == [ApiKey.METADATA]
    session.resume_writing()
    await waiting


# Time.


async def test_a_request_in_flight_that_times_out_ends_the_connection(make, clock):
    net = Net(silent)
    client = make(net)
    first = client.request(HEARTBEAT, HeartbeatRequest(), timeout_ms=1500)
    second = client.request(HEARTBEAT, HeartbeatRequest())
    await settle()
    clock.advance(1499)
    assert not first.done()
    clock.advance(1)
    assert isinstance(await failure(first), RequestTimedOut)
    assert isinstance(await failure(second), Disconnected)
    assert net.links[0].is_lost


async def test_a_request_has_the_configured_time_unless_it_says_otherwise(make, clock):
    future = make(Net(silent)).request(HEARTBEAT, HeartbeatRequest())
    await settle()
    clock.advance(CONFIG.request_timeout_ms - 1)
    assert not future.done()
    clock.advance(1)
    assert isinstance(await failure(future), RequestTimedOut)


async def test_a_request_that_times_out_before_it_is_sent_fails_alone(make, clock):
    net = Net(silent)
    client = make(net)
    in_flight = [client.request(HEARTBEAT, HeartbeatRequest()) for _ in range(2)]
    queued = client.request(HEARTBEAT, HeartbeatRequest(), timeout_ms=500)
    await settle()
    clock.advance(500)
    assert isinstance(await failure(queued), RequestTimedOut)
    assert not any(future.done() for future in in_flight)
    assert not net.links[0].is_lost


async def test_an_answered_request_does_not_time_out(make, clock):
    net = Net()
    client = make(net)
    await client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(CONFIG.request_timeout_ms)
    await client.request(HEARTBEAT, HeartbeatRequest())
    assert net.attempts == 1


@pytest.mark.parametrize("what", ["hangs", "is_mute"])
async def test_a_connection_that_is_not_ready_in_time_has_failed(make, clock, what):
    net = Net()
    setattr(net, what, True)
    future = make(net).request(HEARTBEAT, HeartbeatRequest())
    await settle()
    clock.advance(CONFIG.connection_setup_timeout_ms - 1)
    assert not future.done()
    clock.advance(1)
    assert isinstance(await failure(future), ConnectFailed)
    assert all(link.is_lost for link in net.links)


# Connecting again.


async def test_a_request_fails_with_the_attempt_that_it_waits_for(make):
    net = Net()
    net.refuses = True
    client = make(net)
    futures = [client.request(HEARTBEAT, HeartbeatRequest()) for _ in range(2)]
    assert [str(await failure(future)) for future in futures] == ["Connection refused"] * 2
    assert {type(future.exception()) for future in futures} == {ConnectFailed}
    assert net.attempts == 1


async def test_the_wait_between_attempts_doubles_up_to_its_maximum_and_begins_anew(make, clock):
    net = Net()
    net.refuses = True
    client = make(net)

    async def waited_ms():
        """How long the next attempt takes to come, from the failure of the last one."""
        attempts, start_ms = net.attempts, clock.monotonic_ms()
        future = client.request(HEARTBEAT, HeartbeatRequest())
        while net.attempts == attempts:
            clock.advance(1)
            await settle()
        future.cancel()
        return clock.monotonic_ms() - start_ms

    await failure(client.request(HEARTBEAT, HeartbeatRequest()))
    waits = [await waited_ms() for _ in range(5)]
    for wait_ms, doubled_ms in zip(waits, [100, 200, 400, 400, 400], strict=True):
        assert 0.8 * doubled_ms <= wait_ms <= min(1.2 * doubled_ms, 400) + 1
    net.refuses = False
    # The attempt that fails last leaves a wait behind; then the connection is made, and lost.
    clock.advance(CONFIG.reconnect_backoff_max_ms)
    await client.request(HEARTBEAT, HeartbeatRequest())
    net.links[-1].lose()
    assert await waited_ms() <= 121


async def test_no_attempt_is_made_for_nobody(make, clock):
    net = Net()
    net.refuses = True
    client = make(net)
    await failure(client.request(HEARTBEAT, HeartbeatRequest()))
    late = client.request(HEARTBEAT, HeartbeatRequest(), timeout_ms=10)
    clock.advance(10)
    assert isinstance(await failure(late), RequestTimedOut)
    clock.advance(CONFIG.reconnect_backoff_max_ms)
    await settle()
    assert net.attempts == 1


async def test_a_request_that_has_timed_out_takes_no_room_in_the_queue(make, clock):
    net = Net()
    net.hangs = True
    client = make(net)
    for _ in range(CONFIG.max_queued_requests):
        client.request(HEARTBEAT, HeartbeatRequest(), timeout_ms=10)
    clock.advance(10)
    client.request(HEARTBEAT, HeartbeatRequest())


async def test_a_lost_connection_fails_what_is_in_flight_and_what_was_not_sent_goes_over_the_next(make, clock):
    net = Net(silent)
    client = make(net)
    in_flight = [client.request(HEARTBEAT, HeartbeatRequest()) for _ in range(2)]
    queued = client.request(METADATA, MetadataRequest())
    await settle()
    net.links[0].lose()
    assert [type(await failure(future)) for future in in_flight] == [Disconnected] * 2
    assert (queued.done(), net.attempts) == (False, 1)
    clock.advance(CONFIG.reconnect_backoff_max_ms)
    await settle()
    assert asked(net) == [ApiKey.HEARTBEAT, ApiKey.HEARTBEAT, ApiKey.METADATA]
    assert not queued.done()


async def test_a_connection_lost_while_it_is_negotiated_has_failed(make):
    net = Net()
    net.is_mute = True
    future = make(net).request(HEARTBEAT, HeartbeatRequest())
    await settle()
    net.links[0].lose(ConnectionResetError("reset"))
    assert isinstance(await failure(future), ConnectFailed)


async def test_what_no_node_sends_ends_the_connection(make):
    net = Net(silent)
    future = make(net).request(HEARTBEAT, HeartbeatRequest())
    await settle()
    net.links[0].deliver(b"HTTP/1.1 400 Bad Request")
    assert isinstance(await failure(future), InvalidFrame)
    await settle()
    assert net.links[0].is_lost


# Closing.


async def test_closing_ends_every_request_and_refuses_later_ones(make):
    net = Net(silent)
    client = make(net)
    futures = [client.request(HEARTBEAT, HeartbeatRequest()) for _ in range(3)]
    await settle()
    client.close()
    futures.append(client.request(HEARTBEAT, HeartbeatRequest()))
    assert [type(await failure(future)) for future in futures] == [Disconnected] * 4
    assert net.links[0].is_lost
    assert net.attempts == 1


async def test_closing_gives_up_an_attempt_to_connect(make, clock):
    net = Net()
    net.hangs = True
    client = make(net)
    future = client.request(HEARTBEAT, HeartbeatRequest())
    await settle()
    client.close()
    assert isinstance(await failure(future), Disconnected)
    clock.advance(100_000)
    await settle()
    assert net.attempts == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}
