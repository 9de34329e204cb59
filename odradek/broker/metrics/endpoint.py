"""The endpoint ``GET /metrics``: just enough HTTP/1.1 for a scraper, on the broker's own event loop.

The numbers are read on the loop thread, which owns them, and formatted in another thread. A connection serves one request and
closes. With a certificate it uses TLS (``tls_exchange``). With a token, a request without ``Authorization: Bearer TOKEN`` is
answered with 401, and logged, up to a line limit for each address.

Left out: keep-alive, compression, client certificates.

Prometheus' own client library formats the readings, in the format that the scraper prefers. Importing the library takes some
50 ms, and so does formatting a reading of thousands of partitions. So ``render`` runs in a thread other than the loop's. The
library adds the process metrics (``process_cpu_seconds_total`` and so on).
"""

from __future__ import annotations

import asyncio
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from odradek.broker.metrics.definitions import Distribution, Kind, Sum
from odradek.broker.metrics.exchange import Exchange, PlainExchange
from odradek.broker.metrics.table import read_all
from odradek.broker.network.listeners import cannot_bind
from odradek.common.logging import log

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from odradek.broker.metrics.definitions import MeteredBroker, Metric, Reading, Sample


def render(readings: list[Reading], accept: str) -> tuple[bytes, str]:
    """Return (body, content type) for the Accept header ``accept``: OpenMetrics if requested, else the text format."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    snapshot: Any = _Snapshot(readings)
    return encode(snapshot), content_type


class _Snapshot:
    """A minimal registry for the library: it yields the metric families."""

    def __init__(self, readings: list[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Any]:
        """Yield the broker's metric families, then the process's."""
        from prometheus_client.process_collector import ProcessCollector

        for metric, samples in self._readings:
            yield _family(metric, samples)
        yield from ProcessCollector(registry=None).collect()


def _family(metric: Metric, samples: list[Sample]) -> Any:
    from prometheus_client import core

    classes = {
        Kind.COUNTER: core.CounterMetricFamily,
        Kind.GAUGE: core.GaugeMetricFamily,
        Kind.HISTOGRAM: core.HistogramMetricFamily,
        Kind.SUMMARY: core.SummaryMetricFamily,
    }
    family: Any = classes[metric.kind](metric.name, metric.help, labels=metric.labels)
    for labels, value in samples:
        if isinstance(value, Distribution):
            family.add_metric(labels, _cumulated(value), value.total)
        elif isinstance(value, Sum):
            family.add_metric(labels, value.count, value.total)
        else:
            family.add_metric(labels, value)
    return family


def _cumulated(distribution: Distribution) -> list[tuple[str, int]]:
    """Return Prometheus' cumulative buckets: for each bound the number of values at or below it, ``+Inf`` last."""
    buckets = []
    so_far = 0
    for bound, count in zip((*map(str, map(float, distribution.bounds)), "+Inf"), distribution.counts, strict=True):
        so_far += count
        buckets.append((bound, so_far))
    return buckets


PATH = "/metrics"
_MAX_HEAD_BYTES = 16 * 1024
_TEXT = "text/plain; charset=utf-8"


