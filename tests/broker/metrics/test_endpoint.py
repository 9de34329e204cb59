"""The metrics over HTTP."""

import asyncio
import json
import shutil
import socket
import ssl
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.metrics.endpoint import MetricsEndpoint
from odradek.cli.certificate_file import CertificateFile


@asynccontextmanager
async def served(broker, token=None, context=None, **limits):
    endpoint = MetricsEndpoint(broker, token, context, **limits)
    await endpoint.bind("127.0.0.1", 0)
    await endpoint.serve()
    try:
        yield endpoint
    finally:
        endpoint.close()


async def ask(bed, request, token=None, context=None, **client):
    """(status, headers, body) of the answer to raw bytes."""
    async with served(bed and bed.broker, token, context) as endpoint:
        answer = await exchange(endpoint, request, **client)
    head, _, body = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    return status_line.split(" ", 1)[1], dict(line.split(": ", 1) for line in lines), body


async def exchange(endpoint, request, **client):
    reader, writer = await asyncio.open_connection(*endpoint.address, **client)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def told(reading):
    """The result of ``reading``, or nothing where the connection was reset."""
    try:
        return await reading
    except ConnectionResetError:
        return b""


async def test_a_scrape_is_answered_with_every_metric_and_the_connection_closed(bed):
    status, headers, body = await ask(bed, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == "200 OK"
    assert headers["Content-Type"].startswith("text/plain")
    assert int(headers["Content-Length"]) == len(body)
    assert headers["Connection"] == "close"
    assert b'odradek_broker_info{cluster_id="' in body


async def test_the_accept_header_is_heeded(bed):
    _, headers, body = await ask(bed, b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text; version=1.0.0\r\n\r\n")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


SCRAPE = b"GET /metrics HTTP/1.1\r\n\r\n"


def with_token(token, method=b"GET", path=b"/metrics"):
    return b"%b %b HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % (method, path, token)


async def test_who_has_the_token_is_answered(bed):
    assert (await ask(bed, with_token(b"let me in"), token="let me in"))[0] == "200 OK"


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        (SCRAPE, "it has no token"),
        (with_token(b"let me"), "its token is wrong"),
        (with_token(b"let me in", path=b"/").replace(b"Bearer", b"Basic"), "its token is wrong"),
        (with_token(b"\xff\xfe", b"POST"), "its token is wrong"),
    ],
)
async def test_who_has_not_the_token_is_refused_whatever_was_asked_and_that_is_a_line(bed, request_, cause, capsys):
    status, headers, body = await ask(bed, request_, token="let me in")
    assert (status, headers["WWW-Authenticate"]) == ("401 Unauthorized", "Bearer")
    assert b"odradek_" not in body
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"], line["peer"].partition(":")[0]) == ("scrape refused", cause, "127.0.0.1")
    assert "let me" not in json.dumps(line)


async def test_who_guesses_tokens_does_not_fill_the_log(bed, capsys):
    async with served(bed.broker, "let me in") as endpoint:
        for _ in range(15):
            assert b" 401 " in await exchange(endpoint, with_token(b"a guess"))
    assert len(capsys.readouterr().err.splitlines()) == 10


@pytest.fixture
def context(certificates):
    """Of an endpoint with a certificate."""
    return CertificateFile(Path(certificates.path("broker.pem")), "--metrics-certificate").context


