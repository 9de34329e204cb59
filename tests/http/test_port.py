"""The metrics over HTTP, TLS, and clients of the port that are slow, silent or strangers."""

import asyncio
import json
import shutil
import socket
import ssl
from pathlib import Path

import pytest

from odradek.cli.certificate_file import CertificateFile
from odradek.http import connection, port
from odradek.http.access import Access
from odradek.http.port import HttpPort
from tests.http.conftest import TOKEN, served

OPEN = Access(TOKEN)
SCRAPERS = "the scrapers' own"
GUARDED = Access(TOKEN, metrics_token=SCRAPERS)
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def with_token(token, method=b"GET", path=b"/metrics"):
    return b"%b %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %b\r\n\r\n" % (method, path, token)


async def exchange(http_port, request, **client):
    reader, writer = await asyncio.open_connection(http_port.host, http_port.port, **client)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def ask(broker, request, access=OPEN, context=None, **client):
    """(status, headers, body) of the answer to raw bytes."""
    async with served(broker, access, context) as http_port:
        answer = await exchange(http_port, request, **client)
    head, _, body = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    return status_line.split(" ", 1)[1], {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}, body


async def told(reading):
    """The result of ``reading``, or nothing where the connection was reset."""
    try:
        return await reading
    except ConnectionError:
        return b""


async def test_a_scrape_is_answered_with_every_metric(broker):
    status, headers, body = await ask(broker, SCRAPE)
    assert (status, int(headers["content-length"])) == ("200 OK", len(body))
    assert headers["content-type"].startswith("text/plain")
    assert b'odradek_broker_info{cluster_id="' in body


async def test_the_accept_header_is_heeded(broker):
    request = SCRAPE[:-2] + b"accept: application/openmetrics-text; version=1.0.0\r\n\r\n"
    _, headers, body = await ask(broker, request)
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


async def test_head_gets_the_headers_alone(broker):
    status, headers, body = await ask(broker, SCRAPE.replace(b"GET", b"HEAD"))
    assert (status, body) == ("200 OK", b"")
    assert int(headers["content-length"]) > 0


async def test_a_query_is_passed_over(broker):
    assert (await ask(broker, SCRAPE.replace(b"/metrics", b"/metrics?debug=1")))[0] == "200 OK"


async def test_a_broker_that_does_not_run_has_no_metrics_and_is_not_ready(broker):
    async with served(broker, OPEN) as http_port:
        await broker.stop()
        assert b" 503 " in await exchange(http_port, SCRAPE)
        assert b'"is_running": false' in await exchange(http_port, SCRAPE.replace(b"/metrics", b"/ready"))
        await broker.start()
        assert b" 200 " in await exchange(http_port, SCRAPE.replace(b"/metrics", b"/ready"))


async def test_a_token_that_was_set_guards_the_metrics(broker):
    assert (await ask(broker, with_token(TOKEN.encode()), GUARDED))[0] == "200 OK"
    assert (await ask(broker, with_token(SCRAPERS.encode()), GUARDED))[0] == "200 OK"


@pytest.mark.parametrize("request_", [with_token(SCRAPERS.encode(), path=b"/v1/topics"), with_token(SCRAPERS.encode(), b"POST")])
async def test_the_scrapers_token_opens_nothing_but_the_metrics(broker, request_):
    assert (await ask(broker, request_, GUARDED))[0] == "401 Unauthorized"


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        (SCRAPE, "it has no token"),
        (with_token(b"let me"), "its token is wrong"),
        (with_token(b"let me in", path=b"/v1").replace(b"Bearer", b"Basic"), "its token is wrong"),
        (with_token(b"\xff\xfe", b"POST"), "its token is wrong"),
    ],
    ids=["no token", "another token", "another scheme", "bytes"],
)
async def test_without_it_everything_is_refused_and_that_is_a_line(broker, request_, cause, capsys):
    status, headers, body = await ask(broker, request_, GUARDED)
    assert (status, headers["www-authenticate"]) == ("401 Unauthorized", "Bearer")
    assert b"odradek_" not in body
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"], line["peer"]) == ("HTTP request refused", cause, "127.0.0.1")
    assert "let me" not in json.dumps(line)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (with_token(TOKEN.encode(), path=b"/nowhere"), "404 Not Found"),
        (with_token(TOKEN.encode(), b"POST"), "405 Method Not Allowed"),
        (with_token(TOKEN.encode(), b"BREW"), "405 Method Not Allowed"),
        (b"hello\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000, "431 Request Header Fields Too Large"),
    ],
    ids=["nowhere", "POST", "BREW", "no HTTP", "no host", "a long head"],
)
async def test_what_is_no_scrape_is_refused_in_json(broker, request_, status):
    found, _, body = await ask(broker, request_)
    assert (found, list(json.loads(body))) == (status, ["error"])


@pytest.fixture
def context(certificates):
    """Of a port with a certificate."""
    return CertificateFile(Path(certificates.path("broker.pem")), "--http-certificate").context


async def test_with_a_certificate_a_scrape_goes_by_tls(broker, certificates, context):
    client = certificates.client_context()
    status, headers, body = await ask(broker, SCRAPE, OPEN, context, ssl=client)
    assert (status, int(headers["content-length"])) == ("200 OK", len(body))


