"""Readings as text, read back by Prometheus' own parser; the page and the tables agree, and names are what Prometheus wants."""

import re
from collections import Counter

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from odradek.broker.metrics.definitions import Distribution, Kind, Metric, Sum
from odradek.broker.metrics.exposition import render
from odradek.broker.metrics.table import SECTIONS, document
from tests.broker_process import REPOSITORY

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


# The page and the tables agree, and the names are what Prometheus wants.
METRICS = [metric for section in SECTIONS for metric in section.metrics]


def test_the_page_in_the_repository_is_the_one_the_tables_give():
    page = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == document(), "run python -m odradek.broker.metrics.table > docs/metrics.md"


def test_no_name_is_given_twice():
    assert [name for name, count in Counter(metric.name for metric in METRICS).items() if count > 1] == []


def test_every_name_is_one_that_prometheus_takes_and_has_no_suffix_of_its_own():
    for metric in METRICS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
        assert not metric.name.endswith(("_total", "_sum", "_bucket"))


def test_what_kafka_has_is_named_after_its_mbean_and_what_it_has_not_after_odradek():
    for metric in METRICS:
        if not metric.mbean:
            assert metric.name.startswith("odradek_")
            continue
        domain, type_ = re.match(r"kafka\.([a-z.]+):type=([\w-]+)", metric.mbean).groups()
        prefix = f"kafka_{domain}_{type_}_".replace("-", "_").replace(".", "_").lower()
        assert metric.name.startswith(prefix)


def test_labels_are_those_of_the_mbean():
    for metric in METRICS:
        wanted = [label for label in metric.labels if metric.mbean]
        # An underscore replaces each character that Prometheus does not allow in a label's name.
        assert [label for label in wanted if f"{label}=" not in metric.mbean.replace("-", "_")] == []


def test_a_rate_of_kafkas_is_a_counter():
    for metric in METRICS:
        if re.search(r"name=\w+PerSec", metric.mbean):
            assert metric.kind is Kind.COUNTER
