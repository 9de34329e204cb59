"""The loop and the network of simulated clusters."""

import asyncio
from random import Random

import pytest

from odradek.timing.timer import Timer
from tests.campaigns.cluster_simulation.loop import Process, ProcessClock, VirtualLoop
from tests.campaigns.cluster_simulation.network import SimulatedNetwork


class Peer(asyncio.BufferedProtocol):
    """Keeps what it is told."""

    def __init__(self, loop):
        self.loop = loop
        self.received = b""
        self.arrivals = []
        self.lost_ms = None
        self._buffer = bytearray(7)

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, sizehint):
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes):
        self.received += self._buffer[:nbytes]
        self.arrivals.append(self.loop.now_ms)

    def connection_lost(self, exc):
        self.lost_ms = self.loop.now_ms


class Pair:
    """A server and clients."""

    def __init__(self, latency_ms=10.0):
        self.loop = VirtualLoop()
        self.network = self.loop.network = SimulatedNetwork(self.loop, Random(1), latency_ms)
        self.server = Process(self.loop, "server", "s")
        self.client = Process(self.loop, "client", "c")
        self.accepted = []
        self.do(self.server, self.listen())

    async def listen(self):
        server = await asyncio.get_running_loop().create_server(self.accept, "s", 1)
        await server.start_serving()

    def accept(self):
        self.accepted.append(Peer(self.loop))
        return self.accepted[-1]

    async def connect(self):
        _, protocol = await asyncio.get_running_loop().create_connection(lambda: Peer(self.loop), "s", 1)
        return protocol

    def do(self, process, work, within_ms=1_000):
        task = process.spawn(work)
        self.loop.run_until(task.done, self.loop.now_ms + within_ms)
        return task.result()

    def run(self, duration_ms):
        self.loop.run_until(lambda: False, self.loop.now_ms + duration_ms)


@pytest.fixture
def pair():
    made = Pair()
    yield made
    made.loop.close()


def test_time_moves_to_what_is_due_next_and_no_further():
    loop = VirtualLoop()
    process = Process(loop, "p", "h")
    told = []

    async def wait():
        await asyncio.sleep(0.25)
        told.append(loop.now_ms)

    process.run(Timer, ProcessClock(loop, 0)).call_after(100, lambda: told.append(loop.now_ms))
    process.spawn(wait())

    assert not loop.run_until(lambda: False, 1_000)
    assert told == [100, 250]
    assert loop.now_ms == 1_000


def test_a_paused_process_does_what_has_become_due_when_it_goes_on():
    loop = VirtualLoop()
    paused, other = Process(loop, "p", "h"), Process(loop, "o", "h")
    told = []

    async def wait(name, duration_s):
        await asyncio.sleep(duration_s)
        told.append((name, loop.now_ms))

    paused.spawn(wait("paused", 0.1))
    paused.run(Timer, ProcessClock(loop, 0)).call_after(50, lambda: told.append(("timer", loop.now_ms)))
    other.spawn(wait("other", 0.2))
    loop.run_until(lambda: False, 10)
    paused.pause()
    loop.run_until(lambda: False, 500)
    paused.resume()
    loop.run_until(lambda: False, 600)

    assert sorted(told) == [("other", 200), ("paused", 500), ("timer", 500)]


def test_an_error_of_a_callback_ends_the_run():
    loop = VirtualLoop()
    loop.at_ms(5, lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        loop.run_until(lambda: False, 10)


def test_bytes_of_one_connection_arrive_in_order_and_those_of_two_overtake_each_other(pair):
    first, second = (pair.do(pair.client, pair.connect()) for _ in range(2))
    for number in range(50):
        first.transport.write(b"%02d" % number)
        second.transport.write(b"%02d" % number)
        pair.run(0.3)
    pair.run(100)

    near, far = pair.accepted
    assert near.received == far.received == b"".join(b"%02d" % number for number in range(50))
    before = [one < other for one, other in zip(near.arrivals, far.arrivals, strict=False)]
    assert {True, False} == set(before) or near.arrivals[0] != far.arrivals[0]


def test_a_cut_holds_bytes_and_those_who_connect_until_it_is_mended(pair):
    protocol = pair.do(pair.client, pair.connect())
    pair.network.cut("c", "s")
    protocol.transport.write(b"request")
    pair.accepted[0].transport.write(b"the other way")
    connecting = pair.client.spawn(pair.connect())
    pair.run(5_000)

    assert pair.accepted[0].received == b""
    assert protocol.received == b"the other way"
    assert not connecting.done()

    pair.network.mend("c", "s")
    pair.run(100)

    assert pair.accepted[0].received == b"request"
    assert connecting.done()


def test_a_paused_process_receives_when_it_goes_on(pair):
    protocol = pair.do(pair.client, pair.connect())
    pair.server.pause()
    protocol.transport.write(b"request")
    pair.run(1_000)

    assert pair.accepted[0].received == b""

    pair.server.resume()
    pair.network.resume(pair.server)
    pair.run(100)

    assert pair.accepted[0].received == b"request"


def test_a_killed_process_is_heard_of_and_nobody_listens_there(pair):
    protocol = pair.do(pair.client, pair.connect())
    pair.server.is_dead = True
    pair.network.end(pair.server, is_told=True)
    pair.run(100)

    assert protocol.lost_ms is not None
    with pytest.raises(ConnectionRefusedError):
        pair.do(pair.client, pair.connect())


def test_of_a_machine_without_power_nothing_is_heard_until_it_is_back(pair):
    protocol = pair.do(pair.client, pair.connect())
    pair.server.is_dead = True
    pair.network.end(pair.server, is_told=False)
    pair.network.dark.add("s")
    protocol.transport.write(b"request")
    connecting = pair.client.spawn(pair.connect())
    pair.run(5_000)

    assert protocol.lost_ms is None
    assert not connecting.done()

    pair.network.dark.discard("s")
    pair.network.wake()
    protocol.transport.write(b"another")
    pair.run(100)

    assert protocol.lost_ms is not None
    with pytest.raises(ConnectionRefusedError):
        connecting.result()


def test_a_severed_connection_is_lost_at_both_ends(pair):
    protocol = pair.do(pair.client, pair.connect())
    pair.network.sever(protocol.transport)
    pair.run(100)

    assert protocol.lost_ms is not None
    assert pair.accepted[0].lost_ms is not None
