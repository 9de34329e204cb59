"""The network between parties: what is held arrives later, what is cut is told, and each flow is harmed alone."""

import asyncio
import socket
import struct
import threading
import time
from contextlib import closing

import pytest

from tests.campaigns.cluster_chaos.network import CLIENTS, Network, both_ways, party

SILENCE_S = 0.05
TIMEOUT_S = 10


class Echo:
    """A node that gives back what it gets."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        # The thread that waits for a connection would keep the port open.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(accepted,), daemon=True).start()

    @staticmethod
    def _echo(accepted):
        with accepted:
            try:
                while data := accepted.recv(1 << 16):
                    accepted.sendall(data)
            except OSError:
                return


@pytest.fixture
def network():
    network = Network()
    yield network
    network.close()


@pytest.fixture
def node():
    with closing(Echo()) as node:
        yield node


def request(name):
    client_id = name.encode()
    body = struct.pack(">hhih", 18, 3, 1, len(client_id)) + client_id
    return struct.pack(">i", len(body)) + body


class Caller:
    """A connection through a gate, begun with a request that names its client."""

    def __init__(self, gate, name):
        self.socket = socket.create_connection(("127.0.0.1", gate), TIMEOUT_S)
        self._first = request(name)
        self.socket.sendall(self._first)

    def is_answered(self, timeout_s=TIMEOUT_S):
        """Whether the node has got what was sent, and its answer has come."""
        self.socket.settimeout(timeout_s)
        try:
            return self.socket.recv(1 << 16) == self._first
        except TimeoutError:
            return False

    def is_reset(self):
        self.socket.settimeout(TIMEOUT_S)
        try:
            return self.socket.recv(1 << 16) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def call():
    """Connects through a gate, as a client of a name."""
    callers = []

    def connect(gate, name):
        callers.append(Caller(gate, name))
        return callers[-1]

    yield connect
    for caller in callers:
        caller.socket.close()


@pytest.mark.parametrize(
    ("client_id", "found"),
    [
        ("broker-11-to-controller", 11),
        ("broker-12-fetcher", 12),
        ("odradek-observer-13", 13),
        ("rdkafka", CLIENTS),
        ("odradek-cluster-id", CLIENTS),
    ],
)
def test_brokers_are_known_by_their_client_ids(client_id, found):
    assert party(client_id) == found


def test_a_healthy_network_brings_both_ways_what_is_sent(network, node, call):
    assert call(network.gate(2, lambda: node.port), "broker-1-fetcher").is_answered()


@pytest.mark.parametrize("flow", [(1, 2), (2, 1)])
def test_what_is_held_on_either_way_arrives_when_the_network_is_healed(network, node, call, flow):
    gate = network.gate(2, lambda: node.port)
    network.hold([flow])
    caller = call(gate, "broker-1-fetcher")
    assert not caller.is_answered(SILENCE_S)
    network.heal()
    assert caller.is_answered()


def test_who_is_not_harmed_is_served(network, node, call):
    gate = network.gate(2, lambda: node.port)
    network.hold(both_ways([(1, 2)]))
    network.cut([(3, 2)])
    assert call(gate, "broker-4-fetcher").is_answered()
    assert call(network.gate(2, lambda: node.port, source=CLIENTS), "broker-1-fetcher").is_answered()


def test_what_is_cut_is_reset_and_so_is_each_new_connection_until_it_is_healed(network, node, call):
    gate = network.gate(2, lambda: node.port)
    before = call(gate, "broker-1-fetcher")
    assert before.is_answered()
    network.cut([(1, 2)])
    assert before.is_reset()
    assert call(gate, "broker-1-fetcher").is_reset()
    network.heal()
    assert call(gate, "broker-1-fetcher").is_answered()


def test_a_reset_ends_the_connections_that_there_are_and_no_later_one(network, node, call):
    gate = network.gate(2, lambda: node.port)
    before = call(gate, "broker-1-fetcher")
    assert before.is_answered()
    network.reset([(2, 1)])
    assert before.is_reset()
    assert call(gate, "broker-1-fetcher").is_answered()


def test_a_slow_flow_takes_its_time(network, node, call):
    gate = network.gate(2, lambda: node.port)
    network.slow([(1, 2), (2, 1)], SILENCE_S)
    began = time.monotonic()
    assert call(gate, "broker-1-fetcher").is_answered()
    assert time.monotonic() - began >= 2 * SILENCE_S


def test_a_node_that_is_away_is_a_connection_that_ends(network, call):
    with closing(Echo()) as node:
        gate = network.gate(2, lambda: node.port)
    assert call(gate, "broker-1-fetcher").is_reset()


def test_a_connection_that_its_client_gave_up_still_brings_what_was_held(network, node, call):
    got = []

    async def serve():
        arrived = asyncio.Event()

        async def take(reader, writer):
            got.append(await reader.read(-1))
            writer.close()
            arrived.set()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        gate = await asyncio.to_thread(network.gate, 2, lambda: port)
        await asyncio.to_thread(network.hold, [(1, 2)])
        caller = await asyncio.to_thread(call, gate, "broker-1-fetcher")
        caller.socket.close()
        await asyncio.to_thread(network.heal)
        await asyncio.wait_for(arrived.wait(), TIMEOUT_S)
        server.close()

    asyncio.run(serve())
    assert got == [request("broker-1-fetcher")]
