"""Latency beside idle partitions: one record in flight, acks=all, three replicas, and 2,500 partitions in which nothing happens.

The same load runs before these are made. The table has the ratio of both medians, too: an idle partition should cost nothing.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from benchmarks import load_tool
from benchmarks.cluster.clusters import BROKERS, Cluster
from benchmarks.load_tool import LoadFailed
from benchmarks.report import Figure
from benchmarks.rounds import Failures, run_load
from benchmarks.scenarios import Load, Target

NAME = "latency-idle"
# Topics, and partitions of each: as many at once as a broker creates within the request's timeout.
_TOPICS, _QUICK_TOPICS = 5, 1
_PARTITIONS = 500
_P50 = "p50 ms"
_TARGET = Target(1.3, at_least=False, of_ratio=False)


def figures(latency: Load, clusters: Mapping[str, Cluster], *, quick: bool, failures: Failures) -> list[Figure]:
    """Run ``latency`` on all clusters without idle partitions, and with them."""
    topics = _QUICK_TOPICS if quick else _TOPICS
    title = f"{latency.title}, {topics * _PARTITIONS:,} idle partitions"
    without = run_load(latency, clusters, quick=quick, failures=failures)
    with _idle_partitions(clusters, topics):
        beside = run_load(replace(latency, name=NAME, title=title), clusters, quick=quick, failures=failures)
    return [*beside, _growth(title, without, beside)]


def _growth(title: str, without: list[Figure], beside: list[Figure]) -> Figure:
    before, after = ({figure.measure: figure.values for figure in figures}[_P50] for figures in (without, beside))
    return Figure(title, "p50 / p50 without", {name: after[name] / before[name] for name in after if name in before}, _TARGET)


@contextmanager
def _idle_partitions(clusters: Mapping[str, Cluster], topics: int) -> Iterator[None]:
    """Raises LoadFailed."""
    names = [f"-topic=idle-{number}" for number in range(topics)]
    flags = (f"-partitions={_PARTITIONS}", f"-replicas={BROKERS}", "-records=1", "-keep")
    try:
        for cluster in clusters.values():
            for name in names:
                load_tool.run("produce", cluster.address, (name, *flags))
        yield
    finally:
        for cluster in clusters.values():
            for name in names:
                with suppress(LoadFailed):
                    load_tool.run("delete-topic", cluster.address, (name,))
