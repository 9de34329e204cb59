"""Large responses over a real socket pair, read slowly: all of it arrives, in order, from the file and from memory."""

import asyncio
import errno
import os
import socket

import pytest

from odradek.broker.network.response_queue import Outbox
from odradek.broker.network.socket_writer import SocketWriter
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.local_log import LogSlice

# What a transport says and returns differs between the two.
pytestmark = pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])


class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, exc):
        self.lost = True


@pytest.fixture
def data(tmp_path):
    contents = os.urandom(6 * 1024 * 1024)
    (tmp_path / "segment").write_bytes(contents)
    file = RealFileSystem().open(str(tmp_path / "segment"))
    yield contents, file
    file.close()


async def _connected():
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    transport, _ = await asyncio.get_running_loop().create_connection(Protocol, sock=ours)
    return transport, theirs


async def _read_all(theirs, size):
    received = bytearray()
    while len(received) < size:
        received += await asyncio.get_running_loop().sock_recv(theirs, 300_000)
    return bytes(received)


async def test_a_response_larger_than_the_socket_takes_arrives_whole(data):
    contents, file = data

    transport, theirs = await _connected()
    drained = asyncio.Event()
    writer = SocketWriter(transport, drained.set, Outbox())
    writer.write([b"head", LogSlice(file, 0, len(contents)), b"middle", LogSlice(file, 100, 200), b"tail"])
    assert writer.is_waiting
    assert writer.pending_bytes > 0
    writer.write([b"next response"])
    expected = b"head" + contents + b"middle" + contents[100:300] + b"tail" + b"next response"
    assert await _read_all(theirs, len(expected)) == expected
    await asyncio.wait_for(drained.wait(), 10)
    assert not writer.is_waiting
    writer.write([b"after"])
    assert await _read_all(theirs, 5) == b"after"
    assert writer.sent_bytes == len(expected) + 5
    writer.close()
    transport.close()
    theirs.close()


async def test_a_response_in_large_chunks_arrives_whole(data):
    contents, _ = data

    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    half = len(contents) // 2
    writer.write([b"head", contents[:half], b"middle", contents[half:]])
    # It is not put together.
    assert [len(chunk) for chunk in writer.queue][-1] == len(contents) - half
    writer.write([b"next response"])
    expected = b"head" + contents[:half] + b"middle" + contents[half:] + b"next response"
    assert await _read_all(theirs, len(expected)) == expected
    transport.close()
    theirs.close()


async def test_what_is_queued_in_the_transport_is_not_overtaken(data):
    contents, file = data

    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    first = bytes(8 * 1024 * 1024)
    writer.write([first])
    assert transport.get_write_buffer_size() > 0
    writer.write([LogSlice(file, 0, len(contents))])
    assert await _read_all(theirs, len(first) + len(contents)) == first + contents
    transport.close()
    theirs.close()


async def test_a_reader_that_goes_away_ends_the_connection_and_nothing_else(data):
    contents, file = data

    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    writer.write([LogSlice(file, 0, len(contents))])
    assert writer.is_waiting
    theirs.close()
    while not transport.is_closing():  # noqa: ASYNC110  the transport tells nobody
        await asyncio.sleep(0)
    assert not writer.is_waiting


async def test_a_slice_beyond_the_end_of_its_file_ends_the_connection(data, capsys):
    contents, file = data

    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    writer.write([LogSlice(file, len(contents), 100_000)])
    assert transport.is_closing()
    theirs.close()
    assert "cannot send a response" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "is_disk"), [(errno.EIO, True), (errno.ENOTCONN, False)])
async def test_a_file_that_cannot_be_read_is_told_of(data, monkeypatch, number, is_disk):
    contents, file = data
    told = []

    def refuse(*_):
        raise OSError(number, "refused")

    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    found = LogSlice(file, 0, len(contents))
    found.on_error = told.append
    monkeypatch.setattr(os, "sendfile", refuse)
    writer.write([found])
    assert transport.is_closing()
    theirs.close()
    assert bool(told) is is_disk


async def test_an_answer_is_the_kernels_before_the_turn_is_over():
    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    writer.write([b"an ", b"answer"])
    assert theirs.recv(100) == b"an answer"
    transport.close()
    theirs.close()


async def test_an_answer_larger_than_the_socket_takes_arrives_whole():
    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    answer = os.urandom(8 * 1024 * 1024)
    writer.write([answer])
    writer.write([b"the next"])
    assert await _read_all(theirs, len(answer) + 8) == answer + b"the next"
    transport.close()
    theirs.close()


async def test_an_answer_to_who_has_gone_is_the_transports_affair():
    transport, theirs = await _connected()
    writer = SocketWriter(transport, lambda: None, Outbox())
    theirs.close()
    writer.write([b"an answer"])
    await asyncio.sleep(0.01)
    assert transport.is_closing()
