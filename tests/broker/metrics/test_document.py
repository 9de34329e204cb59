"""The page and the tables agree, and the names are what Prometheus wants."""

import re
from collections import Counter

from odradek.broker.metrics.definitions import Kind
from odradek.broker.metrics.document import document
from odradek.broker.metrics.table import SECTIONS
from tests.broker_process import REPOSITORY

METRICS = [metric for section in SECTIONS for metric in section.metrics]


def test_the_page_in_the_repository_is_the_one_the_tables_give():
    page = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == document(), "run python -m odradek.broker.metrics.document > docs/metrics.md"


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
        # What Prometheus does not allow in a label's name is an underscore.
        assert [label for label in wanted if f"{label}=" not in metric.mbean.replace("-", "_")] == []


def test_a_rate_of_kafkas_is_a_counter():
    for metric in METRICS:
        if re.search(r"name=\w+PerSec", metric.mbean):
            assert metric.kind is Kind.COUNTER