async def test_with_a_certificate_a_scrape_goes_by_tls(bed, certificates, context, capsys):
    client = certificates.client_context()
    status, headers, body = await ask(bed, with_token(b"let me in"), "let me in", context, ssl=client)
    assert (status, int(headers["Content-Length"])) == ("200 OK", len(body))
    assert (await ask(bed, SCRAPE, "let me in", context, ssl=client))[0] == "401 Unauthorized"
    assert (await ask(bed, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", None, context, ssl=client))[
        0
    ].startswith("431")


async def test_with_a_certificate_what_is_no_tls_is_no_scrape(bed, context, capsys):
    async with served(bed.broker, None, context) as endpoint:
        assert b"HTTP" not in await exchange(endpoint, SCRAPE)
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"]) == ("TLS handshake failed", "the client sent HTTP, not TLS")


async def test_a_scraper_that_does_not_trust_the_certificate_is_told_of(bed, certificates, context, capsys):
    client = certificates.client_context(trusted="strangers")

    def scrape(address):
        with socket.create_connection(address) as plain, pytest.raises(ssl.SSLCertVerificationError):
            client.wrap_socket(plain, server_hostname="localhost")

    async with served(bed.broker, None, context) as endpoint:
        await asyncio.to_thread(scrape, endpoint.address)
        while not (log := capsys.readouterr().err):  # noqa: ASYNC110  it has no event for it
            await asyncio.sleep(0)
    [line] = map(json.loads, log.splitlines())
    assert (line["event"], line["cause"]) == ("TLS handshake failed", "the client does not trust the broker's certificate")


async def test_a_new_certificate_is_shown_to_the_next_scrape(bed, certificates, tmp_path, capsys):
    path = tmp_path / "port.pem"
    shutil.copyfile(certificates.path("stray.pem"), path)
    file = CertificateFile(path, "--metrics-certificate")
    trusting = certificates.client_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        await ask(bed, SCRAPE, None, file.context, ssl=trusting)
    shutil.copyfile(certificates.path("broker.pem"), path)
    assert (await ask(bed, SCRAPE, None, file.context, ssl=trusting))[0] == "200 OK"
    assert "certificate reloaded" in capsys.readouterr().err


async def test_handshakes_that_have_not_begun_count_as_connections(bed, certificates, context):
    async with served(bed.broker, None, context, max_connections=1) as endpoint:
        _, waiting = await asyncio.open_connection(*endpoint.address)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await exchange(endpoint, SCRAPE, ssl=certificates.client_context())
        waiting.close()


async def test_a_scraper_that_goes_before_it_has_asked_is_no_fault(bed, capsys):
    async with served(bed.broker) as endpoint:
        reader, writer = await asyncio.open_connection(*endpoint.address)
        writer.write(b"GET /met")
        writer.write_eof()
        assert await told(reader.read()) == b""
        writer.close()
    assert capsys.readouterr().err == ""


async def test_a_query_is_passed_over(bed):
    assert (await ask(bed, b"GET /metrics?debug=1 HTTP/1.1\r\n\r\n"))[0] == "200 OK"


@pytest.mark.parametrize("length", ["66060288", "9" * 5_000, "x", "-1"], ids=["63 MB", "5,000 digits", "x", "-1"])
async def test_a_body_that_is_announced_is_not_waited_for(bed, length, capsys):
    head = f"GET /metrics HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode()
    assert (await ask(bed, head))[0] == "200 OK"
    assert (await ask(bed, head, token="let me in"))[0] == "401 Unauthorized"
    assert "Traceback" not in capsys.readouterr().err


async def test_head_gets_the_headers_alone(bed):
    status, headers, body = await ask(bed, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert (status, body) == ("200 OK", b"")
    assert int(headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"hello\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", "431 Request Header Fields Too Large"),
    ],
)
async def test_what_is_no_scrape_is_refused(bed, request_, status):
    assert (await ask(bed, request_))[0] == status


async def test_a_fault_ends_the_scrape_and_is_logged(capsys):
    no_broker = None
    assert (await ask(no_broker, SCRAPE))[0] == "500 Internal Server Error"
    assert "AttributeError" in capsys.readouterr().err


@pytest.mark.parametrize("limits", [{"request_timeout_s": 0.01}, {"max_connections": 0}])
async def test_who_says_nothing_and_who_is_one_too_many_is_dropped(bed, limits):
    async with served(bed.broker, **limits) as endpoint:
        assert await told(exchange(endpoint, b"GET /metrics")) == b""


async def test_nothing_is_accepted_before_the_broker_serves(bed):
    endpoint = MetricsEndpoint(bed.broker)
    await endpoint.bind("127.0.0.1", 0)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*endpoint.address)
    endpoint.close()


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 9404), "http://127.0.0.1:9404/metrics"),
        (("::1", 9404), "http://[::1]:9404/metrics"),
        (("", 9404), "http://localhost:9404/metrics"),
    ],
)
def test_its_url_can_be_asked(address, url):
    endpoint = MetricsEndpoint(None)
    endpoint.address = address
    assert endpoint.url == url


async def test_a_broker_that_has_no_threads_is_scraped_without_one(bed):
    before = set(threading.enumerate())
    status, _, _ = await ask(bed, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert status == "200 OK"
    assert set(threading.enumerate()) <= before
