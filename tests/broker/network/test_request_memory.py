"""Requests that come in part hold so much memory and no more, and never wait for each other for good."""

from collections import deque

import pytest

from odradek.broker.network.connection import Connection
from odradek.broker.network.request_limits import RequestMemory
from odradek.timing.clock import VirtualClock
from tests.broker.network.test_connection import FakeTransport, Setup

pytestmark = pytest.mark.interpreted

MIB = 1024 * 1024


class Client:
    """A connection whose frame has ``announced`` bytes; ``receive`` goes on with it as far as the memory lets it."""

    def __init__(self, memory, announced):
        self.memory = memory
        self.announced = announced
        self.has = 0
        self.size = 0
        self.is_waiting = False
        self.is_idle = False
        self.last_active_ms = 0.0

    def receive(self, size):
        """More of the frame comes, into a buffer of ``size`` bytes."""
        self.is_waiting = not self.memory.may_receive(self, size, size - self.size)
        if not self.is_waiting:
            self.size = self.has = size
        self.wanted = size
        return not self.is_waiting

    def resume_receiving(self):
        self.receive(self.wanted)

    def finish(self):
        """The frame has come; its buffer is kept for the next one."""
        self.is_idle = True
        self.memory.release(self, self.size, is_whole=True)

    def trim(self):
        if self.is_idle:
            self.size = 0
            self.memory.release(self, 0, is_whole=False)

    def close(self):
        self.memory.forget(self)


class Bed:
    def __init__(self, limit):
        self.clock = VirtualClock()
        self.turns = deque()
        self.memory = RequestMemory(limit, self.clock, self.turns.append)

    def client(self, announced=90 * MIB):
        return Client(self.memory, announced)

    def turn(self):
        """The loop's next turn."""
        for _ in range(len(self.turns)):
            self.turns.popleft()()

    def settle(self):
        while self.turns:
            self.turn()


def test_clients_beyond_the_limit_wait_until_others_are_done():
    bed = Bed(10 * MIB)
    clients = [bed.client() for _ in range(5)]
    taken = []
    for client in clients:
        taken.append(client.receive(4 * MIB))
        bed.settle()
    # The third is the one that may pass the limit.
    assert taken == [True, True, True, False, False]
    assert bed.memory.is_short
    clients[0].close()
    clients[1].close()
    bed.settle()
    assert [client.is_waiting for client in clients[2:]] == [False, False, True]


def test_frames_that_fill_the_memory_together_all_come_in_the_end():
    bed = Bed(10 * MIB)
    clients = [bed.client(8 * MIB) for _ in range(10)]
    done = 0
    for _ in range(100):
        for client in clients:
            if not client.is_waiting and client.size < client.announced:
                client.receive(min(max(2 * client.size, MIB), client.announced))
            if not client.is_waiting and client.size == client.announced and not client.is_idle:
                client.finish()
                client.close()
                done += 1
        bed.turn()
        assert bed.memory.held_bytes <= 10 * MIB + 8 * MIB
    assert done == 10
    assert bed.memory.held_bytes == 0


def test_small_frames_pass_while_large_ones_wait():
    bed = Bed(MIB)
    for _ in range(3):
        bed.client().receive(MIB)
        bed.settle()
    assert bed.memory.is_short
    assert all(bed.client().receive(64 * 1024) for _ in range(20))


def test_buffers_that_are_only_kept_make_room_for_frames():
    bed = Bed(10 * MIB)
    kept = [bed.client() for _ in range(2)]
    for client in kept:
        client.receive(4 * MIB)
        client.finish()
        bed.settle()
    assert bed.client().receive(4 * MIB)
    assert [client.size for client in kept] == [0, 0]
    assert not bed.memory.is_short


def test_a_turn_takes_so_much_memory_and_the_next_one_goes_on():
    bed = Bed(-1)
    clients = [bed.client() for _ in range(100)]
    for client in clients:
        client.receive(MIB)
    went_on = []
    while any(client.is_waiting for client in clients):
        before = sum(client.is_waiting for client in clients)
        bed.turn()
        went_on.append(before - sum(client.is_waiting for client in clients))
    assert len(went_on) > 5
    assert max(went_on) <= 8


def test_without_a_limit_nobody_waits_for_memory():
    bed = Bed(-1)
    for _ in range(100):
        bed.client().receive(50 * MIB)
        bed.settle()
    assert not bed.memory.is_short


def test_stalled_are_those_who_hold_what_others_wait_for():
    bed = Bed(10 * MIB)
    early = bed.client()
    early.receive(8 * MIB)
    bed.settle()
    bed.clock.advance(29_000)
    late = bed.client()
    late.receive(8 * MIB)
    bed.settle()
    bed.clock.advance(2_000)
    assert bed.memory.stalled() == []
    third = bed.client()
    third.receive(8 * MIB)
    assert bed.memory.stalled() == [early]
    early.close()
    late.finish()
    late.close()
    bed.settle()
    assert not third.is_waiting
    assert bed.memory.stalled() == []


class Connected:
    """Connections that announce 20 MiB each, and share 4 MiB."""

    def __init__(self):
        self.setup = Setup()
        self.turns = deque()
        self.memory = self.setup.registry.memory = RequestMemory(4 * MIB, self.setup.clock, self.turns.append)

    def connect(self):
        connection = Connection(self.setup.dispatcher, self.setup.registry, "PLAINTEXT", 100 * MIB)
        transport = FakeTransport()
        connection.connection_made(transport)
        self.send(connection, (20 * MIB).to_bytes(4, "big"))
        return connection, transport

    def send(self, connection, data):
        """Send until the connection is not read any more; how many bytes it took."""
        taken = 0
        while taken < len(data) and connection._transport.reading:
            room = connection.get_buffer(-1)
            chunk = data[taken : taken + len(room)]
            room[: len(chunk)] = chunk
            connection.buffer_updated(len(chunk))
            taken += len(chunk)
            while self.turns:
                self.turns.popleft()()
        return taken


def test_a_connection_is_not_read_while_its_frame_finds_no_memory():
    bed = Connected()
    first, _ = bed.connect()
    second, transport = bed.connect()
    third, waiting = bed.connect()
    bed.send(first, bytes(2 * MIB))
    assert bed.send(second, bytes(3 * MIB)) == 3 * MIB
    assert bed.send(third, bytes(3 * MIB)) < 2 * MIB
    assert (transport.reading, waiting.reading) == (True, False)
    bed.send(second, bytes(17 * MIB))
    assert len(bed.setup.dispatcher.seen) == 1
    second.trim()
    while bed.turns:
        bed.turns.popleft()()
    assert waiting.reading
    first.connection_lost(None)
    second.connection_lost(None)
    third.connection_lost(None)
    assert bed.memory.held_bytes == 0


def test_a_connection_that_stalls_while_others_wait_is_closed():
    bed = Connected()
    stalling, stalled = bed.connect()
    waiting, _ = bed.connect()
    privileged, other = bed.connect()
    bed.send(stalling, bytes(4 * MIB))
    bed.setup.clock.advance(25_000)
    bed.send(privileged, bytes(4 * MIB))
    bed.send(waiting, bytes(4 * MIB))
    bed.setup.clock.advance(15_000)
    assert (stalled.closed, other.closed) == (True, False)
