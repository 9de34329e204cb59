"""The metrics over HTTP."""

import asyncio
import json
import shutil
import socket
import ssl
import threading
from pathlib import Path

import pytest

from odradek.broker.metrics import endpoint as endpoint_module
from odradek.broker.metrics.endpoint import MetricsEndpoint
from odradek.cli.certificate_file import CertificateFile
from tests.broker.metrics.bed import on_a_broker


async def ask(request, token=None, context=None, **client):
    """(status, headers, body) of the answer to raw bytes."""

    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker, token, context)
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        try:
            return await exchange(endpoint, request, **client)
        finally:
            endpoint.close()

    answer = await on_a_broker(scenario)
    head, _, body = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    return status_line.split(" ", 1)[1], dict(line.split(": ", 1) for line in lines), body


async def exchange(endpoint, request, **client):
    reader, writer = await asyncio.open_connection(*endpoint.address, **client)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


async def test_a_scrape_is_answered_with_every_metric_and_the_connection_closed():
    status, headers, body = await ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == "200 OK"
    assert headers["Content-Type"].startswith("text/plain")
    assert int(headers["Content-Length"]) == len(body)
    assert headers["Connection"] == "close"
    assert b'odradek_broker_info{cluster_id="' in body


async def test_the_accept_header_is_heeded():
    _, headers, body = await ask(b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text; version=1.0.0\r\n\r\n")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


SCRAPE = b"GET /metrics HTTP/1.1\r\n\r\n"


def with_token(token, method=b"GET", path=b"/metrics"):
    return b"%b %b HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % (method, path, token)


async def test_who_has_the_token_is_answered():
    assert (await ask(with_token(b"let me in"), token="let me in"))[0] == "200 OK"


@pytest.mark.parametrize(
    ("request_", "cause"),
    [
        (SCRAPE, "it has no token"),
        (with_token(b"let me"), "its token is wrong"),
        (with_token(b"let me in", path=b"/").replace(b"Bearer", b"Basic"), "its token is wrong"),
        (with_token(b"\xff\xfe", b"POST"), "its token is wrong"),
    ],
)
async def test_who_has_not_the_token_is_refused_whatever_was_asked_and_that_is_a_line(request_, cause, capsys):
    status, headers, body = await ask(request_, token="let me in")
    assert (status, headers["WWW-Authenticate"]) == ("401 Unauthorized", "Bearer")
    assert b"odradek_" not in body
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"], line["peer"].partition(":")[0]) == ("scrape refused", cause, "127.0.0.1")
    assert "let me" not in json.dumps(line)


async def test_who_guesses_tokens_does_not_fill_the_log(capsys):
    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker, "let me in")
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        for _ in range(15):
            assert b" 401 " in await exchange(endpoint, with_token(b"a guess"))
        endpoint.close()

    await on_a_broker(scenario)
    assert len(capsys.readouterr().err.splitlines()) == 10


@pytest.fixture
def context(certificates):
    """Of an endpoint with a certificate."""
    return CertificateFile(Path(certificates.path("broker.pem")), "--metrics-certificate").context


async def test_with_a_certificate_a_scrape_goes_by_tls(certificates, context, capsys):
    client = certificates.client_context()
    status, headers, body = await ask(with_token(b"let me in"), "let me in", context, ssl=client)
    assert (status, int(headers["Content-Length"])) == ("200 OK", len(body))
    assert (await ask(SCRAPE, "let me in", context, ssl=client))[0] == "401 Unauthorized"
    assert (await ask(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", None, context, ssl=client))[0].startswith(
        "431"
    )


async def test_with_a_certificate_what_is_no_tls_is_no_scrape(context, capsys):
    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker, None, context)
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        try:
            return await exchange(endpoint, SCRAPE)
        finally:
            endpoint.close()

    assert b"HTTP" not in await on_a_broker(scenario)
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"]) == ("TLS handshake failed", "the client speaks HTTP")


