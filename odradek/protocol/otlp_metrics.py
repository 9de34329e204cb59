"""Metrics that clients push in the OpenTelemetry protocol (KIP-714): decodes a MetricsData into its data points.

    MetricsData    1 resource metrics*
    ResourceMetrics    1 resource, 2 scope metrics*        Resource       1 attribute*
    ScopeMetrics       2 metric*                           KeyValue       1 key, 2 value
    Metric             1 name, 3 unit, and one of 5 gauge, 7 sum, 9 histogram, 10 exponential histogram, 11 summary
    each of these      1 data point*, 2 temporality, of a sum 3 whether it is monotonic
    NumberDataPoint    3 time, 4 double, 6 sfixed64, 7 attribute*
    HistogramDataPoint 3 time, 4 count, 5 sum, 6 bucket counts, 7 bounds, 9 attribute*
    SummaryDataPoint   3 time, 4 count, 5 sum, 7 attribute*

Left out: descriptions, units, exemplars, the buckets of exponential histograms and the quantiles of summaries. Their count and
sum are read. Attributes that are lists or maps are shown as empty text.

These dozen messages are read here by field number, without the package ``opentelemetry-proto``. That needs the protobuf runtime,
which many Python packages pin to a version, and a broker for tests shares the application's environment. Our tests use the
package for comparison. Source: ``opentelemetry/proto/metrics/v1/metrics.proto`` 1.3.

In the wire format of Protocol Buffers, as far as a reader needs it, a message is a sequence of fields:

    message    fields, one after the other
    field      key varint = number << 3 | wire type, then the value
    0 VARINT   up to ten bytes of seven bits, the lowest first
    1 I64      eight bytes, little-endian
    2 LEN      length varint, then as many bytes: a message, a text, bytes, or packed numbers
    5 I32      four bytes, little-endian

Wire types 3 and 4 (groups) belong to proto2, and are malformed here. Readers ignore unknown field numbers. Source: protobuf.dev,
"Encoding".
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from odradek.protocol.errors import MalformedMessage

VARINT: Final = 0
I64: Final = 1
LEN: Final = 2
I32: Final = 5

_UINT64_MASK: Final = (1 << 64) - 1
_MOST_BITS: Final = 64
# The largest value of a varint's last byte.
_MOST_OF_A_BYTE: Final = 0x7F
_MOST_NUMBER: Final = (1 << 29) - 1
_DOUBLE: Final = struct.Struct("<d")
_FIXED64: Final = struct.Struct("<Q")
_SFIXED64: Final = struct.Struct("<q")

# A varint as an unsigned integer, or the bytes of any other type.
Value = int | bytes


def fields(message: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yield (number, wire type, value) of each field in order. Raises MalformedMessage."""
    position, end = 0, len(message)
    while position < end:
        key = message[position]
        position += 1
        # Nearly all keys and lengths are a single byte.
        if key > _MOST_OF_A_BYTE:
            key, position = _varint(message, position - 1)
        number, wire_type = key >> 3, key & 7
        if not 0 < number <= _MOST_NUMBER:
            raise MalformedMessage(f"protobuf: invalid field number {number}")
        if wire_type == LEN:
            if position < end and message[position] <= _MOST_OF_A_BYTE:
                size = message[position]
                position += 1
            else:
                size, position = _varint(message, position)
        elif wire_type == I64:
            size = 8
        elif wire_type == I32:
            size = 4
        elif wire_type == VARINT:
            value, position = _varint(message, position)
            yield number, wire_type, value
            continue
        else:
            raise MalformedMessage(f"protobuf: unknown wire type {wire_type}")
        start = position
        position += size
        if position > end:
            raise MalformedMessage(f"protobuf: a field has {size} bytes, but {end - start} are left")
        yield number, wire_type, message[start:position]


def text(value: Value) -> str:
    """Read a string. Raises MalformedMessage if it is not UTF-8."""
    try:
        return str(_bytes(value), "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"protobuf: {error}") from None


def message(value: Value) -> bytes:
    """Return the bytes of an inner message."""
    return _bytes(value)


def signed(value: Value) -> int:
    """Read an int64 or an enum."""
    if not isinstance(value, int):
        raise MalformedMessage("protobuf: a field has the wrong type")
    return value - (1 << 64) if value >> 63 else value


def double(value: Value) -> float:
    """Read a double."""
    return float(_DOUBLE.unpack(_fixed(value))[0])


def fixed64(value: Value) -> int:
    """Read a fixed64."""
    return int(_FIXED64.unpack(_fixed(value))[0])


def sfixed64(value: Value) -> int:
    """Read an sfixed64."""
    return int(_SFIXED64.unpack(_fixed(value))[0])


def packed_doubles(value: Value) -> list[float]:
    """Read the doubles of a repeated field: packed, or a single one."""
    return [each for (each,) in _DOUBLE.iter_unpack(_packed(value))]


def packed_fixed64(value: Value) -> list[int]:
    """Read the fixed64 values of a repeated field: packed, or a single one."""
    return [each for (each,) in _FIXED64.iter_unpack(_packed(value))]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte <= _MOST_OF_A_BYTE:
                return value & _UINT64_MASK, position
            shift += 7
            if shift >= _MOST_BITS + 6:
                raise MalformedMessage("protobuf: a varint has more than ten bytes")
    except IndexError:
        raise MalformedMessage("protobuf: the data ends inside a varint") from None


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise MalformedMessage("protobuf: a field has the wrong type")
    return value


def _fixed(value: Value) -> bytes:
    data = _bytes(value)
    if len(data) != _DOUBLE.size:
        raise MalformedMessage("protobuf: a field has the wrong type")
    return data


def _packed(value: Value) -> bytes:
    data = _bytes(value)
    if len(data) % _DOUBLE.size:
        raise MalformedMessage(f"protobuf: packed numbers cannot have {len(data)} bytes")
    return data


_DELTA: Final = 1


class MetricKind(Enum):
    """The kind of a metric's data points."""

    GAUGE = "gauge"
    SUM = "sum"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram's ``counts``, the last one above all ``bounds``. Both are empty if only count and sum are known."""

    count: int
    total: float
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class DataPoint(NamedTuple):
    """One value of a metric. ``is_delta``: counted since the last push, else since the client began to count.

    ``attributes`` are the data point's own. ``time_ns`` is from the client's clock.
    """

    name: str
    kind: MetricKind
    attributes: Mapping[str, str]
    value: float | Buckets
    time_ns: int
    is_delta: bool = False
    is_monotonic: bool = False


class ClientMetrics(NamedTuple):
    """The content of a push. ``resource`` has the client's attributes, which apply to all data points."""

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
    """Decode a MetricsData. Raises MalformedMessage, TooManyPoints if there are more than ``most_points``."""
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
    """Read a number data point: attributes, time, and value. The value is None if the point has none."""
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
        raise MalformedMessage(f"a histogram has {len(counts)} buckets, but {len(bounds)} bounds")
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
    """Read an AnyValue: 1 string, 2 bool, 3 int64, 4 double. Lists, maps and bytes give an empty text."""
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
