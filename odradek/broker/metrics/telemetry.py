"""Metrics pushed by clients (KIP-714), and metrics of the broker's telemetry manager.

A client's metric is named by OpenTelemetry's convention for Prometheus: ``org.apache.kafka.producer.record.send.total`` becomes
``org_apache_kafka_producer_record_send_total``. Its labels are the client and the data point's attributes. Any name except
Kafka's own gets the prefix ``client_``, so that no client can replace the broker's metrics.

Clients choose the names and labels. Their number, and the length of a value, are limited.
"""

from __future__ import annotations

from re import sub
from typing import TYPE_CHECKING, Final

from odradek.broker.metrics.definitions import Distribution, Kind, Metric, Section, Sum, of_attribute, own

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.broker.metrics.definitions import MeteredBroker, Reading, Sample
    from odradek.broker.telemetry.received import ReceivedMetrics
    from odradek.protocol.otlp_metrics import DataPoint

_MBEAN: Final = "kafka.server:type=client-metrics"
_CLIENT_LABELS: Final = ("client_instance_id", "client_id")
# The labels of buckets, quantiles and clients, which attributes may not use.
_TAKEN_LABELS: Final = frozenset({"le", "quantile", *_CLIENT_LABELS})
_KAFKAS: Final = "org_apache_kafka_"
_OTHERS: Final = "client_"
_MOST_FAMILIES: Final = 2_000
_MOST_LABELS: Final = 16
_LONGEST_NAME: Final = 200
_LONGEST_VALUE: Final = 256
_SUFFIXES: Final = {
    Kind.COUNTER: ("", "_total", "_created"),
    Kind.GAUGE: ("",),
    Kind.HISTOGRAM: ("", "_bucket", "_sum", "_count", "_created"),
    Kind.SUMMARY: ("", "_sum", "_count", "_created"),
}


def _counter(name: str, attribute: str, help_: str) -> Metric:
    return of_attribute(_MBEAN, name, Kind.COUNTER, attribute, help_)


INSTANCES = of_attribute(
    _MBEAN,
    "instance_count",
    Kind.GAUGE,
    "instance-count",
    "Connected client instances that have asked for their telemetry subscription.",
)
UNKNOWN = _counter(
    "unknown_subscription_request_count",
    "unknown-subscription-request-count",
    "Pushes for a subscription other than the client's current one.",
)
THROTTLED = _counter("throttle_count", "throttle-count,client_instance_id=", "Client requests that came too early.")
PUSHED = _counter("plugin_export_count", "plugin-export-count,client_instance_id=", "Pushes accepted.")
REFUSED = _counter("plugin_error_count", "plugin-error-count,client_instance_id=", "Pushes that could not be read.")
DROPPED_POINTS = own(
    "client_metrics_left_out",
    Kind.COUNTER,
    "Values of clients' metrics that were dropped because the client, or all clients together, had too many.",
)


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    manager = broker.telemetry_so_far
    if manager is None:
        for metric in TELEMETRY_SECTION.metrics:
            yield metric, [((), 0)]
        return
    counts = manager.counts
    yield INSTANCES, [((), manager.instance_count)]
    yield UNKNOWN, [((), counts.unknown_subscriptions)]
    yield THROTTLED, [((), counts.throttled)]
    yield PUSHED, [((), counts.pushes)]
    yield REFUSED, [((), counts.refused_pushes)]
    received = manager.received
    yield DROPPED_POINTS, [((), 0 if received is None else received.dropped_points)]
    if received is not None:
        yield from _of_clients(received)


class _Family:
    """A metric of clients, while its values are collected."""

    __slots__ = ("kind", "labels", "points")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.labels: dict[str, None] = {}
        self.points: list[tuple[tuple[str, str], dict[str, str], float | Distribution | Sum]] = []


def _of_clients(received: ReceivedMetrics) -> Iterator[Reading]:
    """Yield the metrics of all clients, by name and kind. A name already used for another kind is left out."""
    families: dict[str, _Family] = {}
    taken: set[str] = set()
    for _, attributes, points in received.all():
        client = (_shown(attributes["client_instance_id"]), _shown(attributes["client_id"]))
        for point in points.values():
            kind, value = _value(point)
            name = _name(point.name, kind)
            family = families.get(name)
            if family is None:
                names = {f"{name}{suffix}" for suffix in _SUFFIXES[kind]}
                if len(families) >= _MOST_FAMILIES or taken & names:
                    continue
                taken |= names
                family = families[name] = _Family(kind)
            if family.kind is kind:
                labels = _labels(point.attributes, family.labels)
                family.points.append((client, labels, value))
    for name, family in families.items():
        help_text = "Measured by clients."
        metric = Metric(name, family.kind, (*_CLIENT_LABELS, *family.labels), "", help_text)
        yield metric, list(_samples(family))


def _samples(family: _Family) -> Iterator[Sample]:
    seen: set[tuple[str, ...]] = set()
    for client, labels, value in family.points:
        values = (*client, *(labels.get(label, "") for label in family.labels))
        # Two label sets may be equal after labels were dropped.
        if values not in seen:
            seen.add(values)
            yield values, value


def _value(point: DataPoint) -> tuple[Kind, float | Distribution | Sum]:
    value = point.value
    if isinstance(value, int | float):
        return Kind.COUNTER if point.is_monotonic else Kind.GAUGE, value
    if value.counts:
        return Kind.HISTOGRAM, Distribution(value.bounds, value.counts, value.total)
    return Kind.SUMMARY, Sum(value.count, value.total)


def _name(name: str, kind: Kind) -> str:
    found = sub("[^a-zA-Z0-9_]", "_", name[:_LONGEST_NAME])
    if not found.startswith(_KAFKAS):
        found = _OTHERS + found
    return found.removesuffix("_total") if kind is Kind.COUNTER else found


def _labels(attributes: Mapping[str, str], known: dict[str, None]) -> dict[str, str]:
    """Return the values by label. New labels are added to ``known``, up to the limit."""
    labels = {}
    for attribute, value in attributes.items():
        label = sub("[^a-zA-Z0-9_]", "_", attribute[:_LONGEST_NAME])
        if not label or label[0].isdigit() or label.startswith("__") or label in _TAKEN_LABELS:
            label = f"attribute_{label}"
        if label not in known:
            if len(known) >= _MOST_LABELS:
                continue
            known[label] = None
        labels[label] = _shown(value)
    return labels


def _shown(value: str | None) -> str:
    return (value or "")[:_LONGEST_VALUE]


TELEMETRY_SECTION = Section("Client telemetry", (INSTANCES, UNKNOWN, THROTTLED, PUSHED, REFUSED, DROPPED_POINTS), _read)