async def test_with_a_certificate_what_is_no_tls_is_no_scrape(broker, context, capsys):
    async with served(broker, OPEN, context) as http_port:
        assert b"HTTP" not in await told(exchange(http_port, SCRAPE))
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"]) == ("TLS handshake failed", "the client sent HTTP, not TLS")


async def test_a_client_that_does_not_trust_the_certificate_is_a_line(broker, certificates, context, capsys):
    client = certificates.client_context(trusted="strangers")

    def scrape(address):
        with socket.create_connection(address) as plain, pytest.raises(ssl.SSLCertVerificationError):
            client.wrap_socket(plain, server_hostname="localhost")

    async with served(broker, OPEN, context) as http_port:
        await asyncio.to_thread(scrape, (http_port.host, http_port.port))
        while not (log := capsys.readouterr().err):  # noqa: ASYNC110  it has no event for it
            await asyncio.sleep(0)
    [line] = map(json.loads, log.splitlines())
    assert (line["event"], line["cause"]) == ("TLS handshake failed", "the client does not trust the broker's certificate")


async def test_a_new_certificate_is_shown_to_the_next_connection(broker, certificates, tmp_path, capsys):
    path = tmp_path / "port.pem"
    shutil.copyfile(certificates.path("stray.pem"), path)
    file = CertificateFile(path, "--http-certificate")
    trusting = certificates.client_context()
    async with served(broker, OPEN, file.context) as http_port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await exchange(http_port, SCRAPE, ssl=trusting)
        shutil.copyfile(certificates.path("broker.pem"), path)
        assert b" 200 " in await exchange(http_port, SCRAPE, ssl=trusting)
    assert "certificate reloaded" in capsys.readouterr().err


async def test_handshakes_that_have_not_begun_count_as_connections(broker, certificates, context, monkeypatch):
    monkeypatch.setattr(port, "MOST_CONNECTIONS", 1)
    async with served(broker, OPEN, context) as http_port:
        _, waiting = await asyncio.open_connection(http_port.host, http_port.port)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await exchange(http_port, SCRAPE, ssl=certificates.client_context())
        waiting.close()


async def test_a_handshake_that_does_not_end_is_ended(broker, context, monkeypatch):
    monkeypatch.setattr(port, "HANDSHAKE_S", 0.01)
    async with served(broker, OPEN, context) as http_port:
        assert await told(exchange(http_port, b"")) == b""


@pytest.mark.parametrize("begun", [b"", b"GET /metrics HTTP/1.1\r\nHost: x\r\n"])
async def test_a_head_that_does_not_end_is_ended(broker, begun, monkeypatch):
    monkeypatch.setattr(connection, "IDLE_S", 0.01)
    async with served(broker, OPEN) as http_port:
        assert await told(exchange(http_port, begun)) == b""


async def test_a_connection_without_a_further_request_is_ended(broker, monkeypatch):
    monkeypatch.setattr(connection, "IDLE_S", 0.2)
    async with served(broker, OPEN) as http_port:
        kept = SCRAPE.replace(b"Connection: close\r\n", b"")
        assert (await told(exchange(http_port, kept))).startswith(b"HTTP/1.1 200 OK")


async def test_a_client_that_does_not_read_its_answers_is_ended(broker, monkeypatch):
    monkeypatch.setattr(connection, "STALLED_S", 0.01)
    async with served(broker, OPEN) as http_port:
        reader, writer = await asyncio.open_connection(http_port.host, http_port.port, limit=1)
        reader._transport.pause_reading()

        async def ask_and_never_read():
            while True:
                writer.write(SCRAPE.replace(b"Connection: close\r\n", b"") * 100)
                await writer.drain()

        with pytest.raises(ConnectionError):
            await ask_and_never_read()
        writer.close()


async def test_a_fault_ends_the_request_and_is_logged(broker, monkeypatch, capsys):
    monkeypatch.setattr("odradek.broker.metrics.exposition.scrape", None)
    assert (await ask(broker, SCRAPE))[0] == "500 Internal Server Error"
    assert "TypeError" in capsys.readouterr().err


async def test_connections_wait_until_the_port_is_served(broker):
    http_port = HttpPort()
    await http_port.bind("127.0.0.1", [0])
    _, writer = await asyncio.open_connection(http_port.host, http_port.port)
    writer.close()
    await http_port.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(http_port.host, http_port.port)


async def test_the_next_free_port_is_taken_and_a_busy_one_that_was_asked_for_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        http_port = HttpPort()
        await http_port.bind("127.0.0.1", [busy, 0])
        assert http_port.port not in (0, busy)
        await http_port.close()
        with pytest.raises(OSError, match=f"cannot bind 127.0.0.1:{busy}: address already in use"):
            await HttpPort().bind("127.0.0.1", [busy])


@pytest.mark.parametrize(
    ("address", "url"),
    [(("127.0.0.1", 9404), "http://127.0.0.1:9404"), (("::1", 9404), "http://[::1]:9404"), (("", 9404), "http://localhost:9404")],
)
def test_its_url_can_be_asked(address, url):
    http_port = HttpPort()
    http_port.host, http_port.port = address
    assert http_port.url == url
