"""Web pages elsewhere cannot talk to the port, by whatever name they call it."""

import pytest

from odradek.http.access import Access, Refusal
from tests.http.conftest import TOKEN, served
from tests.http.test_port import exchange

ACCESS = Access(TOKEN, hosts=frozenset({"kafka.example"}))


def request(path=b"/ready", **headers):
    lines = b"".join(b"%b: %b\r\n" % (name.encode(), value.encode()) for name, value in headers.items())
    return b"GET %b HTTP/1.1\r\nConnection: close\r\n%b\r\n" % (path, lines)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "odradek:8080",
        "KAFKA.example:1",
        "a.localhost",
        "192.0.2.7",
    ],
)
async def test_the_brokers_own_names_are_answered(broker, host):
    async with served(broker, ACCESS) as port:
        assert (await exchange(port, request(Host=host))).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("host", ["evil.example", "kafka.example.evil.example:8080", "127.0.0.1.evil.example", "[::1"])
@pytest.mark.parametrize("path", [b"/ready", b"/metrics", b"/openapi.json"])
async def test_a_name_that_may_be_anybodys_is_refused_without_the_token(broker, host, path):
    async with served(broker, ACCESS) as port:
        assert (await exchange(port, request(path, Host=host))).startswith(b"HTTP/1.1 403 ")
        assert (await exchange(port, request(path, Host=host, Authorization=f"Bearer {TOKEN}"))).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost:8080", "http://localhost:9999"])
async def test_a_page_of_another_origin_is_refused_even_with_the_token(broker, origin):
    async with served(broker, ACCESS) as port:
        asked = request(b"/v1/topics", Host="localhost:8080", Origin=origin, Authorization=f"Bearer {TOKEN}")
        assert (await exchange(port, asked)).startswith(b"HTTP/1.1 403 ")
        own = asked.replace(origin.encode(), b"http://localhost:8080")
        answer = await exchange(port, own)
        assert answer.startswith(b"HTTP/1.1 200 ")
        # No page elsewhere is allowed to read it, either.
        assert b"access-control-allow-origin" not in answer.lower()


def test_a_token_is_compared_as_a_whole():
    assert ACCESS.is_admitted({b"authorization": b"Bearer " + TOKEN.encode()})
    for shown in (b"", b"Bearer ", TOKEN.encode(), b"bearer " + TOKEN.encode() + b" "):
        assert not ACCESS.is_admitted({b"authorization": shown})


def test_a_refusal_names_the_host():
    with pytest.raises(Refusal, match=r"'evil\.example' is not a name of this broker"):
        ACCESS.check_host({b"host": b"evil.example"})
