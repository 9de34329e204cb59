"""A client of one node: what it asks, in which order, and how it ends."""

import asyncio

import pytest

from odradek.client.api import Api, Disconnected, TooManyRequests, UnsupportedVersion
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from tests.client.net import (
    CONFIG,
    HEARTBEAT,
    METADATA,
    HeartbeatRequest,
    MetadataRequest,
    Net,
    asked,
    failure,
    settle,
    silent,
)
from tests.client.peer import EVERY_VERSION

PRODUCE = Api(ApiKey.PRODUCE, 3, 12)
FETCH = Api(ApiKey.FETCH)


async def test_a_request_makes_the_connection_and_is_answered(make):
    def answer(api_key, _version, _request):
        return messages(api_key).response(throttle_time_ms=7)

    net = Net(answer)
    client = make(net)
    response = await client.request(METADATA, MetadataRequest())
    assert response.throttle_time_ms == 7
    assert net.attempts == 1


async def test_nothing_is_connected_before_something_is_asked(make):
    net = Net()
    make(net)
    await settle()
    assert net.attempts == 0


async def test_an_older_node_is_asked_for_its_versions_again(make):
    net = Net(served={**EVERY_VERSION, ApiKey.API_VERSIONS: (0, 2)})
    await make(net).request(HEARTBEAT, HeartbeatRequest())
    assert [(key, version) for key, version, _ in net.links[0].peer.asked] == [
        (ApiKey.API_VERSIONS, 5),
        (ApiKey.API_VERSIONS, 2),
        (ApiKey.HEARTBEAT, 4),
    ]


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
