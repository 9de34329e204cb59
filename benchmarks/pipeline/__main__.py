"""``python -m benchmarks.pipeline``: produce a synthetic history, run the jobs over it, print a table of times and memory.

Each master has a process of its own with an empty warehouse, on the same broker, and they take each job in turn. Under
``local[1]`` the process and the broker share one core, under ``local[2]`` two.
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
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.peers import Odradek, spawn
from benchmarks.pipeline.history import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, History
from benchmarks.pipeline.job import DRIVER_MEMORY, JOBS
from benchmarks.pipeline.lives import Shape
from benchmarks.pipeline.tree import Watched
from benchmarks.pipeline.wire import Wire
from benchmarks.processes import end

# Keep all records while they are read, and wait for no further group members.
_SETTINGS = {
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": str(2**31 - 1),
    "offsets.retention.check.interval.ms": str(24 * 3600 * 1000),
}
_MIB = 1024 * 1024


@dataclass(slots=True)
class Run:
    """The measurements of the jobs under one master.

    Args:
        master: Spark's master.
        cores: the number of cores its processes could use.
        seconds: by job, wall time without Spark's start.
        cpu_s: by job, CPU time of the JVM and of Python's workers.
        jvm_mib: peak memory of the JVM.
        python_mib: peak memory of Python's workers together.
        written_mib: size of the warehouse's directories.
    """

    master: str
    cores: int
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    jvm_mib: float = 0.0
    python_mib: float = 0.0
    written_mib: dict[str, float] = field(default_factory=dict)


def main() -> int:
    """Run the benchmark; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description="The pipeline over a synthetic history")
    parser.add_argument("--records", type=int, default=1_000_000, help="in the history (default: 1,000,000)")
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--hot-share", type=float, default=0.25, help="of all commits, one group's (default: 0.25)")
    parser.add_argument("--jobs", default=",".join(JOBS), help=f"comma-separated, of {', '.join(JOBS)} (default: all)")
    parser.add_argument("--masters", default="local[1],local[2]", help="comma-separated (default: local[1],local[2])")
    parser.add_argument("--rounds", type=int, default=1, help="of which each job's fastest counts (default: 1)")
    parser.add_argument("--scratch", type=Path, help="where the broker's log and the warehouses go (default: the system's)")
    chosen = parser.parse_args()
    jobs = chosen.jobs.split(",")
    # End the broker and the jobs on SIGTERM too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="odradek-pipeline-bench-", dir=chosen.scratch) as scratch:
        directory = Path(scratch, "broker")
        directory.mkdir()
        peer = Odradek()
        process = spawn(peer.prepare(directory, _SETTINGS), directory)
        try:
            address = peer.address(process, directory)
            _load(address, Shape(chosen.records, groups=chosen.groups, hot_share=chosen.hot_share))
            rounds = [
                _round(address, process.pid, Path(scratch), chosen.masters.split(","), jobs, chosen.records)
                for _ in range(chosen.rounds)
            ]
        finally:
            end(process)
    _report([_best(of_master) for of_master in zip(*rounds, strict=True)], chosen.records)
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


class _Started:
    """A process that runs jobs under one master on request, in a warehouse of its own.

    A context manager: its block begins when Spark has started, and at its end, however that comes, the process has ended. Under
    ``local[1]`` the process and the broker are pinned to one core; otherwise they may use all.
    """

    def __init__(self, address: str, broker_pid: int, warehouse: Path, master: str) -> None:
        self._broker_pid = broker_pid
        self._warehouse = warehouse
        all_cores = os.sched_getaffinity(0)
        self._cores = {max(all_cores)} if master == "local[1]" else all_cores
        self.run = Run(master, len(self._cores))
        self._command = [sys.executable, "-m", "benchmarks.pipeline.job", address, str(warehouse), master]
        # Its child processes inherit the affinity.
        os.sched_setaffinity(0, self._cores)
        try:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        finally:
            os.sched_setaffinity(0, all_cores)

    def take(self, job: str, records: int) -> None:
        """Run a job; ``records`` is the size of the whole history."""
        os.sched_setaffinity(self._broker_pid, self._cores)
        with Watched(self._process.pid) as watched:
            before = watched.cpu_s()
            self._say(job)
            told = self._told()
            after = watched.cpu_s()
        if told.get("records", records) != records:
            raise AssertionError(f"{' '.join(self._command)}: {job} said {told}")
        self.run.seconds[job] = told["seconds"]
        self.run.cpu_s[job] = (after[0] - before[0], after[1] - before[1])
        self.run.jvm_mib = max(self.run.jvm_mib, watched.peaks.jvm_mib)
        self.run.python_mib = max(self.run.python_mib, watched.peaks.python_mib)

    def _say(self, line: str) -> None:
        if self._process.stdin is None:
            raise AssertionError(self._command)
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _told(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        print(f"{self.run.master}: {line.strip()}", file=sys.stderr)
        told: dict[str, Any] = json.loads(line or "null")
        if not told:
            raise AssertionError(f"{' '.join(self._command)} said {line!r}")
        return told

    def __enter__(self) -> Self:
        try:
            self.run.seconds["start"] = self._told()["seconds"]
        except BaseException:
            end(self._process)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None:
            # A job may be under way. The JVM ends with the process that has started it.
            end(self._process)
        else:
            # The process ends when its input does.
            self._process.__exit__(kind, error, traceback)
        if self._warehouse.is_dir():
            directories = [path for path in sorted(self._warehouse.iterdir()) if path.is_dir()]
            self.run.written_mib = {path.name: _size_mib(path) for path in directories}
            shutil.rmtree(self._warehouse)


def _round(address: str, broker_pid: int, scratch: Path, masters: Sequence[str], jobs: Sequence[str], records: int) -> list[Run]:
    """Run each job under each master in turn, so that other activity of the machine affects all masters alike."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(_Started(address, broker_pid, scratch / f"warehouse-{number}", master))
            for number, master in enumerate(masters)
        ]
        for job in jobs:
            for each in started:
                each.take(job, records)
    return [each.run for each in started]


def _best(rounds: Sequence[Run]) -> Run:
    """The best of one master's rounds: each job's shortest time, and the highest memory."""
    best = rounds[0]
    for other in rounds[1:]:
        for job, seconds in other.seconds.items():
            if seconds < best.seconds[job]:
                best.seconds[job] = seconds
                if job in other.cpu_s:
                    best.cpu_s[job] = other.cpu_s[job]
        best.jvm_mib = max(best.jvm_mib, other.jvm_mib)
        best.python_mib = max(best.python_mib, other.python_mib)
    return best


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
