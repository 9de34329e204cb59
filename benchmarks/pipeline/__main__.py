"""``python -m benchmarks.pipeline``: a synthetic history into a broker, the jobs over it, and the table of what they took.

Each run is a process of its own with an empty warehouse, over the same broker. ``local[1]`` with all its processes held on one
core is what a core can do; ``local[2]`` has two, which the broker shares.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import Odradek, spawn
from benchmarks.pipeline.history import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, History
from benchmarks.pipeline.job import DRIVER_MEMORY, JOBS
from benchmarks.pipeline.lives import Shape
from benchmarks.pipeline.tree import Watched
from benchmarks.pipeline.wire import Wire
from benchmarks.processes import end

# Nothing is to be compacted or expired while it is read, and nobody is to be waited for.
_SETTINGS = {
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": str(2**31 - 1),
    "offsets.retention.check.interval.ms": str(24 * 3600 * 1000),
}
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took.

    Args:
        master: Spark's.
        cores: those that its processes could use.
        seconds: by job, wall time without Spark's start.
        cpu_s: by job, CPU time of the JVM and of Python's workers.
        jvm_mib: the most memory of the JVM at any moment.
        python_mib: that of Python's workers together.
        written_mib: size of the directories of the warehouse.
    """

    master: str
    cores: int
    seconds: dict[str, float]
    cpu_s: dict[str, tuple[float, float]]
    jvm_mib: float
    python_mib: float
    written_mib: dict[str, float]


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description="The pipeline over a synthetic history")
    parser.add_argument("--records", type=int, default=1_000_000, help="in the history (default: 1,000,000)")
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--hot-share", type=float, default=0.25, help="of all commits, one group's (default: 0.25)")
    parser.add_argument("--jobs", default=",".join(JOBS), help=f"comma-separated, of {', '.join(JOBS)} (default: all)")
    parser.add_argument("--masters", default="local[1],local[2]", help="comma-separated (default: local[1],local[2])")
    parser.add_argument("--scratch", type=Path, help="where the broker's log and the warehouses go (default: the system's)")
    chosen = parser.parse_args()
    jobs = chosen.jobs.split(",")
    # However it ends, the broker and the jobs end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="odradek-pipeline-bench-", dir=chosen.scratch) as scratch:
        directory = Path(scratch, "broker")
        directory.mkdir()
        peer = Odradek()
        process = spawn(peer.prepare(directory, _SETTINGS), directory)
        try:
            address = peer.address(process, directory)
            _load(address, Shape(chosen.records, groups=chosen.groups, hot_share=chosen.hot_share))
            runs = [_run(address, Path(scratch), master, jobs, chosen.records) for master in chosen.masters.split(",")]
        finally:
            end(process)
    _report(runs, chosen.records)
    return 0


def _load(address: str, shape: Shape) -> None:
    began_s = time.perf_counter()
    with Wire(address) as wire:
        wire.wake_coordinators()
        counts = wire.partition_counts((OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
        for batches in History(shape, counts[OFFSETS_TOPIC], counts[TRANSACTIONS_TOPIC]).slices():
            wire.produce(batches)
    took_s = time.perf_counter() - began_s
    print(f"{shape.records:,} records generated and produced in {took_s:.1f} s", file=sys.stderr)


def _run(address: str, scratch: Path, master: str, jobs: Sequence[str], records: int) -> Run:
    warehouse = scratch / "warehouse"
    all_cores = os.sched_getaffinity(0)
    cores = {max(all_cores)} if master == "local[1]" else all_cores
    command = [sys.executable, "-m", "benchmarks.pipeline.job", address, str(warehouse), master, *jobs]
    # Inherited by all that the job starts.
    os.sched_setaffinity(0, cores)
    try:
        job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    finally:
        os.sched_setaffinity(0, all_cores)
    if job.stdin is None or job.stdout is None:
        raise AssertionError(command)
    seconds, cpu_s = {}, {}
    with job, Watched(job.pid) as watched:
        before = (0.0, 0.0)
        for _ in ["start", *jobs]:
            line = job.stdout.readline()
            told = json.loads(line or "null")
            if not told or told.get("records", records) != records:
                raise AssertionError(f"{' '.join(command)} said {line!r}")
            print(f"{master}: {line.strip()}", file=sys.stderr)
            now = watched.cpu_s()
            seconds[told["job"]] = told["seconds"]
            cpu_s[told["job"]] = (now[0] - before[0], now[1] - before[1])
            before = now
        job.stdin.write("\n")
        job.stdin.flush()
    written = {path.name: _size_mib(path) for path in sorted(warehouse.iterdir()) if path.is_dir()}
    shutil.rmtree(warehouse)
    return Run(master, len(cores), seconds, cpu_s, watched.peaks.jvm_mib, watched.peaks.python_mib, written)


def _size_mib(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / _MIB


def _report(runs: Sequence[Run], records: int) -> None:
    print(f"\n{records:,} records, driver memory {DRIVER_MEMORY}\n")
    print("| | " + " | ".join(f"{run.master}, {run.cores} core{'s' * (run.cores > 1)}" for run in runs) + " |")
    print("|---|" + "---:|" * len(runs))
    for name in [name for name in runs[0].seconds if name != "start"]:
        _row(f"{name}: wall time", [f"{run.seconds[name]:,.1f} s" for run in runs])
        _row(f"{name}: records a second", [f"{records / run.seconds[name]:,.0f}" for run in runs])
        _row(f"{name}: CPU time, JVM and Python", [f"{run.cpu_s[name][0]:,.1f} s, {run.cpu_s[name][1]:,.1f} s" for run in runs])
    totals = [sum(run.seconds.values()) - run.seconds["start"] for run in runs]
    _row("together: wall time", [f"{total:,.1f} s" for total in totals])
    _row("together: records a second", [f"{records / total:,.0f}" for total in totals])
    _row("together: against the first", [f"{totals[0] / total:.2f}" for total in totals])
    _row("Spark's start, before that", [f"{run.seconds['start']:,.1f} s" for run in runs])
    _row("peak memory of the JVM", [f"{run.jvm_mib:,.0f} MiB" for run in runs])
    _row("peak memory of Python's workers", [f"{run.python_mib:,.0f} MiB" for run in runs])
    for name in runs[0].written_mib:
        _row(f"`{name}/` on disk", [f"{run.written_mib.get(name, 0.0):,.1f} MiB" for run in runs])


def _row(name: str, cells: Sequence[str]) -> None:
    print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main())
