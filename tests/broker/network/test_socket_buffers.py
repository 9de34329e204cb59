"""``socket.send.buffer.bytes`` and ``socket.receive.buffer.bytes`` reach the connections that a listener accepts."""

import asyncio
import socket
import sys

import pytest

from odradek.broker.network.listeners import SYSTEM_BUFFER, Listeners, SocketSettings
from odradek.common.config.listener_config import Endpoint

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Linux tells twice what was set, for its own book-keeping"),
    pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"]),
]


class Accepted(asyncio.Protocol):
    def __init__(self, made):
        self.made = made

    def connection_made(self, transport):
        self.made.set_result(transport)


async def buffers_of_a_connection(settings):
    """What the system gives to send and to receive to a connection that was accepted under ``settings``."""
    loop = asyncio.get_running_loop()
    made = loop.create_future()
    listeners = Listeners(lambda _: Accepted(made))
    await listeners.bind([Endpoint("PLAINTEXT", "127.0.0.1", 0)], loop, settings)
    await listeners.serve()
    with socket.create_connection(("127.0.0.1", listeners.bound["PLAINTEXT"].port)):
        transport = await made
        told = transport.get_extra_info("socket")
        sizes = [told.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
        transport.abort()
    listeners.close()
    return sizes


async def test_both_buffers_have_the_sizes_that_are_set():
    assert await buffers_of_a_connection(SocketSettings(5, 30_000, 50_000)) == [60_000, 100_000]


async def test_a_buffer_that_is_not_set_has_the_systems_size():
    systems_send, systems_receive = await buffers_of_a_connection(SocketSettings(5))
    assert await buffers_of_a_connection(SocketSettings(5, 30_000, SYSTEM_BUFFER)) == [60_000, systems_receive]
    assert await buffers_of_a_connection(SocketSettings(5, SYSTEM_BUFFER, 50_000)) == [systems_send, 100_000]
