"""The health check: one ApiVersions round trip, and a clear no where there is none."""

import socket
import struct
import threading
from contextlib import closing

import pytest

from odradek.cli.health import check, main


@pytest.fixture
def answering():
    """A server that reads one request and answers with the bytes given; (host, port)."""
    threads = []

    def start(answer: bytes):
        server = socket.create_server(("127.0.0.1", 0))

        def serve():
            with server, server.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return server.getsockname()

    yield start
    for thread in threads:
        thread.join()


def test_an_answer_without_error_is_healthy(answering):
    check(*answering(struct.pack(">iih", 6, 1, 0)))


def test_an_answer_in_two_pieces_is_read_whole(answering):
    check(*answering(struct.pack(">iihiq", 18, 1, 0, 0, 0)))


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1", struct.pack(">iih", 6, 1, 35), struct.pack(">iih", 6, 2, 0)],
    ids=["no", "short", "error", "other"],
)
def test_any_other_answer_is_not_healthy(answering, answer):
    with pytest.raises(OSError, match=r"answer"):
        check(*answering(answer))


def test_the_check_of_a_running_broker_exits_with_status_0(broker_process):
    assert main([broker_process().address]) == 0


def test_the_check_of_nothing_is_one_line_on_stderr_and_status_1(capsys):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    assert main([f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_an_address_that_is_none_is_status_1(capsys):
    assert main(["nonsense"]) == 1