async def test_a_scraper_that_does_not_trust_the_certificate_is_told_of(certificates, context, capsys):
    client = certificates.client_context(trusted="strangers")

    def scrape(address):
        with socket.create_connection(address) as plain, pytest.raises(ssl.SSLCertVerificationError):
            client.wrap_socket(plain, server_hostname="localhost")

    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker, None, context)
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        await asyncio.to_thread(scrape, endpoint.address)
        while endpoint._writers:  # noqa: ASYNC110  it has no event for it
            await asyncio.sleep(0)
        endpoint.close()

    await on_a_broker(scenario)
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["cause"]) == ("TLS handshake failed", "the client does not trust the broker's certificate")


async def test_a_new_certificate_is_shown_to_the_next_scrape(certificates, tmp_path, capsys):
    path = tmp_path / "port.pem"
    shutil.copyfile(certificates.path("stray.pem"), path)
    file = CertificateFile(path, "--metrics-certificate")
    trusting = certificates.client_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        await ask(SCRAPE, None, file.context, ssl=trusting)
    shutil.copyfile(certificates.path("broker.pem"), path)
    assert (await ask(SCRAPE, None, file.context, ssl=trusting))[0] == "200 OK"
    assert "certificate read again" in capsys.readouterr().err


async def test_handshakes_that_have_not_begun_count_as_connections(monkeypatch, certificates, context):
    monkeypatch.setattr(endpoint_module, "_MAX_CONNECTIONS", 1)

    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker, None, context)
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        _, waiting = await asyncio.open_connection(*endpoint.address)
        try:
            with pytest.raises((ConnectionError, ssl.SSLError)):
                await exchange(endpoint, SCRAPE, ssl=certificates.client_context())
        finally:
            waiting.close()
            endpoint.close()

    await on_a_broker(scenario)


async def test_a_scraper_that_goes_before_it_has_asked_is_no_fault(capsys):
    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker)
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        reader, writer = await asyncio.open_connection(*endpoint.address)
        writer.write(b"GET /met")
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            endpoint.close()

    assert await on_a_broker(scenario) == b""
    assert capsys.readouterr().err == ""


async def test_a_query_is_passed_over():
    assert (await ask(b"GET /metrics?debug=1 HTTP/1.1\r\n\r\n"))[0] == "200 OK"


@pytest.mark.parametrize("length", ["66060288", "9" * 5_000, "x", "-1"], ids=["63 MB", "5,000 digits", "x", "-1"])
async def test_a_body_that_is_announced_is_not_waited_for(length, capsys):
    head = f"GET /metrics HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode()
    assert (await ask(head))[0] == "200 OK"
    assert (await ask(head, token="let me in"))[0] == "401 Unauthorized"
    assert "Traceback" not in capsys.readouterr().err


async def test_head_gets_the_headers_alone():
    status, headers, body = await ask(b"HEAD /metrics HTTP/1.1\r\n\r\n")
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
async def test_what_is_no_scrape_is_refused(request_, status):
    assert (await ask(request_))[0] == status


async def test_a_fault_ends_the_scrape_and_is_logged(monkeypatch, capsys):
    def fail(broker):
        raise RuntimeError("no numbers")

    monkeypatch.setattr(endpoint_module, "read_all", fail)
    assert (await ask(b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == "500 Internal Server Error"
    assert "no numbers" in capsys.readouterr().err


async def test_who_says_nothing_is_dropped(monkeypatch):
    monkeypatch.setattr(endpoint_module, "_REQUEST_TIMEOUT_S", 0.01)
    assert await on_a_broker(silence) == b""


async def silence(bed):
    endpoint = MetricsEndpoint(bed.broker)
    await endpoint.bind("127.0.0.1", 0)
    await endpoint.serve()
    try:
        return await exchange(endpoint, b"GET /metrics")
    except ConnectionResetError:
        return b""
    finally:
        endpoint.close()


async def test_more_connections_than_a_few_are_turned_away(monkeypatch):
    monkeypatch.setattr(endpoint_module, "_MAX_CONNECTIONS", 0)
    assert await on_a_broker(silence) == b""


async def test_nothing_is_accepted_before_the_broker_serves():
    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker)
        await endpoint.bind("127.0.0.1", 0)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*endpoint.address)
        endpoint.close()

    await on_a_broker(scenario)


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


async def test_a_broker_that_has_no_threads_is_scraped_without_one():
    before = set(threading.enumerate())
    status, _, _ = await ask(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert status == "200 OK"
    assert set(threading.enumerate()) <= before
