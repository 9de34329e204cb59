"""Connections to the control interface, from clients that are not as simple as curl."""

import asyncio

import pytest

from odradek.http import port as http_port
from odradek.http.control import api
from tests.http.conftest import TOKEN

OPEN = b"GET /ready HTTP/1.1\r\nHost: broker\r\n\r\n"


def request(method, path, header, token=TOKEN):
    return f"{method} {path} HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer {token}\r\n{header}\r\n\r\n".encode()


async def connected(control):
    host, port = control.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def answer_of(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length"))
    return int(head.split(" ")[1]), await reader.readexactly(length)


async def test_a_connection_serves_several_requests(control):
    reader, writer = await connected(control)
    for _ in range(3):
        writer.write(OPEN)
        assert (await answer_of(reader))[0] == 200
    writer.close()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Content-Length: 99999999999", 413),
        ("Content-Length: 99999999", 413),
        ("Transfer-Encoding: chunked", 411),
    ],
)
@pytest.mark.parametrize("is_admitted", [True, False])
async def test_a_body_that_cannot_be_read_is_refused_and_the_connection_closed(control, header, status, is_admitted, capfd):
    reader, writer = await connected(control)
    writer.write(request("POST", "/v1/wait", header, token=TOKEN if is_admitted else "a guess"))
    found, body = await answer_of(reader)
    assert (found, b"Content-Length" in body) == ((status, True) if is_admitted else (401, False))
    assert await reader.read() == b""
    writer.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("length", ["9" * 5_000, "-1", "x"], ids=["5,000 digits", "-1", "x"])
async def test_a_length_that_is_none_is_refused_and_the_connection_closed(control, length, capfd):
    reader, writer = await connected(control)
    writer.write(request("POST", "/v1/wait", f"Content-Length: {length}"))
    assert (await answer_of(reader))[0] == 400
    assert await reader.read() == b""
    writer.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["/forks/1/broker", "/forks/1", "/nowhere", "/topics"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_without_the_token_all_looks_the_same(control, method, path):
    await control.done("POST", "/snapshots")
    await control.done("POST", "/snapshots/1/fork")
    assert (await control("GET", "/forks"))[1]["forks"][0]["fork"] == "2"
    answers = [await control(method, path.replace("1", number), token="a guess") for number in "29"]
    assert [status for status, _ in answers] == [401, 401]
    assert answers[0] == answers[1]


async def test_a_body_is_not_asked_for_before_its_token_was_seen(control):
    reader, writer = await connected(control)
    expecting = "Expect: 100-continue\r\nContent-Length: 2"
    writer.write(request("POST", "/v1/clock/freeze", expecting))
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
    writer.write(b"{}")
    assert (await answer_of(reader))[0] == 200
    writer.write(request("POST", "/v1/clock/freeze", expecting, token="a guess"))
    assert (await answer_of(reader))[0] == 401
    assert await reader.read() == b""
    writer.close()


async def test_a_small_body_of_a_stranger_is_passed_over(control):
    reader, writer = await connected(control)
    writer.write(request("POST", "/v1/wait", "Content-Length: 3", token="a guess") + b"{ }" + OPEN)
    assert (await answer_of(reader))[0] == 401
    assert (await answer_of(reader))[0] == 200
    writer.close()


async def test_a_large_body_to_an_open_path_is_not_read(control):
    reader, writer = await connected(control)
    writer.write(request("GET", "/ready", "Content-Length: 100000", token=""))
    assert (await answer_of(reader))[0] == 200
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: broker",
        b"GET /ready HTTP/1.1\r\nHost: broker\r\nX: " + b"x" * 20_000,
        OPEN[:-2] + b"X: y\r\n" * 5_000,
    ],
    ids=["path", "header", "headers"],
)
async def test_a_long_head_is_refused(control, head, capfd):
    reader, writer = await connected(control)
    writer.write(head + b"\r\n\r\n")
    assert b" 431 " in await reader.readline()
    writer.close()
    assert "Traceback" not in capfd.readouterr().err


async def test_a_path_that_is_none_is_refused(control, capfd):
    reader, writer = await connected(control)
    writer.write(request("GET", "http://[/ready", ""))
    assert (await answer_of(reader))[0] == 404
    writer.close()
    assert "Traceback" not in capfd.readouterr().err


async def test_bodies_have_so_much_room_together(control):
    asked = request("POST", "/v1/clock/advance", f"Expect: 100-continue\r\nContent-Length: {api.MOST_BYTES // 2 + 1}")

    async def status_of_one_more():
        reader, writer = await connected(control)
        writer.write(asked)
        return int((await reader.readline()).split()[1]), writer

    status, first = await status_of_one_more()
    assert status == 100
    status, second = await status_of_one_more()
    second.close()
    assert status == 503
    assert (await control("POST", "/clock/freeze"))[0] == 200
    first.transport.abort()
    for _ in range(1_000):
        status, again = await status_of_one_more()
        again.close()
        if status == 100:
            break
    assert status == 100


async def test_many_clients_that_come_at_once_are_answered_at_once(control):
    loop = asyncio.get_running_loop()

    async def ask():
        began = loop.time()
        reader, writer = await connected(control)
        writer.write(OPEN)
        status, _ = await answer_of(reader)
        writer.close()
        return status, loop.time() - began

    answers = await asyncio.gather(*(ask() for _ in range(100)))
    assert {status for status, _ in answers} == {200}


def test_the_kernel_keeps_those_that_wait():
    assert http_port.BACKLOG >= 1_000


async def test_connections_beyond_the_most_are_closed_and_make_room_when_they_go(control):
    async def is_served():
        reader, writer = await connected(control)
        writer.write(OPEN)
        try:
            return (await answer_of(reader))[0] == 200
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        finally:
            writer.close()

    held = [await connected(control) for _ in range(http_port.MOST_CONNECTIONS)]
    assert not await is_served()
    for _, writer in held:
        writer.close()
    for _ in range(1_000):
        if await is_served():
            break
    else:
        raise AssertionError


async def test_clients_that_go_in_the_middle_are_no_news(control, capfd):
    for said in (b"", b"GET", OPEN[:30], request("POST", "/v1/wait", "Content-Length: 10") + b"{", OPEN * 50):
        _, writer = await connected(control)
        writer.write(said)
        await writer.drain()
        writer.transport.abort()
    assert (await control("GET", "/ready"))[0] == 200
    assert capfd.readouterr().err == ""
