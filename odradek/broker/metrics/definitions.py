"""The types of metrics and of their values.

A metric that Kafka also has gets the name that Prometheus' JMX exporter, with the usual configuration for Kafka, gives its MBean:
``kafka.network:type=RequestMetrics,name=RequestsPerSec,request=,version=`` becomes
``kafka_network_requestmetrics_requests_total{request=,version=}``. All others begin with ``odradek_``. Times are in
milliseconds, as in Kafka and as their names say.

The values are read from a ``MeteredBroker``, on its loop thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from re import sub
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.broker.coordination.group_coordinator import GroupCoordinator
    from odradek.broker.coordination.share_coordinator import ShareCoordinator
    from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
    from odradek.broker.network.connection_registry import ConnectionRegistry
    from odradek.broker.network.dispatch import Dispatcher
    from odradek.broker.quotas.quota_switch import QuotaSwitch
    from odradek.broker.replica.fetch_sessions import FetchSessions
    from odradek.broker.replica.log_cleaner import LogCleaner
    from odradek.broker.replica.partitions import Partitions
    from odradek.broker.telemetry.manager import ClientMetricsManager
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.logging import LineLimit
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.storage.directories.log_manager import LogManager
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.driver import AsyncioDriver
    from odradek.timing.timer import Purgatory, Timer


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
        """The name that scrapers see."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


def own(name: str, kind: Kind, help_: str, *labels: str) -> Metric:
    """Return a metric that Kafka does not have. ``name`` lacks the prefix."""
    return Metric(f"odradek_{name}", kind, labels, "", help_)


def of_mbean(mbean: str, kind: Kind, help_: str, *labels: str) -> Metric:
    """Return the metric of an MBean with one value, such as ``kafka.log:type=Log,name=Size``. Labels are keys of the MBean."""
    return Metric(_underscored(mbean.removesuffix("PerSec")), kind, labels, mbean + _keys(mbean, labels), help_)


def of_attribute(mbean: str, name: str, kind: Kind, attribute: str, help_: str, *labels: str) -> Metric:
    """Return the metric of an MBean's attribute: ``name`` after the type in ``mbean``, which may have more keys than labels."""
    prefix = _underscored(mbean.partition(",")[0])
    return Metric(f"{prefix}_{name}", kind, labels, f"{mbean}{_keys(mbean, labels)} ({attribute})", help_)


def _underscored(mbean: str) -> str:
    return sub(":type=|,name=|[.-]", "_", mbean).lower()


def _keys(mbean: str, labels: tuple[str, ...]) -> str:
    """Return the keys that ``mbean`` still lacks."""
    keys = [f",{label.replace('_', '-')}=" for label in labels]
    return "".join(key for key in keys if key not in mbean)


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: ``counts[i]`` values were at or below ``bounds[i]`` and above ``bounds[i - 1]``; the last are above all."""

    bounds: Sequence[float]
    counts: Sequence[int]
    total: float


def summed(bounds: Sequence[float], rows: Iterable[Sequence[int]], total: float) -> Distribution:
    """Return the sum of histograms with the same bounds: ``rows`` are their counts."""
    counts = [sum(column) for column in zip([0] * (len(bounds) + 1), *rows, strict=True)]
    return Distribution(bounds, counts, total)


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
    """Metrics read together. ``read`` (loop thread only) takes a MeteredBroker, and yields readings of ``metrics``."""

    title: str
    metrics: tuple[Metric, ...]
    read: Callable[..., Iterable[Reading]]


class MeteredBroker(Protocol):
    """An opened broker, as its metrics see it."""

    config: BrokerConfig
    node_id: int
    cluster_id: str
    clock: Clock
    background: Background
    timer: Timer
    line_limit: LineLimit
    controller: ClusterMetadata
    partitions: Partitions
    log_manager: LogManager
    log_cleaner: LogCleaner
    fetch_sessions: FetchSessions
    quotas: QuotaSwitch
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    shares: ShareCoordinator
    dispatcher: Dispatcher
    # None for a broker without listeners.
    connections: ConnectionRegistry | None
    # The manager of client telemetry; None until a client has asked for its subscription.
    telemetry_so_far: ClientMetricsManager | None
    # The names of the listeners.
    listener_names: list[str]
    # The purgatories that hold waiting requests.
    purgatories: tuple[Purgatory[Any], ...]
    # The driver of the timer; None if a test moves the clock.
    timer_driver: AsyncioDriver | None
