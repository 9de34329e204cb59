"""Starting on much data: 10,000 partitions, and 5 GB of log after an unclean stop.

The broker has the machine to itself. The clock starts before the broker is spawned on its data. It stops when the load
generator's ``first-record``, started beforehand, has created a topic and fetched its record back.

``partitions-10k``: ten topics of a thousand partitions, two records in each. The broker is stopped by SIGTERM and started. It
idles for two seconds, in which its memory and CPU time are read. Two more records go into each partition; the broker is killed
(SIGKILL) and started again. ``unclean-5gb``: 5 GB of records of 1 KB in 6 partitions; the broker is killed and started.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import load_tool, processes
from benchmarks.peers import BrokerFailed, Peer, spawn, tail
from benchmarks.report import Figure
from benchmarks.scenarios import PARTITIONS_TITLE, RESTART_TARGET, UNCLEAN_TITLE, Target

_TOPICS, _QUICK_TOPICS, _PARTITIONS = 10, 1, 1_000
_GIGABYTES, _QUICK_GIGABYTES = 5, 1
_RECORD_BYTES = 1_000
_STOP_TIMEOUT_S = 600.0
_IDLE_S = 2.0
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Restart:
    """The measurements of one broker; None for steps that were not run.

    Args:
        after_kill_s: the time from spawning the broker after a kill to the first record.
        after_stop_s: the same after a clean stop.
        stop_s: the time from SIGTERM to the end of the process.
        idle_pss_mib: memory after the clean start.
        idle_cpu_s_per_s: CPU time in a second of idling.
    """

    after_kill_s: float
    after_stop_s: float | None = None
    stop_s: float | None = None
    idle_pss_mib: float | None = None
    idle_cpu_s_per_s: float | None = None


class _Broker:
    """A broker on one directory, for repeated starts."""

    def __init__(self, peer: Peer, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._peer = peer
        self._directory = directory
        self._command = peer.prepare(directory, {})
        self.process = spawn(self._command, directory)
        self.address = peer.address(self.process, directory)
        load_tool.run("first-record", self.address, ("-topic=warm-up",))

    def stop(self) -> float:
        """Stop the broker by SIGTERM; the seconds until it ended."""
        began_s = time.perf_counter()
        self.process.terminate()
        try:
            self.process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as hanging:
            reason = f"still there {hanging.timeout:.0f} s after SIGTERM"
            raise BrokerFailed(reason) from hanging
        return time.perf_counter() - began_s

    def start(self) -> float:
        """Start the stopped broker on its data; the seconds until its first record was fetched back."""
        os.sync()
        with load_tool.waiting("first-record", (f"-topic=restart-{time.monotonic_ns()}",)) as tell:
            began_s = time.perf_counter()
            self.process = spawn(self._command, self._directory)
            self.address = self._peer.address(self.process, self._directory)
            answer = tell(self.address)
            took_s = time.perf_counter() - began_s
        if not answer:
            raise BrokerFailed(tail(self._directory))
        return took_s

    def idle(self) -> tuple[float, float]:
        """Let the broker idle: its memory in MiB (PSS), and CPU seconds in a second."""
        before_s = processes.cpu_seconds_of(self.process.pid)
        time.sleep(_IDLE_S)
        cpu_s = processes.cpu_seconds_of(self.process.pid) - before_s
        return processes.memory_of(self.process.pid).pss_mib, cpu_s / _IDLE_S

    def kill(self) -> None:
        """Kill the broker."""
        self.process.kill()
        self.process.wait()


def measure_partitions(peer: Peer, directory: Path, *, quick: bool) -> Restart:
    """Measure a broker with many partitions. Raises BrokerFailed or LoadFailed."""

    def measured(broker: _Broker) -> Restart:
        topics = _QUICK_TOPICS if quick else _TOPICS
        _fill_partitions(broker, topics)
        stop_s = broker.stop()
        after_stop_s = broker.start()
        idle_pss_mib, idle_cpu = broker.idle()
        _fill_partitions(broker, topics)
        broker.kill()
        return Restart(broker.start(), after_stop_s, stop_s, idle_pss_mib, idle_cpu)

    return _with_broker(peer, directory, measured)


def _fill_partitions(broker: _Broker, topics: int) -> None:
    for topic in range(topics):
        arguments = (f"-topic=many-{topic}", f"-partitions={_PARTITIONS}", f"-records={_PARTITIONS}", "-keep")
        for attempt in range(_ATTEMPTS):
            try:
                load_tool.run("produce", broker.address, arguments)
                break
            except load_tool.LoadFailed:
                # Kafka answers CreateTopics for so many partitions before all of them exist.
                if attempt == _ATTEMPTS - 1:
                    raise


def measure_unclean(peer: Peer, directory: Path, *, quick: bool) -> Restart:
    """Measure a broker with much data that a kill leaves unflushed. Raises BrokerFailed or LoadFailed."""

    def measured(broker: _Broker) -> Restart:
        records = 10**9 // _RECORD_BYTES
        for _ in range(_QUICK_GIGABYTES if quick else _GIGABYTES):
            load_tool.run("produce", broker.address, ("-topic=large", f"-size={_RECORD_BYTES}", f"-records={records}", "-keep"))
        broker.kill()
        return Restart(broker.start())

    return _with_broker(peer, directory, measured)


def _with_broker(peer: Peer, directory: Path, measured: Callable[[_Broker], Restart]) -> Restart:
    broker = None
    try:
        broker = _Broker(peer, directory)
        return measured(broker)
    finally:
        if broker is not None:
            processes.end(broker.process)
        shutil.rmtree(directory, ignore_errors=True)


def partition_figures(runs: dict[str, Sequence[Restart]]) -> list[Figure]:
    """The best of each broker's runs with many partitions."""
    return [
        _best(PARTITIONS_TITLE, "start to first record s", runs, lambda run: run.after_stop_s, RESTART_TARGET),
        _best(PARTITIONS_TITLE, "the same after kill -9 s", runs, lambda run: run.after_kill_s, RESTART_TARGET),
        _best(PARTITIONS_TITLE, "clean stop s", runs, lambda run: run.stop_s),
        _best(PARTITIONS_TITLE, "idle memory (PSS) MiB", runs, lambda run: run.idle_pss_mib),
        _best(PARTITIONS_TITLE, "idle CPU s / s", runs, lambda run: run.idle_cpu_s_per_s),
    ]


def unclean_figures(runs: dict[str, Sequence[Restart]]) -> list[Figure]:
    """The best of each broker's runs with much data."""
    return [_best(UNCLEAN_TITLE, "start to first record s", runs, lambda run: run.after_kill_s, RESTART_TARGET)]


def _best(
    title: str,
    name: str,
    runs: dict[str, Sequence[Restart]],
    read: Callable[[Restart], float | None],
    target: Target | None = None,
) -> Figure:
    taken = {peer: [value for run in measured if (value := read(run)) is not None] for peer, measured in runs.items()}
    return Figure(title, name, {peer: min(values) for peer, values in taken.items() if values}, target)
