"""``python -m benchmarks``: run the benchmarks, print the table.

First the brokers are measured one at a time: repeated starts, restarts with many offsets, many partitions and much unflushed
data, and compaction. Then all brokers run at once and take the loads in turn (``benchmarks.rounds``).
"""

import argparse
import json
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TypeVar

from benchmarks import committed_offsets, compaction, load_tool, processes, restarts, start_up
from benchmarks.load_tool import LoadFailed, MissingTool
from benchmarks.peers import BrokerFailed, Kafka, Kfake, Odradek, Peer, Running, serving
from benchmarks.report import SUBJECT, Figure, as_json, table
from benchmarks.rounds import Failures, note, run_load
from benchmarks.scenarios import COMPACTING, LOADS, NAMES, OFFSETS, PARTITIONS, RELOAD, START, TLS_LOADS, UNCLEAN, USUAL, Load
from benchmarks.tls import certificates
from odradek.build import description

T = TypeVar("T")

# The range of counted starts: the first one's number, and the last one's.
_STARTS, _QUICK_STARTS = (2, 6), (1, 1)
_OFFSETS_RUNS, _QUICK_OFFSETS_RUNS = 2, 1


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; an unknown name ends the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="odradek side by side with Apache Kafka")
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, metavar="NAME", default=USUAL, help="run these alone: " + ", ".join(NAMES)
    )
    parser.add_argument("--quick", action="store_true", help="small and once: to see that everything runs, not to compare")
    parser.add_argument(
        "--brokers", default="odradek,kafka", help="comma-separated, of odradek, kafka, kfake (default: odradek,kafka)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    chosen = parser.parse_args(arguments)
    chosen.brokers = chosen.brokers.split(",")
    unknown = set(chosen.brokers) - {"odradek", "kafka", "kfake"}
    if unknown:
        parser.error(f"no such broker: {', '.join(sorted(unknown))}")
    return chosen


def peers_named(names: Sequence[str], scratch: Path) -> list[Peer]:
    """The brokers with these names."""
    peers: list[Peer] = []
    for name in names:
        if name == "kafka":
            template = scratch / "kafka-template"
            template.mkdir()
            peers.append(Kafka(template))
        else:
            peers.append(Odradek() if name == "odradek" else Kfake())
    return peers


def run_starts(peers: Sequence[Peer], scratch: Path, *, quick: bool, failures: Failures) -> list[Figure]:
    """Start each broker several times, in turn. The first start fills the page cache; a full run does not count it."""
    starts: dict[str, list[start_up.Start]] = {}
    first_counted, last = _QUICK_STARTS if quick else _STARTS
    for turn in range(1, last + 1):
        for peer in peers:
            try:
                start = start_up.measure(peer, scratch / f"start-{peer.name}-{turn}")
            except BrokerFailed as failure:
                failures.tell(f"start of {peer.name}", failure)
                continue
            note(f"start {turn} {peer.name}: {start.seconds:.3f} s, {start.memory.pss_mib:.1f} MiB")
            if turn >= first_counted:
                starts.setdefault(peer.name, []).append(start)
    return start_up.figures(dict(starts))


def run_offsets(peers: Sequence[Peer], scratch: Path, *, quick: bool, failures: Failures) -> list[Figure]:
    """Commit many offsets to each broker and restart it, in turn."""
    runs: dict[str, list[committed_offsets.Offsets]] = {}
    for turn in range(1, (_QUICK_OFFSETS_RUNS if quick else _OFFSETS_RUNS) + 1):
        for peer in peers if turn % 2 else reversed(peers):
            try:
                # Kafka takes half a minute for its two restarts. Once is enough: they differ from odradek's by far more than
                # chance.
                directory = scratch / f"offsets-{peer.name}-{turn}"
                run = committed_offsets.measure(peer, directory, quick=quick, with_restarts=turn == 1)
            except (BrokerFailed, LoadFailed) as failure:
                failures.tell(f"{OFFSETS} on {peer.name}", failure)
                continue
            note(f"{OFFSETS} {turn} {peer.name}: {run}")
            runs.setdefault(peer.name, []).append(run)
    return committed_offsets.figures(dict(runs))


def run_restarts(
    name: str, peers: Sequence[Peer], scratch: Path, measure: Callable[[Peer, Path], restarts.Restart], failures: Failures
) -> dict[str, Sequence[restarts.Restart]]:
    """Restart each broker that keeps its data, with much of it."""
    return {peer: [run] for peer, run in _once(name, peers, scratch, measure, failures).items()}


def run_compaction(peers: Sequence[Peer], scratch: Path, chosen: argparse.Namespace, failures: Failures) -> list[Figure]:
    """Measure latency under compaction, and odradek's reload of compacted logs, as far as they are chosen."""
    figures: list[Figure] = []
    with_cleaner = [peer for peer in peers if peer.name != "kfake"]
    if RELOAD in chosen.only:
        alone = [peer for peer in peers if peer.name == SUBJECT]
        reloads = _once(RELOAD, alone, scratch, partial(compaction.measure_reload, quick=chosen.quick), failures)
        figures += compaction.reload_figures(reloads)
    if COMPACTING in chosen.only:
        latencies = _once(COMPACTING, with_cleaner, scratch, partial(compaction.measure_latency, quick=chosen.quick), failures)
        figures += compaction.latency_figures(latencies)
    return figures


def _once(
    name: str, peers: Sequence[Peer], scratch: Path, measure: Callable[[Peer, Path], T], failures: Failures
) -> dict[str, T]:
    """Measure each broker once; brokers that failed are absent."""
    measured: dict[str, T] = {}
    for peer in peers:
        try:
            measured[peer.name] = measure(peer, scratch / f"{name}-{peer.name}")
        except (BrokerFailed, LoadFailed) as failure:
            failures.tell(f"{name} on {peer.name}", failure)
        else:
            note(f"{name} {peer.name}: {measured[peer.name]}")
    return measured


def run_loads(peers: Sequence[Peer], scratch: Path, chosen: argparse.Namespace, failures: Failures) -> list[Figure]:
    """Start the brokers, and run the chosen loads on them."""
    loads = [load for load in LOADS if load.name in chosen.only]
    figures = _run_on(loads, peers, scratch, chosen, failures)
    tls_loads = [load for load in TLS_LOADS if load.name in chosen.only]
    if tls_loads:
        settings, security = certificates(scratch / "certificates")
        with_tls = [peer for peer in peers if peer.name != "kfake"]
        tls_loads = [replace(load, security=security) for load in tls_loads]
        figures += _run_on(tls_loads, with_tls, scratch / "tls", chosen, failures, settings)
    return figures


def _run_on(
    loads: Sequence[Load],
    peers: Sequence[Peer],
    scratch: Path,
    chosen: argparse.Namespace,
    failures: Failures,
    settings: Mapping[str, str] | None = None,
) -> list[Figure]:
    """Start the brokers with these settings, and run the loads, which are of one kind, on them."""
    figures: list[Figure] = []
    if not loads:
        return figures
    security = loads[0].security
    with ExitStack() as stack:
        brokers: dict[str, Running] = {}
        for peer in peers:
            try:
                brokers[peer.name] = stack.enter_context(serving(peer, scratch / peer.name, settings, security))
            except BrokerFailed as failure:
                failures.tell(f"start of {peer.name}", failure)
        for load in loads:
            figures += run_load(load, brokers, quick=chosen.quick, failures=failures)
        alive = {name: running.process.pid for name, running in brokers.items() if running.process.poll() is None}
        pss_mib = {name: processes.memory_of(pid).pss_mib for name, pid in alive.items()}
        figures.append(Figure("TLS: after all loads" if security else "after all loads", "memory (PSS) MiB", pss_mib))
    return figures


def main() -> int:
    """Run what the command line chose.

    Returns 0 when everything ran, whether or not targets were reached; 1 when something failed; 2 when a tool is missing or
    does not build.
    """
    chosen = parse_arguments()
    signal.signal(signal.SIGTERM, _leave)
    failures = Failures()
    try:
        load_tool.build()
        with tempfile.TemporaryDirectory(prefix="odradek-bench-") as directory:
            scratch = Path(directory)
            peers = peers_named(chosen.brokers, scratch)
            figures: list[Figure] = []
            if START in chosen.only:
                figures += run_starts(peers, scratch, quick=chosen.quick, failures=failures)
            if OFFSETS in chosen.only:
                figures += run_offsets(peers, scratch, quick=chosen.quick, failures=failures)
            if PARTITIONS in chosen.only:
                measure = partial(restarts.measure_partitions, quick=chosen.quick)
                figures += restarts.partition_figures(run_restarts(PARTITIONS, peers, scratch, measure, failures))
            if UNCLEAN in chosen.only:
                measure = partial(restarts.measure_unclean, quick=chosen.quick)
                figures += restarts.unclean_figures(run_restarts(UNCLEAN, peers, scratch, measure, failures))
            figures += run_compaction(peers, scratch, chosen, failures)
            figures += run_loads(peers, scratch, chosen, failures)
    except (MissingTool, LoadFailed) as missing:
        note(str(missing))
        return 2
    print(f"odradek {description()}, CPython {platform.python_version()}\n")
    print(table(figures, chosen.brokers))
    if chosen.json:
        chosen.json.write_text(json.dumps(as_json(figures), indent=1) + "\n", encoding="utf-8")
    return 1 if failures.count else 0


def _leave(signal_number: int, _frame: FrameType | None) -> None:
    """Exit through every ``finally``, so that no broker and no data is left behind."""
    sys.exit(128 + signal_number)


if __name__ == "__main__":
    sys.exit(main())
