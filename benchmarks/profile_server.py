"""``python -m benchmarks.profile_server LOAD``: a profile of odradek under one of the loads.

With cProfile (the default) the broker runs as ``python -m cProfile -m odradek serve ...``. The profile shows the time of every
Python function. Calls cost more than unprofiled, so the figures compare parts and are not for quoting. With ``--perf`` the
broker runs unchanged, and Linux's sampling profiler observes it from outside: without distortion, and with C code and the
kernel, but without a distinction between Python functions.
"""

import argparse
import pstats
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import load_tool, processes
from benchmarks.load_tool import LoadFailed, MissingTool
from benchmarks.peers import BrokerFailed, Odradek, Running, spawn
from benchmarks.rounds import filled_topic, measure, note, summary
from benchmarks.scenarios import LOADS, Load

_STOP_TIMEOUT_S = 15.0
_PERF_TIMEOUT_S = 60.0


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_server", description="profile odradek under a load")
    parser.add_argument("load", choices=[load.name for load in LOADS])
    parser.add_argument("--perf", action="store_true", help="sample with Linux's perf instead of cProfile")
    parser.add_argument("--full", action="store_true", help="the full load; by default its --quick size")
    parser.add_argument(
        "--sort", choices=("tottime", "cumulative", "ncalls"), default="tottime", help="order of cProfile's table"
    )
    parser.add_argument("--top", type=int, default=45, help="how many lines to print")
    parser.add_argument("--output", type=Path, help="keep the profile in this file")
    return parser.parse_args()


@contextmanager
def odradek(directory: Path, python_flags: tuple[str, ...]) -> Iterator[Running]:
    """Run odradek, its interpreter with these flags, and stop it by SIGTERM, so that a profile is written."""
    peer = Odradek()
    interpreter, *rest = peer.prepare(directory, {})
    process = spawn([interpreter, *python_flags, *rest], directory)
    try:
        yield Running(process, peer.address(process, directory))
        process.send_signal(signal.SIGTERM)
        process.wait(_STOP_TIMEOUT_S)
    finally:
        processes.end(process)


def under_load(load: Load, broker: Running, *, full: bool, around: Callable[[], subprocess.Popen[bytes] | None]) -> None:
    """Run the load once. ``around`` starts the observer, after the topic of a reading load has been filled."""
    count = load.count if full else load.quick_count
    with filled_topic(load, broker.address, count) as flags:
        watcher = around()
        measured = measure(load, broker, (*load.arguments_for(count), *flags))
        if watcher is not None:
            watcher.send_signal(signal.SIGINT)
            watcher.wait(_PERF_TIMEOUT_S)
    note(f"{load.name}, while profiled: {summary(load, measured)}")


def with_cprofile(load: Load, chosen: argparse.Namespace, scratch: Path) -> None:
    """Profile every Python function of the broker, from its start to its stop."""
    profile = (chosen.output or scratch / "profile.out").absolute()
    with odradek(scratch, ("-m", "cProfile", "-o", str(profile))) as broker:
        under_load(load, broker, full=chosen.full, around=lambda: None)
    pstats.Stats(str(profile)).sort_stats(chosen.sort).print_stats(chosen.top)


def with_perf(load: Load, chosen: argparse.Namespace, scratch: Path) -> None:
    """Sample the broker's process, its C code and the kernel, during the load only."""
    perf = shutil.which("perf")
    if perf is None:
        raise MissingTool("there is no `perf` on the PATH: apt-get install linux-perf")
    samples = (chosen.output or scratch / "perf.data").absolute()
    with odradek(scratch, ()) as broker:
        record = [perf, "record", "-q", "-F", "997", "-p", str(broker.process.pid), "-o", str(samples)]
        under_load(load, broker, full=chosen.full, around=lambda: subprocess.Popen(record))
    report = [perf, "report", "-i", str(samples), "--stdio", "--no-children", "--sort", "dso,symbol", "--percent-limit", "0.3"]
    shown = subprocess.run(report, check=True, capture_output=True, text=True, timeout=_PERF_TIMEOUT_S).stdout
    lines = [line for line in shown.splitlines() if line and not line.startswith("#")]
    print("\n".join(line.rstrip(" -") for line in lines[: chosen.top]))


def main() -> int:
    """Profile as the command line says. Returns 1 if the broker or the load failed, 2 if a tool is missing."""
    chosen = parse_arguments()
    load = next(load for load in LOADS if load.name == chosen.load)
    profiler = with_perf if chosen.perf else with_cprofile
    try:
        load_tool.build()
        with tempfile.TemporaryDirectory(prefix="odradek-profile-") as directory:
            profiler(load, chosen, Path(directory))
    except MissingTool as missing:
        note(str(missing))
        return 2
    except (BrokerFailed, LoadFailed) as failure:
        note(str(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
