"""Runs one load on every broker, in turn.

All brokers run at the same time and take each load in alternating order (A B, B A, A B), so that other activity of the machine
affects all alike. Brokers idle when it is not their turn. A short run of the load warms each broker up first, since a JVM
compiles code that has run. Each figure is the best of the counted runs, and a p99 their median.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from benchmarks import load_tool
from benchmarks.load_tool import LoadFailed, Measurement
from benchmarks.peers import Server
from benchmarks.report import Figure
from benchmarks.scenarios import Load

_ROUNDS, _QUICK_ROUNDS = 3, 1
_SETTLE_S = 0.3


class Failures:
    """Failures, printed when they occur, and counted for the exit status."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, what: str, failure: Exception) -> None:
        """Print and count one failure."""
        self.count += 1
        note(f"FAILED {what}: {failure}")


def note(text: str) -> None:
    """Print progress on standard error; standard output has only the table."""
    print(text, file=sys.stderr, flush=True)


def run_load(load: Load, brokers: Mapping[str, Server], *, quick: bool, failures: Failures) -> list[Figure]:
    """Run one load on every broker, in turn, and return each figure: its best, or its median."""
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
            # Round 0 is the warm-up and is not counted.
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
        Figure(load.title, each.name, {name: each.of(measured) for name, measured in runs.items()}, each.target)
        for each in load.measures
    ]


def measure(load: Load, broker: Server, arguments: tuple[str, ...]) -> Measurement:
    """Run one load on one broker, once."""
    return load_tool.measure(load.subcommand, broker.address, arguments, server_pids=broker.pids)


def summary(load: Load, measured: Measurement) -> str:
    """All figures of one run, in one line."""
    return ", ".join(f"{each.read(measured):,.3f} {each.name}" for each in load.measures)


@contextmanager
def filled_topic(load: Load, address: str, count: int) -> Iterator[tuple[str, ...]]:
    """Fill the topic of a reading load, and delete it afterwards. Yields the flags that name it; none for other loads."""
    if load.fill is None:
        yield ()
        return
    flags = (f"-topic={load.name}", "-keep")
    drop = (*load.security, f"-topic={load.name}")
    load_tool.run("produce", address, (*load.security, *load.fill, f"-records={count}", *flags))
    try:
        yield flags
    finally:
        # A broker that crashed under the load has been reported already, and its data is deleted with its directory.
        with suppress(LoadFailed):
            load_tool.run("delete-topic", address, drop)


def settle_disk() -> None:
    """Flush the disk now, so that the kernel does not write old data out under the next load.

    The pause lets a broker delete the data of the last load, which then need not be written.
    """
    time.sleep(_SETTLE_S)
    os.sync()
