"""The health check: one ApiVersions round trip, and a clear no where there is none."""

import json
import socket
import struct
import threading
from contextlib import closing

import pytest

from odradek.cli.health import check, main
from tests.broker_process import BrokerProcess
from tests.secure import SecureBroker


@pytest.fixture(autouse=True)
def temporary(monkeypatch, tmp_path):
    """Where it remembers who speaks TLS."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


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
    with pytest.raises(OSError, match=r"response"):
        check(*answering(answer))


def test_the_check_of_a_running_broker_exits_with_status_0(broker_process):
    assert main([broker_process().address]) == 0


def test_a_broker_that_speaks_tls_is_asked_by_tls_and_the_first_time_alone_without(tmp_path, temporary):
    with SecureBroker(tmp_path / "data") as broker:
        assert [main([broker.address]) for _ in range(3)] == [0, 0, 0]
        assert [json.loads(line)["event"] for line in broker.stderr.splitlines()] == ["TLS handshake failed"]
        assert len(list(temporary.glob("odradek-health-*"))) == 1
        secure_port = broker.port
    # Another one on its port, which does not.
    with BrokerProcess(tmp_path / "plain") as broker:
        broker.stop()
        broker.port = secure_port
        broker.start()
        assert main([broker.address]) == 0
        assert list(temporary.glob("odradek-health-*")) == []


def test_a_broker_that_wants_a_certificate_is_asked_with_kafkas_file(broker_process, certificates, tmp_path, capsys):
    settings = {"listeners": "SSL://127.0.0.1:0", **certificates.settings(client_auth="required")}
    broker = broker_process(settings=settings)
    assert main([broker.address]) == 1
    assert capsys.readouterr().err.startswith("unhealthy: ")
    file = tmp_path / "client.properties"
    lines = {"security.protocol": "SSL", **certificates.settings(), "ssl.keystore.location": certificates.path("orders.pem")}
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    assert main([broker.address, "--command-config", str(file)]) == 0
    assert main(["--command-config", str(file), broker.address]) == 0
    capsys.readouterr()
    assert main(["--command-config"]) == 1
    assert capsys.readouterr().err == "unhealthy: --command-config needs a file\n"
    assert main([broker.address, "--command-config", str(tmp_path / "none")]) == 1


def test_the_check_of_nothing_is_one_line_on_stderr_and_status_1(capsys):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    assert main([f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_an_address_that_is_none_is_status_1(capsys):
    assert main(["nonsense"]) == 1
