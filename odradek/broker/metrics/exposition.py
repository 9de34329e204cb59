"""Readings as text: Prometheus' own client library does it, in the format that whoever asks prefers.

The library takes some 50 ms to import and so does a reading of thousands of partitions to write, which is why ``render`` is meant
for a thread other than the loop's. The process's own figures (``process_cpu_seconds_total`` and so on) come from the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.metrics.definitions import Distribution, Kind, Sum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import Metric, Reading, Sample


def render(readings: list[Reading], accept: str) -> tuple[bytes, str]:
    """(body, its content type) for the Accept header ``accept``: OpenMetrics where that is asked for, else the text format."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    snapshot: Any = _Snapshot(readings)
    return encode(snapshot), content_type


class _Snapshot:
    """To the library, a registry: it only wants to be told the metric families."""

    def __init__(self, readings: list[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Any]:
        """The families, ours and then the process's."""
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
    """Prometheus' buckets: how many are at or below each bound, ``+Inf`` last."""
    buckets = []
    so_far = 0
    for bound, count in zip((*map(str, map(float, distribution.bounds)), "+Inf"), distribution.counts, strict=True):
        so_far += count
        buckets.append((bound, so_far))
    return buckets
