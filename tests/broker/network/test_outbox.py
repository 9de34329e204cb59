"""Answers of one turn of the loop: held while others are handled, sent together, in order, and lost on no way."""

import asyncio
import os
import socket

import pytest

from odradek.broker.network.outbox import Outbox
from odradek.broker.network.socket_writer import SocketWriter
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log_segments import LogSlice


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


def with_clients(count, run):
    """Call ``run(outbox, *beds)`` where there is a loop, and in the end let go of what it had."""

    async def all_of_it():
        outbox = Outbox()
        beds = []
        for _ in range(count):
            ours, theirs = socket.socketpair()
            theirs.setblocking(False)
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
            beds.append(Bed(outbox, transport, theirs))
        try:
            run(outbox, *beds)
        finally:
            for bed in beds:
                bed.transport.abort()
                bed.theirs.close()

    asyncio.run(all_of_it())


def arrive(outbox, times):
    for _ in range(times):
        outbox.arrived()


def test_a_request_that_comes_alone_is_answered_at_once():
    def run(outbox, bed):
        for answer in (b"first", b"second"):
            outbox.arrived()
            bed.writer.write([answer])
            assert bed.received == answer
            outbox.turn_ended()

    with_clients(1, run)


def test_what_comes_behind_it_in_the_same_turn_waits_for_its_end():
    def run(outbox, one, other):
        outbox.arrived()
        one.writer.write([b"one"])
        outbox.arrived()
        other.writer.write([b"other"])
        assert (one.received, other.received) == (b"one", b"")
        assert other.writer.pending_bytes == len(b"other")
        outbox.turn_ended()
        assert (one.received, other.received) == (b"", b"other")
        assert other.writer.pending_bytes == 0

    with_clients(2, run)


def test_after_a_turn_of_many_the_first_of_the_next_waits_too():
    def run(outbox, bed):
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

    with_clients(1, run)


def test_several_answers_to_one_client_go_out_in_order():
    def run(outbox, bed):
        arrive(outbox, 2)
        for answer in (b"a", b"b", b"c"):
            bed.writer.write([answer])
        outbox.turn_ended()
        assert bed.received == b"abc"
        assert bed.writer.sent_bytes == len(b"abc")

    with_clients(1, run)


def test_what_is_done_after_the_turn_is_held_for_as_long_as_it_takes():
    def run(outbox, one, other):
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

    with_clients(2, run)


def test_for_a_request_that_came_alone_that_is_not_held_either():
    def run(outbox, bed):
        outbox.arrived()
        outbox.turn_ended()

        def flush():
            bed.writer.write([b"answer"])
            assert bed.received == b"answer"

        outbox.run(flush)

    with_clients(1, run)


def test_answers_are_sent_though_what_came_after_them_failed():
    def run(outbox, bed):
        arrive(outbox, 2)
        outbox.turn_ended()

        def flush():
            bed.writer.write([b"answer"])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            outbox.run(flush)
        assert bed.received == b"answer"
        assert not outbox.is_holding

    with_clients(1, run)


def test_no_more_is_held_for_a_client_than_64_kib():
    def run(outbox, bed):
        arrive(outbox, 2)
        small, large = os.urandom(60 * 1024), os.urandom(5 * 1024)
        bed.writer.write([small])
        assert bed.received == b""
        bed.writer.write([large])
        assert bed.received == small + large
        outbox.turn_ended()
        assert bed.received == b""

    with_clients(1, run)


def test_a_slice_of_a_file_does_not_overtake_what_is_held(tmp_path):
    contents = os.urandom(64 * 1024)
    (tmp_path / "segment").write_bytes(contents)
    file = RealFileSystem().open(str(tmp_path / "segment"))

    def run(outbox, bed):
        arrive(outbox, 2)
        bed.writer.write([b"held"])
        bed.writer.write([b"head", LogSlice(file, 0, len(contents))])
        bed.writer.write([b"tail"])
        outbox.turn_ended()
        assert bed.received == b"held" + b"head" + contents + b"tail"

    with_clients(1, run)
    file.close()


def test_a_client_that_is_gone_takes_nobody_elses_answer_with_it():
    def run(outbox, gone, closed, there):
        arrive(outbox, 2)
        for bed in (gone, closed, there):
            bed.writer.write([b"answer"])
        gone.transport.abort()
        closed.writer.close()
        outbox.turn_ended()
        assert there.received == b"answer"
        assert closed.received == b""

    with_clients(3, run)


@pytest.mark.interpreted
def test_one_that_cannot_be_sent_is_reported_and_the_others_are_sent(capsys):
    class Broken(SocketWriter):
        def send_held(self):
            raise RuntimeError("no such transport")

    def run(outbox, broken, there):
        broken.writer = Broken(broken.transport, lambda: None, outbox)
        arrive(outbox, 2)
        for bed in (broken, there):
            bed.writer.write([b"answer"])
        outbox.turn_ended()
        assert (broken.received, there.received) == (b"", b"answer")

    with_clients(2, run)
    assert "no such transport" in capsys.readouterr().err
