"""Readings as text, formatted by Prometheus' own client library in the format that the scraper prefers.

Importing the library takes some 50 ms, and so does formatting a reading of thousands of partitions. ``render`` is therefore
meant for a thread other than the loop's. The library adds the process metrics (``process_cpu_seconds_total`` and so on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.metrics.definitions import Distribution, Kind, Sum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import Metric, Reading, Sample


def render(readings: list[Reading], accept: str) -> tuple[bytes, str]:
    """(body, content type) for the Accept header ``accept``: OpenMetrics if it is asked for, else the text format."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    snapshot: Any = _Snapshot(readings)
    return encode(snapshot), content_type


class _Snapshot:
    """A registry, as far as the library needs one: it yields the metric families."""

    def __init__(self, readings: list[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Any]:
        """The broker's families, then the process's."""
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
    """Prometheus' cumulative buckets: for each bound the number of values at or below it, ``+Inf`` last."""
    buckets = []
    so_far = 0
    for bound, count in zip((*map(str, map(float, distribution.bounds)), "+Inf"), distribution.counts, strict=True):
        so_far += count
        buckets.append((bound, so_far))
    return buckets
