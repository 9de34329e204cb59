"""The metrics over HTTP."""

import asyncio
import threading

import pytest

from odradek.broker.metrics import endpoint as endpoint_module
from odradek.broker.metrics.endpoint import MetricsEndpoint
from tests.broker.metrics.bed import on_a_broker


async def ask(request):
    """(status, headers, body) of the answer to raw bytes."""

    async def scenario(bed):
        endpoint = MetricsEndpoint(bed.broker)
        await endpoint.bind("127.0.0.1", 0)
        await endpoint.serve()
        try:
            return await exchange(endpoint, request)
        finally:
            endpoint.close()

    answer = await on_a_broker(scenario)
    head, _, body = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    return status_line.split(" ", 1)[1], dict(line.split(": ", 1) for line in lines), body


async def exchange(endpoint, request):
    reader, writer = await asyncio.open_connection(*endpoint.address)
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


async def test_a_query_is_passed_over():
    assert (await ask(b"GET /metrics?debug=1 HTTP/1.1\r\n\r\n"))[0] == "200 OK"


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