class _HttpRefusal(Exception):
    """A request that is refused: ``status`` is the code and reason of the status line, ``body`` the text of its body."""

    def __init__(self, status: str, body: str = f"Metrics are at {PATH}.", header: str | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = () if header is None else (header,)

    def response(self, *, with_body: bool) -> bytes:
        """Return the HTTP response."""
        return _response(self.status, f"{self.status[4:]}. {self.body}\n".encode(), _TEXT, *self.headers, with_body=with_body)


class MetricsEndpoint:
    """The HTTP endpoint of one broker's metrics. ``context`` turns on TLS; ``token`` is required if given. Loop thread only."""

    def __init__(
        self,
        broker: MeteredBroker,
        token: str | None = None,
        context: Callable[[], ssl.SSLContext] | None = None,
        *,
        max_connections: int = 16,
        request_timeout_s: float = 10,
    ) -> None:
        """``context`` is called for each connection. Scrapers come one or two at a time; further connections are closed."""
        self._max_connections = max_connections
        self._request_timeout_s = request_timeout_s
        self._broker = broker
        self._context = context
        self._authorization = None if token is None else f"Bearer {token}".encode()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.address: tuple[str, int] = ("", 0)

    @property
    def url(self) -> str:
        """The URL for a scraper."""
        host, port = self.address
        scheme = "http" if self._context is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host or 'localhost'}:{port}{PATH}"

    async def bind(self, host: str, port: int) -> None:
        """Bind the address; accept no connections yet. Port 0: a free port; empty host: every interface. Raises OSError."""
        try:
            self._server = await asyncio.start_server(
                self._serve_connection, host or None, port, limit=_MAX_HEAD_BYTES, start_serving=False
            )
        except OSError as error:
            raise cannot_bind(host, port, error) from error
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
        if len(self._writers) >= self._max_connections:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            async with asyncio.timeout(self._request_timeout_s):
                exchange = await self._begin(reader, writer)
                exchange.write(await self._respond(exchange, writer))
                exchange.end()
                await writer.drain()
        except (OSError, TimeoutError, EOFError):
            # The scraper has disconnected, is too slow, or does not trust the certificate: no answer is possible.
            writer.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
        """Return the exchange of a connection: with a context over TLS, after the handshake. Raises OSError, EOFError."""
        if self._context is None:
            return PlainExchange(reader, writer)
        from odradek.broker.metrics.tls_exchange import HandshakeFailed, TlsExchange

        exchange = TlsExchange(reader, writer, self._context())
        try:
            await exchange.shake_hands()
        except HandshakeFailed as failure:
            self._log_refusal(writer, "TLS handshake failed", str(failure))
            raise
        return exchange

    def _log_refusal(self, writer: asyncio.StreamWriter, event: str, cause: str) -> None:
        host, port = (writer.get_extra_info("peername") or ("", 0))[:2]
        extra_fields = self._broker.line_limit.admit((event, cause, host))
        if extra_fields is not None:
            log.warn(event, peer=f"{host}:{port}", listener="metrics", cause=cause, **extra_fields)

    def _authorize(self, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        """Raise _HttpRefusal if the token is missing or wrong."""
        shown = headers.get("authorization", "").encode("latin-1")
        if self._authorization is not None and not compare_digest(shown, self._authorization):
            self._log_refusal(writer, "scrape refused", "its token is wrong" if shown else "it has no token")
            body = "Authorization: Bearer TOKEN is missing or wrong."
            raise _HttpRefusal("401 Unauthorized", body, "WWW-Authenticate: Bearer")

    async def _respond(self, exchange: Exchange, writer: asyncio.StreamWriter) -> bytes:
        """Return the response to one request. Raises OSError or EOFError if the scraper has disconnected."""
        try:
            method, path, headers = await _read_head(exchange)
        except _HttpRefusal as refused:
            return refused.response(with_body=True)
        try:
            self._authorize(headers, writer)
            if method not in {"GET", "HEAD"}:
                raise _HttpRefusal("405 Method Not Allowed", header="Allow: GET, HEAD")  # noqa: TRY301  handled like others
            if path.partition("?")[0] != PATH:
                raise _HttpRefusal("404 Not Found")  # noqa: TRY301  handled like others
            readings = read_all(self._broker)
            body, content_type = await self._render(readings, headers.get("accept", ""))
        except _HttpRefusal as refused:
            return refused.response(with_body=method != "HEAD")
        except Exception as error:  # noqa: BLE001  a bug of ours ends the scrape, not the broker
            log.error("a scrape failed", error)
            return _response("500 Internal Server Error", b"The broker's log says why.\n", _TEXT, with_body=method != "HEAD")
        return _response("200 OK", body, content_type, with_body=method != "HEAD")

    async def _render(self, readings: list[Reading], accept: str) -> tuple[bytes, str]:
        """Return the text and its type, formatted in a thread: for a large broker it takes too long for the loop."""
        rendered: asyncio.Future[Future[tuple[bytes, str]]] = asyncio.get_running_loop().create_future()

        def deliver(outcome: Future[tuple[bytes, str]]) -> None:
            # The scrape may have been cancelled.
            if not rendered.done():
                rendered.set_result(outcome)

        self._broker.background.run(lambda: render(readings, accept), deliver, name="metrics")
        return (await rendered).result()


def _response(status: str, body: bytes, content_type: str, *more: str, with_body: bool) -> bytes:
    headers = [f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close", *more]
    head = "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""])
    return head.encode() + (body if with_body else b"")


async def _read_head(exchange: Exchange) -> tuple[str, str, dict[str, str]]:
    """Return (method, path, headers by lower-case name). A body is not read: a GET needs none. Raises EOFError."""
    received = bytearray()
    while (end := received.find(b"\r\n\r\n")) < 0:
        if len(received) > _MAX_HEAD_BYTES:
            raise _HttpRefusal("431 Request Header Fields Too Large")
        data = await exchange.read()
        if not data:
            raise EOFError
        received += data
    head = received[:end].decode("latin-1")
    request_line, *lines = head.split("\r\n")
    words = request_line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _HttpRefusal("400 Bad Request")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return words[0], words[1], headers
