"""``python -m benchmarks.cluster``: clusters of three brokers side by side, and the table.

First the clusters are started one at a time, several times. Then both are up and take failovers in turn; then, anew, loads.
"""

import argparse
import json
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from benchmarks import load_tool
from benchmarks.cluster import failover, idle_partitions, start_up
from benchmarks.cluster.clusters import BROKERS, Cluster, KafkaCluster, OdradekCluster
from benchmarks.load_tool import LoadFailed, MissingTool
from benchmarks.peers import BrokerFailed
from benchmarks.report import Figure, as_json, table
from benchmarks.rounds import Failures, note, run_load
from benchmarks.scenarios import AS_FAST, LOADS, Load
from odradek.build import description

CLUSTERS = {"odradek": OdradekCluster, "kafka": KafkaCluster}
START, FAILOVER = "start", "failover"
_TRANSACTIONS = ("txn-16", "txn-offsets-16", "txn-1", "txn-offsets-1")
_SHARES = ("share-implicit-1", "share-explicit-16")
_WITH_ONE_BROKER = frozenset(
    {"produce-100", "produce-1k", "latency", "latency-2000", *_TRANSACTIONS, "commits", "group-50", *_SHARES}
)


def _replicated(load: Load) -> Load:
    """As with one broker, and each partition has three replicas. The targets of one broker are not those of three."""
    measures = load.measures
    if load.name in _TRANSACTIONS:
        measures = tuple(replace(each, target=AS_FAST) if each.higher_is_better else each for each in measures)
    title, replicas = f"{load.title}, {BROKERS} replicas", f"-replicas={BROKERS}"
    fill = load.fill and (*load.fill, replicas)
    return replace(load, title=title, arguments=(*load.arguments, replicas), measures=measures, fill=fill)


REPLICATED: tuple[Load, ...] = tuple(_replicated(load) for load in LOADS if load.name in _WITH_ONE_BROKER)
_LATENCY = next(load for load in REPLICATED if load.name == "latency")
NAMES = (START, FAILOVER, *(load.name for load in REPLICATED), idle_partitions.NAME)
# The range of counted starts: the first one's number, and the last one's.
_STARTS, _QUICK_STARTS = (2, 4), (1, 1)
_ROUNDS, _QUICK_ROUNDS = 5, 1


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; an unknown name ends the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description="three brokers beside Apache Kafka's three")
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, metavar="NAME", default=NAMES, help=f"run these alone: {', '.join(NAMES)}"
    )
    parser.add_argument("--quick", action="store_true", help="small and once: to see that everything runs, not to compare")
    parser.add_argument("--clusters", default="odradek,kafka", help="comma-separated (default: odradek,kafka)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    chosen = parser.parse_args(arguments)
    chosen.clusters = chosen.clusters.split(",")
    unknown = set(chosen.clusters) - set(CLUSTERS)
    if unknown:
        parser.error(f"no such cluster: {', '.join(sorted(unknown))}")
    return chosen


def run_starts(chosen: argparse.Namespace, scratch: Path, failures: Failures) -> list[Figure]:
    """Start each cluster several times, in turn. The first start fills the page cache; a full run does not count it."""
    starts: dict[str, list[start_up.Start]] = {}
    first_counted, last = _QUICK_STARTS if chosen.quick else _STARTS
    for turn in range(1, last + 1):
        for name in chosen.clusters:
            try:
                with closing(CLUSTERS[name](scratch / f"start-{name}-{turn}", {})) as cluster:
                    start = start_up.measure(cluster)
            except BrokerFailed as failure:
                failures.tell(f"start of {name}", failure)
                continue
            note(f"start {turn} {name}: {start.seconds:.3f} s, {start.pss_mib:.1f} MiB")
            if turn >= first_counted:
                starts.setdefault(name, []).append(start)
    return start_up.figures(starts)


@contextmanager
def serving(names: Sequence[str], scratch: Path, settings: Mapping[str, str]) -> Iterator[dict[str, Cluster]]:
    """All clusters, each with a first record."""
    with ExitStack() as stack:
        clusters: dict[str, Cluster] = {}
        for name in names:
            cluster: Cluster = stack.enter_context(closing(CLUSTERS[name](scratch / name, settings)))
            start_up.first_record(cluster)
            clusters[name] = cluster
        yield clusters


def run_failovers(chosen: argparse.Namespace, scratch: Path, failures: Failures) -> list[Figure]:
    """Kill brokers of each cluster, in turn."""
    rounds: dict[str, dict[str, list[float]]] = {}
    with serving(chosen.clusters, scratch, failover.SETTINGS) as clusters:
        for kind in failover.KINDS:
            for turn in range(1, (_QUICK_ROUNDS if chosen.quick else _ROUNDS) + 1):
                for name in clusters if turn % 2 else reversed(clusters):
                    try:
                        took_s = failover.measure(clusters[name], kind)
                    except LoadFailed as failure:
                        failures.tell(f"failover, {kind}, of {name}", failure)
                        continue
                    note(f"failover {kind} {turn} {name}: {took_s:.3f} s")
                    rounds.setdefault(kind, {}).setdefault(name, []).append(took_s)
    return failover.figures(rounds)


def run_loads(chosen: argparse.Namespace, scratch: Path, failures: Failures) -> list[Figure]:
    """Run the chosen loads on all clusters, in turn."""
    loads = [load for load in REPLICATED if load.name in chosen.only]
    if not loads and idle_partitions.NAME not in chosen.only:
        return []
    with serving(chosen.clusters, scratch, {}) as clusters:
        figures = [figure for load in loads for figure in run_load(load, clusters, quick=chosen.quick, failures=failures)]
        if idle_partitions.NAME in chosen.only:
            figures += idle_partitions.figures(_LATENCY, clusters, quick=chosen.quick, failures=failures)
        return figures


def main() -> int:
    """Run what the command line chose; the exit status is that of ``python -m benchmarks``."""
    chosen = parse_arguments()
    signal.signal(signal.SIGTERM, _leave)
    failures = Failures()
    figures: list[Figure] = []
    parts = {START: run_starts, FAILOVER: run_failovers}
    try:
        load_tool.build()
        with tempfile.TemporaryDirectory(prefix="odradek-bench-") as directory:
            for name, run in (*parts.items(), ("loads", run_loads)):
                if name in chosen.only or name not in parts:
                    figures += run(chosen, Path(directory) / name, failures)
    except (MissingTool, LoadFailed, BrokerFailed) as failure:
        note(str(failure))
        return 2 if isinstance(failure, MissingTool) else 1
    print(f"{description()}, Python {platform.python_version()}")
    print(table(figures, chosen.clusters))
    if chosen.json:
        chosen.json.write_text(json.dumps(as_json(figures), indent=2) + "\n", encoding="utf-8")
    return 1 if failures.count else 0


def _leave(signal_number: int, _frame: FrameType | None) -> None:
    """Exit through every ``finally``, so that no process and no data is left behind."""
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    sys.exit(main())
