"""Start-up: from spawning a broker on a fresh data directory to its first record, produced with acks=all and fetched back.

The client is the load generator's ``first-record``, one plain TCP connection. It is started beforehand, waits for the address,
and then tries to connect every millisecond. The clock starts before the broker is spawned and stops when the client has the
record back. Then the broker idles for two seconds, and its memory is read.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import load_tool, processes
from benchmarks.peers import BrokerFailed, Peer, spawn, tail
from benchmarks.report import Figure
from benchmarks.scenarios import IDLE_PSS_TARGET, START_TARGET, START_TITLE

_IDLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds to the first record; memory, and CPU seconds in a second, when idle."""

    seconds: float
    memory: processes.Memory
    idle_cpu_s_per_s: float


def measure(peer: Peer, directory: Path) -> Start:
    """Start a broker once, and end it. Raises BrokerFailed if no record comes back."""
    directory.mkdir(parents=True)
    command = peer.prepare(directory, {})
    process = None
    try:
        with load_tool.waiting("first-record") as tell:
            began_s = time.perf_counter()
            process = spawn(command, directory)
            answer = tell(peer.address(process, directory))
            took_s = time.perf_counter() - began_s
        if not answer:
            raise BrokerFailed(tail(directory))
        return _idle(process.pid, took_s)
    finally:
        if process is not None:
            processes.end(process)
        shutil.rmtree(directory, ignore_errors=True)


def _idle(pid: int, took_s: float) -> Start:
    cpu_before_s = processes.cpu_seconds_of(pid)
    time.sleep(_IDLE_S)
    idle_cpu_s = processes.cpu_seconds_of(pid) - cpu_before_s
    return Start(took_s, processes.memory_of(pid), idle_cpu_s / _IDLE_S)


def figures(starts: dict[str, Sequence[Start]]) -> list[Figure]:
    """The medians of each broker's starts."""
    seconds = {name: median(start.seconds for start in runs) for name, runs in starts.items()}
    pss_mib = {name: median(start.memory.pss_mib for start in runs) for name, runs in starts.items()}
    rss_mib = {name: median(start.memory.rss_mib for start in runs) for name, runs in starts.items()}
    idle_cpu = {name: median(start.idle_cpu_s_per_s for start in runs) for name, runs in starts.items()}
    return [
        Figure(START_TITLE, "spawn to first record s", seconds, START_TARGET),
        Figure(START_TITLE, "idle memory (PSS) MiB", pss_mib, IDLE_PSS_TARGET),
        Figure(START_TITLE, "idle memory (RSS) MiB", rss_mib),
        Figure(START_TITLE, "idle CPU s / s", idle_cpu),
    ]
