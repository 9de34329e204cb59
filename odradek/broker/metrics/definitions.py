"""Metrics, and the values that reading them yields.

A metric that Kafka also has is named as Prometheus' JMX exporter, with the configuration usual for Kafka, names its MBean:
``kafka.network:type=RequestMetrics,name=RequestsPerSec,request=,version=`` becomes
``kafka_network_requestmetrics_requests_total{request=,version=}``. All others begin with ``odradek_``. Times are in
milliseconds, as in Kafka, and names say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Kind(Enum):
    """Prometheus' types. A summary has sum and count, and no quantiles."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table. ``name`` lacks the suffix of its kind; ``mbean`` is Kafka's, empty if Kafka has none."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    mbean: str
    help: str

    @property
    def shown_name(self) -> str:
        """The name that is scraped."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: ``counts[i]`` values were at or below ``bounds[i]`` and above ``bounds[i - 1]``; the last are above all."""

    bounds: Sequence[float]
    counts: Sequence[int]
    total: float


@dataclass(frozen=True, slots=True)
class Sum:
    """A summary: the number of values, and their sum."""

    count: int
    total: float


# Label values, and the metric's value for them.
Sample: TypeAlias = "tuple[tuple[str, ...], float | Distribution | Sum]"
Reading: TypeAlias = "tuple[Metric, list[Sample]]"


@dataclass(frozen=True, slots=True)
class Section:
    """Metrics that are read together. ``read`` (loop thread only) takes a MeteredBroker, and yields readings of ``metrics``."""

    title: str
    metrics: tuple[Metric, ...]
    read: Callable[..., Iterable[Reading]]
