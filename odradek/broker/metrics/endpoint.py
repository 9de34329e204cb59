"""``GET /metrics``: just enough HTTP/1.1 for a scraper, on the broker's own event loop.

The numbers are read on the loop thread, which owns them, and formatted in another thread. A connection serves one request and
is closed.

Left out: TLS, authentication, keep-alive, compression. Serve it on trusted networks only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.broker.logging import log
from odradek.broker.metrics.exposition import render
from odradek.broker.metrics.table import read_all

if TYPE_CHECKING:
    from concurrent.futures import Future

    from odradek.broker.metrics.definitions import Reading
    from odradek.broker.metrics.metered import MeteredBroker

PATH = "/metrics"
_MAX_HEAD_BYTES = 16 * 1024
_REQUEST_TIMEOUT_S = 10.0
# Scrapers come one or two at a time; further connections are closed.
_MAX_CONNECTIONS = 16
_TEXT = "text/plain; charset=utf-8"


class _Refused(Exception):
    """A request that cannot be served, with the status line's code and reason."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class MetricsEndpoint:
    """Serves one broker's metrics. Loop thread only."""

    def __init__(self, broker: MeteredBroker) -> None:
        self._broker = broker
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.address: tuple[str, int] = ("", 0)

    @property
    def url(self) -> str:
        """The URL for a scraper."""
        host, port = self.address
        return f"http://{f'[{host}]' if ':' in host else host or 'localhost'}:{port}{PATH}"

    async def bind(self, host: str, port: int) -> None:
        """Bind the address; accept no connections yet. Port 0: a free port; empty host: every interface. Raises OSError."""
        self._server = await asyncio.start_server(
            self._serve_connection, host or None, port, limit=_MAX_HEAD_BYTES, start_serving=False
        )
        self.address = (host, self._server.sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Accept connections. Call it when the broker has started."""
        if self._server is not None:
            await self._server.start_serving()

    def close(self) -> None:
        """Stop accepting, and abort open connections."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                writer.write(await self._respond(reader))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            # The scraper has gone or is too slow: nobody is left to answer.
            writer.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader) -> bytes:
        with_body = True
        try:
            method, path, headers = await _read_head(reader)
            with_body = method != "HEAD"
            if method not in {"GET", "HEAD"}:
                raise _Refused("405 Method Not Allowed")  # noqa: TRY301  handled with its kin
            if path.partition("?")[0] != PATH:
                raise _Refused("404 Not Found")  # noqa: TRY301  handled with its kin
            readings = read_all(self._broker)
            body, content_type = await self._render(readings, headers.get("accept", ""))
            status = "200 OK"
        except _Refused as refused:
            status, body, content_type = refused.status, f"{refused.status[4:]}. Metrics are at {PATH}.\n".encode(), _TEXT
        except Exception as error:  # noqa: BLE001  a fault of ours: it ends the scrape, not the broker
            log.error("a scrape failed", error)
            status, body, content_type = "500 Internal Server Error", b"The broker's log says why.\n", _TEXT
        headers_out = [f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close"]
        if status.startswith("405"):
            headers_out.append("Allow: GET, HEAD")
        head = "\r\n".join([f"HTTP/1.1 {status}", *headers_out, "", ""])
        return head.encode() + (body if with_body else b"")

    async def _render(self, readings: list[Reading], accept: str) -> tuple[bytes, str]:
        """The text, and its type. A large broker's takes longer than the loop may be kept."""
        rendered: asyncio.Future[Future[tuple[bytes, str]]] = asyncio.get_running_loop().create_future()

        def deliver(outcome: Future[tuple[bytes, str]]) -> None:
            # The scrape may have been given up.
            if not rendered.done():
                rendered.set_result(outcome)

        self._broker.background.run(lambda: render(readings, accept), deliver, name="metrics")
        return (await rendered).result()


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]]:
    """(method, path, headers by lower-case name). A body is not read: a GET needs none."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise _Refused("431 Request Header Fields Too Large") from None
    request_line, *lines = head.split("\r\n")
    words = request_line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused("400 Bad Request")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return words[0], words[1], headers
