"""The reader of OpenTelemetry metrics, beside the one that OpenTelemetry publishes, on what that one has written."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.otlp_metrics import Buckets, MetricKind, TooManyPoints, decode

MOST = 1_000
KINDS = {
    "gauge": MetricKind.GAUGE,
    "sum": MetricKind.SUM,
    "histogram": MetricKind.HISTOGRAM,
    "exponential_histogram": MetricKind.HISTOGRAM,
    "summary": MetricKind.SUMMARY,
}

texts = st.text(max_size=8)
doubles = st.floats(allow_nan=False)
int64s = st.integers(-(2**63), 2**63 - 1)
uint64s = st.integers(0, 2**64 - 1)


@st.composite
def attributes(draw):
    """Key and value, and what is shown of it."""
    kind = draw(st.sampled_from(["string_value", "bool_value", "int_value", "double_value", "bytes_value", "array_value"]))
    values = {"string_value": texts, "bool_value": st.booleans(), "int_value": int64s, "double_value": doubles}
    value = draw(values.get(kind, st.just(b"")))
    shown = {"bytes_value": "", "array_value": "", "bool_value": str(value).lower()}.get(kind, str(value))
    return draw(texts), kind, value, shown


def put(attribute_list, where):
    for key, kind, value, _ in attribute_list:
        where.add(key=key)
        if kind == "array_value":
            where[-1].value.array_value.SetInParent()
        else:
            setattr(where[-1].value, kind, value)
    return {key: shown for key, _, _, shown in attribute_list}


@st.composite
def metrics(draw):
    """A MetricsData, and what is to be read: (resource, points)."""
    data = MetricsData()
    resource = {}
    points = []
    for _ in range(draw(st.integers(0, 2))):
        of_resource = data.resource_metrics.add(schema_url=draw(texts))
        resource |= put(draw(st.lists(attributes(), max_size=2)), of_resource.resource.attributes)
        for _ in range(draw(st.integers(0, 2))):
            scope = of_resource.scope_metrics.add()
            scope.scope.name = draw(texts)
            for _ in range(draw(st.integers(0, 2))):
                points += draw(one_metric(scope.metrics.add()))
    return data, resource, points


@st.composite
def one_metric(draw, metric):
    metric.name, metric.description, metric.unit = draw(texts), draw(texts), draw(texts)
    field = draw(st.sampled_from([*KINDS, ""]))
    if not field:
        return []
    content = getattr(metric, field)
    content.SetInParent()
    is_delta = is_monotonic = False
    if hasattr(content, "aggregation_temporality"):
        content.aggregation_temporality = draw(st.integers(0, 2))
        is_delta = content.aggregation_temporality == 1
    if hasattr(content, "is_monotonic"):
        content.is_monotonic = is_monotonic = draw(st.booleans())
    points = []
    for _ in range(draw(st.integers(0, 2))):
        point = content.data_points.add(
            start_time_unix_nano=draw(uint64s), time_unix_nano=draw(uint64s), flags=draw(st.integers(0, 1))
        )
        shown = put(draw(st.lists(attributes(), max_size=2)), point.attributes)
        value = draw(number(point) if field in ("gauge", "sum") else distribution(point, field))
        if value is not None:
            points.append((metric.name, KINDS[field], shown, value, point.time_unix_nano, is_delta, is_monotonic))
    return points


@st.composite
def number(draw, point):
    value = draw(st.one_of(st.none(), doubles, int64s))
    if value is not None:
        setattr(point, "as_double" if isinstance(value, float) else "as_int", value)
    return value


@st.composite
def distribution(draw, point, field):
    point.count, point.sum = draw(uint64s), draw(doubles)
    if field == "exponential_histogram":
        point.scale, point.zero_count = draw(st.integers(-9, 9)), draw(uint64s)
        point.positive.bucket_counts.extend(draw(st.lists(uint64s, max_size=3)))
    if field == "summary":
        point.quantile_values.add(quantile=draw(doubles), value=draw(doubles))
    if field != "histogram":
        return Buckets(point.count, point.sum)
    bounds = draw(st.lists(doubles, max_size=3))
    counts = draw(st.lists(uint64s, min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    point.explicit_bounds.extend(bounds)
    point.bucket_counts.extend(counts)
    return Buckets(point.count, point.sum, tuple(bounds), tuple(counts))


@given(metrics())
def test_what_opentelemetry_writes_is_read_as_it_was_meant(written):
    data, resource, points = written
    found = decode(data.SerializeToString(), MOST)
    assert (found.resource, [tuple(point) for point in found.points]) == (resource, points)


@given(metrics(), st.data())
def test_damaged_metrics_are_malformed_or_read_and_never_anything_else(written, data):
    damaged = bytearray(written[0].SerializeToString())
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    with contextlib.suppress(MalformedMessage):
        decode(bytes(damaged), MOST)


@given(st.binary(max_size=64))
def test_any_bytes_are_malformed_or_read(data):
    with contextlib.suppress(MalformedMessage):
        decode(data, MOST)


def test_more_data_points_than_the_limit_are_too_many():
    data = MetricsData()
    gauge = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge
    for _ in range(3):
        gauge.data_points.add(as_int=1)
    assert len(decode(data.SerializeToString(), 3).points) == 3
    with pytest.raises(TooManyPoints):
        decode(data.SerializeToString(), 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a", "ends inside a varint"),
        (b"\x0a\x05ab", "5 bytes, but 2 are left"),
        (b"\xff" * 11, "more than ten bytes"),
        (b"\x00", "field number 0"),
        (b"\x0b", "wire type 3"),
        (b"\x0d\0\0\0", "4 bytes, but 3 are left"),
    ],
)
def test_what_is_no_protobuf_says_why(data, reason):
    with pytest.raises(MalformedMessage, match=reason):
        decode(data, MOST)


def test_a_histogram_whose_buckets_do_not_fit_its_bounds_is_malformed():
    data = MetricsData()
    point = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").histogram.data_points.add()
    point.bucket_counts.extend([1, 2])
    with pytest.raises(MalformedMessage, match="2 buckets, but 0 bounds"):
        decode(data.SerializeToString(), MOST)
