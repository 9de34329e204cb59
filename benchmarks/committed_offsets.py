"""200,000 committed offsets: the time to accept them, and the time until a restarted broker serves them again.

The broker is separate from that of the loads, so that its log holds these offsets and hardly more. The load generator's
``commit-offsets`` commits 200 partitions for each of 1,000 groups, after a warm-up with other groups. Then the broker is
restarted twice on the same data: after a clean stop (SIGTERM) and after a kill. ``fetch-offsets`` runs before each restart and
waits for the address. The clock starts before the broker is spawned and stops when the last group's OffsetFetch has returned
every committed offset.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import load_tool, processes
from benchmarks.peers import UNDER_LOAD, BrokerFailed, Peer, spawn, tail
from benchmarks.report import Figure
from benchmarks.scenarios import OFFSETS_TARGET, OFFSETS_TITLE, Target

_GROUPS, _QUICK_GROUPS, _WARM_UP_GROUPS = 1_000, 100, 100
_STOP_TIMEOUT_S = 30.0
_TOPIC = ("-topic=offsets", "-partitions=200")


@dataclass(frozen=True, slots=True)
class Offsets:
    """The measurements of one broker; None for steps that were not run.

    Args:
        accept_s: the time to accept all offsets.
        accept_cpu_s: the CPU time that the broker spent on that.
        stop_s: the time from SIGTERM to the end of the process.
        after_stop_s: the time from spawning the broker again to the last group's response.
        after_kill_s: the same after a kill.
    """

    accept_s: float
    accept_cpu_s: float
    stop_s: float | None = None
    after_stop_s: float | None = None
    after_kill_s: float | None = None


def measure(peer: Peer, directory: Path, *, quick: bool, with_restarts: bool) -> Offsets:
    """Measure one broker. Without ``with_restarts``, only the acceptance. Raises BrokerFailed or LoadFailed."""
    directory.mkdir(parents=True)
    command = peer.prepare(directory, UNDER_LOAD[peer.name])
    groups = f"-groups={_QUICK_GROUPS if quick else _GROUPS}"
    try:
        process = spawn(command, directory)
        try:
            address = peer.address(process, directory)
            load_tool.run("first-record", address, ("-topic=warm-up",))
            load_tool.run("commit-offsets", address, (*_TOPIC, f"-groups={_WARM_UP_GROUPS}", "-prefix=warm-up"))
            accepted = load_tool.measure("commit-offsets", address, (*_TOPIC, groups), server_pids=[process.pid])
            if not with_restarts:
                return Offsets(accepted.seconds, accepted.server_cpu_s)
            stop_s = _stop(process)
        finally:
            processes.end(process)
        after_stop_s = _restart_and_kill(peer, command, directory, groups)
        after_kill_s = _restart_and_kill(peer, command, directory, groups)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Offsets(accepted.seconds, accepted.server_cpu_s, stop_s, after_stop_s, after_kill_s)


def _restart_and_kill(peer: Peer, command: list[str], directory: Path, groups: str) -> float:
    """Start the broker on its data, and kill it; the seconds until the last group's offsets were served."""
    os.sync()
    with load_tool.waiting("fetch-offsets", (*_TOPIC, groups)) as tell:
        began_s = time.perf_counter()
        process = spawn(command, directory)
        try:
            answer = tell(peer.address(process, directory))
            took_s = time.perf_counter() - began_s
        finally:
            processes.end(process)
    if not answer:
        raise BrokerFailed(tail(directory))
    return took_s


def _stop(process: subprocess.Popen[str]) -> float:
    """Stop the broker by SIGTERM; the seconds until it ended."""
    began_s = time.perf_counter()
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired as hanging:
        reason = f"still there {hanging.timeout:.0f} s after SIGTERM"
        raise BrokerFailed(reason) from hanging
    return time.perf_counter() - began_s


def figures(runs: dict[str, Sequence[Offsets]]) -> list[Figure]:
    """The best of each broker's runs."""

    def best(name: str, read: Callable[[Offsets], float | None], target: Target | None = None) -> Figure:
        taken = {peer: [value for run in measured if (value := read(run)) is not None] for peer, measured in runs.items()}
        return Figure(OFFSETS_TITLE, name, {peer: min(values) for peer, values in taken.items() if values}, target)

    return [
        best("accept s", lambda run: run.accept_s, OFFSETS_TARGET),
        best("server CPU s to accept", lambda run: run.accept_cpu_s),
        best("clean stop s", lambda run: run.stop_s),
        best("start to last group s", lambda run: run.after_stop_s, OFFSETS_TARGET),
        best("the same after kill -9 s", lambda run: run.after_kill_s, OFFSETS_TARGET),
    ]
