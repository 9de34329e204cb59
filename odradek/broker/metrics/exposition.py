"""The metrics as text for Prometheus.

The numbers are read on the loop thread, which owns them, and formatted in another thread. Prometheus' own client library formats
them, in the format that the scraper prefers. Importing the library takes some 50 ms, and so does formatting a reading of
thousands of partitions. The library adds the process metrics (``process_cpu_seconds_total`` and so on).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from odradek.broker.metrics.definitions import Distribution, Kind, Sum
from odradek.broker.metrics.table import read_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from odradek.broker.metrics.definitions import MeteredBroker, Metric, Reading, Sample


_RENDER_TIMEOUT_S = 30.0


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


async def scrape(broker: MeteredBroker, accept: str) -> tuple[bytes, str]:
    """Return (body, content type) for the Accept header ``accept``. Loop thread only.

    Raises TimeoutError if the broker ends meanwhile.
    """
    readings = read_all(broker)
    rendered: asyncio.Future[Future[tuple[bytes, str]]] = asyncio.get_running_loop().create_future()

    def deliver(outcome: Future[tuple[bytes, str]]) -> None:
        # The scrape may have been cancelled.
        if not rendered.done():
            rendered.set_result(outcome)

    broker.background.run(lambda: render(readings, accept), deliver, name="metrics")
    async with asyncio.timeout(_RENDER_TIMEOUT_S):
        return (await rendered).result()
