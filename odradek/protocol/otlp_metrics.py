"""The metrics of the OpenTelemetry protocol, which clients push (KIP-714): bytes of a MetricsData to its data points.

    MetricsData    1 resource metrics*
    ResourceMetrics    1 resource, 2 scope metrics*        Resource       1 attribute*
    ScopeMetrics       2 metric*                           KeyValue       1 key, 2 value
    Metric             1 name, 3 unit, and one of 5 gauge, 7 sum, 9 histogram, 10 exponential histogram, 11 summary
    each of these      1 data point*, 2 temporality, of a sum 3 whether it is monotonic
    NumberDataPoint    3 time, 4 double, 6 sfixed64, 7 attribute*
    HistogramDataPoint 3 time, 4 count, 5 sum, 6 bucket counts, 7 bounds, 9 attribute*
    SummaryDataPoint   3 time, 4 count, 5 sum, 7 attribute*

Left out: descriptions, units, exemplars, the buckets of exponential histograms and the quantiles of summaries, of which count
and sum are read. Attributes that are lists or maps are shown as nothing.

These dozen messages are read here, by field number, and not by the package ``opentelemetry-proto``: it brings the protobuf
runtime, whose version half of the Python world pins, and a broker for tests stands in the same environment as the application.
The tests have it, and compare. Source: ``opentelemetry/proto/metrics/v1/metrics.proto`` 1.3.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.protobuf import (
    I64,
    LEN,
    VARINT,
    double,
    fields,
    fixed64,
    message,
    packed_doubles,
    packed_fixed64,
    sfixed64,
    signed,
    text,
)

_DELTA: Final = 1


class MetricKind(Enum):
    """What a metric's data points are."""

    GAUGE = "gauge"
    SUM = "sum"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram's ``counts``, of which the last one is above all ``bounds``; both empty where only count and sum are known."""

    count: int
    total: float
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class DataPoint(NamedTuple):
    """One value of a metric; ``is_delta``: since the last push, else since the client began to count.

    ``attributes`` are those of the data point. ``time_ns`` is the client's clock.
    """

    name: str
    kind: MetricKind
    attributes: Mapping[str, str]
    value: float | Buckets
    time_ns: int
    is_delta: bool = False
    is_monotonic: bool = False


class ClientMetrics(NamedTuple):
    """What a push holds. ``resource`` has the attributes of all data points: those of the client."""

    resource: Mapping[str, str]
    points: tuple[DataPoint, ...]


class TooManyPoints(MalformedMessage):
    """There are more data points than the limit."""


_KINDS: Final = {
    5: MetricKind.GAUGE,
    7: MetricKind.SUM,
    9: MetricKind.HISTOGRAM,
    10: MetricKind.HISTOGRAM,
    11: MetricKind.SUMMARY,
}
_EXPONENTIAL: Final = 10
# The number of a data point's attributes, by the number of the metric's data.
_ATTRIBUTES_AT: Final = {5: 7, 7: 7, 9: 9, 10: 1, 11: 7}


def decode(data: bytes, most_points: int) -> ClientMetrics:
    """Read a MetricsData. Raises MalformedMessage, TooManyPoints where there are more than ``most_points``."""
    resource: dict[str, str] = {}
    points: list[DataPoint] = []
    for number, wire_type, value in fields(data):
        if (number, wire_type) == (1, LEN):
            for point in _resource_metrics(message(value), resource):
                if len(points) == most_points:
                    raise TooManyPoints(f"more than {most_points} data points")
                points.append(point)
    return ClientMetrics(resource, tuple(points))


def _resource_metrics(data: bytes, resource: dict[str, str]) -> Iterator[DataPoint]:
    for number, wire_type, value in fields(data):
        if (number, wire_type) == (1, LEN):
            for inner, inner_type, attribute in fields(message(value)):
                if (inner, inner_type) == (1, LEN):
                    resource.update([_key_value(message(attribute))])
        elif (number, wire_type) == (2, LEN):
            for inner, inner_type, metric in fields(message(value)):
                if (inner, inner_type) == (2, LEN):
                    yield from _metric(message(metric))


