"""Large responses by a transport that encrypts: a piece at a time, no more than it holds, in order, and never to a descriptor."""

import asyncio
import os

import pytest

from odradek.broker.network.response_queue import Outbox
from odradek.broker.network.socket_writer import SocketWriter
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.local_log import LogSlice

HIGH_BYTES = 600_000
SIZE = 6 * 1024 * 1024


class EncryptingTransport:
    """Keeps what it is given; full, and says so, when it holds ``HIGH_BYTES``, until ``drain``."""

    def __init__(self):
        self.sent = []
        self.held = 0
        self.most_held = 0
        self.is_closed = False
        self.writer = None

    def get_extra_info(self, name, default=None):
        return "a context" if name == "sslcontext" else default

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        return self.held

    def is_closing(self):
        return self.is_closed

    def write(self, data):
        self.sent.append(bytes(data))
        self.held += len(data)
        self.most_held = max(self.most_held, self.held)
        if self.held >= HIGH_BYTES:
            self.writer.pause()

    def drain(self):
        self.held = 0
        self.writer.resume()

    def abort(self):
        self.is_closed = True


@pytest.fixture
def data(tmp_path):
    contents = os.urandom(SIZE)
    (tmp_path / "segment").write_bytes(contents)
    file = RealFileSystem().open(str(tmp_path / "segment"))
    yield contents, file
    file.close()


@pytest.fixture
def written():
    """A writer, its transport, and how often it was drained."""
    transport, drained = EncryptingTransport(), []
    transport.writer = SocketWriter(transport, lambda: drained.append(True), Outbox())
    return transport.writer, transport, drained


async def test_a_large_response_waits_in_its_file_while_the_transport_is_full(data, written):
    contents, file = data
    writer, transport, drained = written
    writer.write([b"head", LogSlice(file, 0, SIZE), b"middle", LogSlice(file, 100, 200), b"tail"])
    assert writer.is_waiting
    writer.write([b"next response"])
    turns = 0
    while writer.is_waiting:
        assert transport.held >= HIGH_BYTES
        transport.drain()
        turns += 1
        assert turns < 100
    expected = b"head" + contents + b"middle" + contents[100:300] + b"tail" + b"next response"
    assert b"".join(transport.sent) == expected
    assert transport.most_held < HIGH_BYTES + 300_000
    assert max(map(len, transport.sent)) <= 256 * 1024
    assert drained == [True]
    assert writer.sent_bytes == len(expected)


async def test_a_reader_that_keeps_up_takes_no_more_than_its_share_of_a_turn(data, written):
    contents, file = data
    writer, transport, drained = written
    transport.writer = None
    transport.write = transport.sent.append
    writer.write([LogSlice(file, 0, SIZE)])
    turns = [sum(map(len, transport.sent))]
    while writer.is_waiting:
        await asyncio.sleep(0)
        turns.append(sum(map(len, transport.sent)))
        assert len(turns) < 100
    assert turns == [1024 * 1024 * number for number in range(1, 7)]
    assert b"".join(transport.sent) == contents
    assert drained == [True]


async def test_a_response_in_large_chunks_goes_a_piece_at_a_time(data, written):
    contents, _ = data
    writer, transport, _ = written
    writer.write([b"head", contents])
    while writer.is_waiting:
        transport.drain()
    assert b"".join(transport.sent) == b"head" + contents


async def test_a_slice_beyond_the_end_of_its_file_ends_the_connection(data, written, capsys):
    _, file = data
    writer, transport, _ = written
    writer.write([LogSlice(file, SIZE - 10, 100_000)])
    assert transport.is_closed
    assert not writer.is_waiting
    assert "cannot send a response" in capsys.readouterr().err


async def test_nothing_is_sent_once_the_connection_is_lost(data, written):
    _, file = data
    writer, transport, drained = written
    writer.write([LogSlice(file, 0, SIZE)])
    sent = len(transport.sent)
    writer.close()
    transport.drain()
    await asyncio.sleep(0)
    assert (len(transport.sent), drained) == (sent, [])
