"""Answers of one turn of the loop: held while others are handled, sent together, in order, and lost on no way."""

import asyncio
import os
import socket
from contextlib import asynccontextmanager

import pytest

from odradek.broker.network.response_queue import Outbox
from odradek.broker.network.socket_writer import SocketWriter
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.local_log import LogSlice

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])


class Bed:
    """One client's socket; ``received`` is what it has been sent by now."""

    def __init__(self, outbox, transport, theirs):
        self.transport = transport
        self.theirs = theirs
        self.writer = SocketWriter(transport, lambda: None, outbox)

    @property
    def received(self):
        try:
            return self.theirs.recv(10_000_000)
        except BlockingIOError:
            return b""


@asynccontextmanager
async def with_clients(count):
    """An outbox and the beds of so many clients; in the end what they had is let go of."""
    outbox = Outbox()
    beds = []
    for _ in range(count):
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
        beds.append(Bed(outbox, transport, theirs))
    try:
        yield outbox, *beds
    finally:
        for bed in beds:
            bed.transport.abort()
            bed.theirs.close()


def arrive(outbox, times):
    for _ in range(times):
        outbox.arrived()


async def test_a_request_that_comes_alone_is_answered_at_once():
    async with with_clients(1) as (outbox, bed):
        for answer in (b"first", b"second"):
            outbox.arrived()
            bed.writer.write([answer])
            assert bed.received == answer
            outbox.turn_ended()


async def test_what_comes_behind_it_in_the_same_turn_waits_for_its_end():
    async with with_clients(2) as (outbox, one, other):
        outbox.arrived()
        one.writer.write([b"one"])
        outbox.arrived()
        other.writer.write([b"other"])
        assert (one.received, other.received) == (b"one", b"")
        assert other.writer.pending_bytes == len(b"other")
        outbox.turn_ended()
        assert (one.received, other.received) == (b"", b"other")
        assert other.writer.pending_bytes == 0


async def test_after_a_turn_of_many_the_first_of_the_next_waits_too():
    async with with_clients(1) as (outbox, bed):
        arrive(outbox, 2)
        outbox.turn_ended()
        outbox.arrived()
        bed.writer.write([b"answer"])
        assert bed.received == b""
        outbox.turn_ended()
        assert bed.received == b"answer"
        outbox.arrived()
        bed.writer.write([b"alone again"])
        assert bed.received == b"alone again"


async def test_several_answers_to_one_client_go_out_in_order():
    async with with_clients(1) as (outbox, bed):
        arrive(outbox, 2)
        for answer in (b"a", b"b", b"c"):
            bed.writer.write([answer])
        outbox.turn_ended()
        assert bed.received == b"abc"
        assert bed.writer.sent_bytes == len(b"abc")


async def test_what_is_done_after_the_turn_is_held_for_as_long_as_it_takes():
    async with with_clients(2) as (outbox, one, other):
        arrive(outbox, 2)
        outbox.turn_ended()

        def flush():
            one.writer.write([b"one"])
            other.writer.write([b"other"])
            assert (one.received, other.received) == (b"", b"")

        outbox.run(flush)
        assert (one.received, other.received) == (b"one", b"other")
        one.writer.write([b"later"])
        assert one.received == b"later"


async def test_for_a_request_that_came_alone_that_is_not_held_either():
    async with with_clients(1) as (outbox, bed):
        outbox.arrived()
        outbox.turn_ended()

        def flush():
            bed.writer.write([b"answer"])
            assert bed.received == b"answer"

        outbox.run(flush)


async def test_answers_are_sent_though_what_came_after_them_failed():
    async with with_clients(1) as (outbox, bed):
        arrive(outbox, 2)
        outbox.turn_ended()

        def flush():
            bed.writer.write([b"answer"])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            outbox.run(flush)
        assert bed.received == b"answer"
        assert not outbox.is_holding


async def test_no_more_is_held_for_a_client_than_64_kib():
    async with with_clients(1) as (outbox, bed):
        arrive(outbox, 2)
        small, large = os.urandom(60 * 1024), os.urandom(5 * 1024)
        bed.writer.write([small])
        assert bed.received == b""
        bed.writer.write([large])
        assert bed.received == small + large
        outbox.turn_ended()
        assert bed.received == b""


async def test_a_slice_of_a_file_does_not_overtake_what_is_held(tmp_path):
    contents = os.urandom(64 * 1024)
    (tmp_path / "segment").write_bytes(contents)
    file = RealFileSystem().open(str(tmp_path / "segment"))

    async with with_clients(1) as (outbox, bed):
        arrive(outbox, 2)
        bed.writer.write([b"held"])
        bed.writer.write([b"head", LogSlice(file, 0, len(contents))])
        bed.writer.write([b"tail"])
        outbox.turn_ended()
        assert bed.received == b"held" + b"head" + contents + b"tail"
    file.close()


async def test_a_client_that_is_gone_takes_nobody_elses_answer_with_it():
    async with with_clients(3) as (outbox, gone, closed, there):
        arrive(outbox, 2)
        for bed in (gone, closed, there):
            bed.writer.write([b"answer"])
        gone.transport.abort()
        closed.writer.close()
        outbox.turn_ended()
        assert there.received == b"answer"
        assert closed.received == b""


@pytest.mark.interpreted
async def test_one_that_cannot_be_sent_is_reported_and_the_others_are_sent(capsys):
    class Broken(SocketWriter):
        def send_held(self):
            raise RuntimeError("no such transport")

    async with with_clients(2) as (outbox, broken, there):
        broken.writer = Broken(broken.transport, lambda: None, outbox)
        arrive(outbox, 2)
        for bed in (broken, there):
            bed.writer.write([b"answer"])
        outbox.turn_ended()
        assert (broken.received, there.received) == (b"", b"answer")
    assert "no such transport" in capsys.readouterr().err
