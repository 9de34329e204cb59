"""Connections to the control interface, from clients that are not as simple as curl."""

import asyncio

import pytest

OPEN = b"GET /ready HTTP/1.1\r\nHost: broker\r\n\r\n"


async def connected(control):
    host, port = control.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def answer_of(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("Content-Length"))
    return int(head.split(" ")[1]), await reader.readexactly(length)


async def test_a_connection_serves_several_requests(control):
    reader, writer = await connected(control)
    for _ in range(3):
        writer.write(OPEN)
        assert (await answer_of(reader))[0] == 200
    writer.close()


@pytest.mark.parametrize(
    ("header", "status"), [("Content-Length: 99999999999", 413), ("Content-Length: x", 413), ("Transfer-Encoding: chunked", 411)]
)
async def test_a_body_that_cannot_be_read_is_refused_and_the_connection_closed(control, header, status):
    reader, writer = await connected(control)
    writer.write(f"POST /wait HTTP/1.1\r\nHost: broker\r\n{header}\r\n\r\n".encode())
    found, body = await answer_of(reader)
    assert (found, b"Content-Length" in body) == (status, True)
    assert await reader.read() == b""
    writer.close()


async def test_clients_that_go_in_the_middle_are_no_news(control, capfd):
    for said in (b"", b"GET", OPEN[:30], b"POST /wait HTTP/1.1\r\nContent-Length: 10\r\n\r\n{", OPEN * 50):
        _, writer = await connected(control)
        writer.write(said)
        await writer.drain()
        writer.transport.abort()
    assert (await control("GET", "/ready"))[0] == 200
    assert capfd.readouterr().err == ""
