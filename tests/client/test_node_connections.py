"""A client of one node whose connection or time runs out: what fails, and when it connects again."""

import asyncio

import pytest

from odradek.client.api import ConnectFailed, Disconnected, InvalidFrame, RequestTimedOut
from odradek.protocol.api_keys import ApiKey
from tests.client.net import (
    CONFIG,
    HEARTBEAT,
    METADATA,
    HeartbeatRequest,
    Link,
    MetadataRequest,
    Net,
    asked,
    failure,
    settle,
    silent,
)
from tests.client.peer import Peer

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


async def test_a_connection_that_comes_after_its_time_is_closed(make, clock):
    net, protocols = Net(), []

    async def connect(make_protocol):
        protocols.append(make_protocol())
        await asyncio.Event().wait()

    net.connect = connect
    future = make(net).request(HEARTBEAT, HeartbeatRequest())
    await settle()
    clock.advance(CONFIG.connection_setup_timeout_ms)
    assert isinstance(await failure(future), ConnectFailed)
    link = Link(protocols[0], Peer(), is_mute=False)
    protocols[0].connection_made(link)
    await settle()
    assert link.is_lost
    assert link.peer.asked == []


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
