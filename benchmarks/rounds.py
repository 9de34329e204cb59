"""Runs one load on every broker, in turn.

The brokers run at the same time and take each load one after the other (A B, B A, A B), so that whatever else the machine is
doing falls on all alike; those whose turn it is not, idle. Each is warmed up with a short run of the load first: a JVM compiles
what it has seen run. Of the runs that count, each figure is shown at its best.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from benchmarks import load_tool
from benchmarks.load_tool import LoadFailed, Measurement
from benchmarks.peers import Running
from benchmarks.report import Figure
from benchmarks.scenarios import Load

_ROUNDS, _QUICK_ROUNDS = 3, 1
_SETTLE_S = 0.3


class Failures:
    """What went wrong, told at once and again by the exit status."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, what: str, failure: Exception) -> None:
        """Count and print one failure."""
        self.count += 1
        note(f"FAILED {what}: {failure}")


def note(text: str) -> None:
    """Say on standard error how far the run is; standard output has the table alone."""
    print(text, file=sys.stderr, flush=True)


def run_load(load: Load, brokers: Mapping[str, Running], *, quick: bool, failures: Failures) -> list[Figure]:
    """Run one load on every broker, in turn, and give each figure at its best."""
    count = load.quick_count if quick else load.count
    runs: dict[str, list[Measurement]] = {}
    with ExitStack() as topics:
        flags: dict[str, tuple[str, ...]] = {}
        for name, broker in brokers.items():
            try:
                flags[name] = topics.enter_context(filled_topic(load, broker.address, count))
            except LoadFailed as failure:
                failures.tell(f"filling the topic of {load.name} on {name}", failure)
        for turn in range((_QUICK_ROUNDS if quick else _ROUNDS) + 1):
            # Round 0 warms up and is not counted.
            arguments = load.arguments_for(count if turn else load.quick_count)
            for name in flags if turn % 2 else reversed(flags):
                settle_disk()
                try:
                    measured = measure(load, brokers[name], (*arguments, *flags[name]))
                except LoadFailed as failure:
                    failures.tell(f"{load.name} on {name}", failure)
                    continue
                if turn > 0:
                    runs.setdefault(name, []).append(measured)
                    note(f"{load.name} {turn} {name}: {summary(load, measured)}")
    return [
        Figure(load.title, each.name, {name: each.best(measured) for name, measured in runs.items()}, each.target)
        for each in load.measures
    ]


def measure(load: Load, broker: Running, arguments: tuple[str, ...]) -> Measurement:
    """Run one load on one broker, once."""
    return load_tool.measure(load.subcommand, broker.address, arguments, server_pid=broker.process.pid)


def summary(load: Load, measured: Measurement) -> str:
    """All figures of one run, in a line."""
    return ", ".join(f"{each.read(measured):,.3f} {each.name}" for each in load.measures)


@contextmanager
def filled_topic(load: Load, address: str, count: int) -> Iterator[tuple[str, ...]]:
    """Write what a load will read, and delete it afterwards; gives the flags that make the load read it, if it reads."""
    if load.fill is None:
        yield ()
        return
    flags = (f"-topic={load.name}", "-keep")
    load_tool.run("produce", address, (*load.fill, f"-records={count}", *flags))
    try:
        yield flags
    finally:
        # A broker that fell over under the load has failed already, and its data goes with its directory.
        with suppress(LoadFailed):
            load_tool.run("delete-topic", address, flags[:1])


def settle_disk() -> None:
    """Have the disk written out now what it would write out under the load that comes.

    The pause lets a broker delete what the last load wrote: then there is nothing to write.
    """
    time.sleep(_SETTLE_S)
    os.sync()
