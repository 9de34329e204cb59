"""What a metric is, and what a reading of one looks like.

A metric that Kafka has too bears the name that Prometheus' JMX exporter, with the configuration usual for Kafka, makes of its
MBean: ``kafka.network:type=RequestMetrics,name=RequestsPerSec,request=,version=`` becomes
``kafka_network_requestmetrics_requests_total{request=,version=}``. What Kafka does not have begins with ``odradek_``. Times are
in milliseconds, as in Kafka and as the names say.
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
    """One row of the table. ``name`` is without what its kind adds to it; ``mbean`` is Kafka's, empty where there is none."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    mbean: str
    help: str

    @property
    def shown_name(self) -> str:
        """As it is scraped."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram's state: ``counts[i]`` fell at or below ``bounds[i]`` and above the one before; the last beyond all bounds."""

    bounds: Sequence[float]
    counts: Sequence[int]
    total: float


@dataclass(frozen=True, slots=True)
class Sum:
    """A summary's state: how many there were, and their total."""

    count: int
    total: float


# A metric's value for each tuple of label values.
Sample: TypeAlias = "tuple[tuple[str, ...], float | Distribution | Sum]"
Reading: TypeAlias = "tuple[Metric, list[Sample]]"


@dataclass(frozen=True, slots=True)
class Section:
    """Metrics that are read together: ``read`` (loop thread) takes a ``MeteredBroker`` and yields readings of ``metrics``."""

    title: str
    metrics: tuple[Metric, ...]
    read: Callable[..., Iterable[Reading]]
