"""Readings as text, read back by Prometheus' own parser."""

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from odradek.broker.metrics.definitions import Distribution, Kind, Metric, Sum
from odradek.broker.metrics.exposition import render

COUNTER = Metric("kafka_things", Kind.COUNTER, ("a", "b"), "", "Things.")
GAUGE = Metric("kafka_level", Kind.GAUGE, (), "", "A level.")
HISTOGRAM = Metric("kafka_took_ms", Kind.HISTOGRAM, ("a",), "", "Times.")
SUMMARY = Metric("kafka_waited_ms", Kind.SUMMARY, (), "", "Waits.")
READINGS = [
    (COUNTER, [(("x", 'a "quoted"\nname'), 3)]),
    (GAUGE, [((), -1.5)]),
    (HISTOGRAM, [(("x",), Distribution((0.5, 10), [2, 0, 1], 31.5))]),
    (SUMMARY, [((), Sum(4, 8.25))]),
]
SAMPLES = {
    ("kafka_things_total", ("x", 'a "quoted"\nname')): 3,
    ("kafka_level", ()): -1.5,
    ("kafka_took_ms_bucket", ("x", "0.5")): 2,
    ("kafka_took_ms_bucket", ("x", "10.0")): 2,
    ("kafka_took_ms_bucket", ("x", "+Inf")): 3,
    ("kafka_took_ms_sum", ("x",)): 31.5,
    ("kafka_took_ms_count", ("x",)): 3,
    ("kafka_waited_ms_sum", ()): 8.25,
    ("kafka_waited_ms_count", ()): 4,
}


def samples_of(families):
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("kafka")
    }


def test_the_text_format_says_what_was_read():
    body, content_type = render(READINGS, "")
    assert content_type.startswith("text/plain")
    assert samples_of(parse_text(body.decode())) == SAMPLES


def test_openmetrics_is_given_to_who_asks_for_it():
    body, content_type = render(READINGS, "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert samples_of(parse_openmetrics(body.decode())) == SAMPLES


def test_the_process_tells_its_figures_too():
    body, _ = render([], "")
    assert b"process_cpu_seconds_total" in body