def _metric(data: bytes) -> Iterator[DataPoint]:
    name, kind, content = "", 0, b""
    for number, wire_type, value in fields(data):
        if (number, wire_type) == (1, LEN):
            name = text(value)
        elif number in _KINDS and wire_type == LEN:
            kind, content = number, message(value)
    if not kind:
        return
    raw_points: list[bytes] = []
    is_delta = is_monotonic = False
    for number, wire_type, value in fields(content):
        if (number, wire_type) == (1, LEN):
            raw_points.append(message(value))
        elif (number, wire_type) == (2, VARINT):
            is_delta = signed(value) == _DELTA
        elif (number, wire_type) == (3, VARINT):
            is_monotonic = bool(value)
    read = _number_point if _KINDS[kind] in (MetricKind.GAUGE, MetricKind.SUM) else _distribution_point
    for raw in raw_points:
        attributes, time_ns, point = read(raw, kind)
        if point is not None:
            yield DataPoint(name, _KINDS[kind], attributes, point, time_ns, is_delta, is_monotonic)


def _number_point(data: bytes, kind: int) -> tuple[dict[str, str], int, float | None]:
    """One without a value says that there is none."""
    attributes: dict[str, str] = {}
    time_ns = 0
    found: float | None = None
    for number, wire_type, value in fields(data):
        if (number, wire_type) == (_ATTRIBUTES_AT[kind], LEN):
            attributes.update([_key_value(message(value))])
        elif (number, wire_type) == (3, I64):
            time_ns = fixed64(value)
        elif (number, wire_type) == (4, I64):
            found = double(value)
        elif (number, wire_type) == (6, I64):
            found = sfixed64(value)
    return attributes, time_ns, found


def _distribution_point(data: bytes, kind: int) -> tuple[dict[str, str], int, Buckets]:
    attributes: dict[str, str] = {}
    time_ns = count = 0
    total = 0.0
    bounds: list[float] = []
    counts: list[int] = []
    has_buckets = _KINDS[kind] is MetricKind.HISTOGRAM and kind != _EXPONENTIAL
    for number, wire_type, value in fields(data):
        if (number, wire_type) == (_ATTRIBUTES_AT[kind], LEN):
            attributes.update([_key_value(message(value))])
        elif (number, wire_type) == (3, I64):
            time_ns = fixed64(value)
        elif (number, wire_type) == (4, I64):
            count = fixed64(value)
        elif (number, wire_type) == (5, I64):
            total = double(value)
        elif has_buckets and number == 6 and wire_type in (LEN, I64):
            counts += packed_fixed64(value)
        elif has_buckets and number == 7 and wire_type in (LEN, I64):
            bounds += packed_doubles(value)
    if counts and len(counts) != len(bounds) + 1:
        raise MalformedMessage(f"a histogram of {len(counts)} buckets and {len(bounds)} bounds")
    return attributes, time_ns, Buckets(count, total, tuple(bounds) if counts else (), tuple(counts))


def _key_value(data: bytes) -> tuple[str, str]:
    key = shown = ""
    for number, wire_type, value in fields(data):
        if (number, wire_type) == (1, LEN):
            key = text(value)
        elif (number, wire_type) == (2, LEN):
            shown = _any_value(message(value))
    return key, shown


def _any_value(data: bytes) -> str:
    """An AnyValue: 1 string, 2 bool, 3 int64, 4 double; lists, maps and bytes are nothing."""
    shown = ""
    for number, wire_type, value in fields(data):
        match number, wire_type:
            case (1, 2):
                shown = text(value)
            case (2, 0):
                shown = "true" if value else "false"
            case (3, 0):
                shown = str(signed(value))
            case (4, 1):
                shown = str(double(value))
    return shown
