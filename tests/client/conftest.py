"""Clients of nodes in memory, under a virtual clock."""

from random import Random

import pytest

from odradek.client.node_client import NodeClient
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.client.net import CONFIG, settle


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
