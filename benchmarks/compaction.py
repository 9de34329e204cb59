"""Compaction: its effect on a broker's latency, and on the coordinators' reload.

``latency-compacting``: one partition holds 1,500,000 records of 100 B under 100,000 keys. ``latency`` runs at 2,000 records a
second on another topic: first on an otherwise idle broker, then while the cleaner compacts that partition. Changing the topic's
``cleanup.policy`` starts the cleaner. The cleaners of both brokers read and write at most 20 MB a second, so that compaction
outlasts the load.

``reload-compacted``: 200,000 offsets are committed fifty times each, into segments of 1 MiB. The broker is stopped and started.
Then it runs with its cleaner until compaction is done, and is stopped and started again. Both starts are timed until the last
group's OffsetFetch has answered, as in ``offsets-200k``. Only odradek is measured: the comparison is before and after.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import load_tool, processes
from benchmarks.load_tool import LoadFailed, Measurement
from benchmarks.peers import UNDER_LOAD, BrokerFailed, Peer, Running, spawn, tail
from benchmarks.report import Figure
from benchmarks.scenarios import COMPACTING_TITLE, LATENCY_TARGET, RELOAD_TITLE, Target

_TOPIC = "compacted"
_RECORDS, _QUICK_RECORDS, _KEYS = 1_500_000, 300_000, 100_000
_LATENCY_RECORDS, _QUICK_LATENCY_RECORDS = 8_000, 1_000
_LATENCY_RUNS = 3
_BEGIN_S = 0.5
_EAGER = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}
_THROTTLED = {**_EAGER, "log.cleaner.io.max.bytes.per.second": "20000000"}

_GROUPS, _QUICK_GROUPS = 1_000, 100
_TIMES = 50
_OFFSETS = ("-topic=offsets", "-partitions=200")
_SMALL_SEGMENTS = {"offsets.topic.segment.bytes": str(1024 * 1024)}
_STOP_TIMEOUT_S = 60.0
_CLEAN_TIMEOUT_S = 600.0
_POLL_S = 0.05
_BYTES_PER_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Latencies:
    """One broker's runs: idle otherwise, and while it compacts."""

    quiet: Sequence[Measurement]
    compacting: Sequence[Measurement]


@dataclass(frozen=True, slots=True)
class Reload:
    """One broker's offsets log in MiB and seconds from spawn to the last group's response: as written, and compacted."""

    before_mib: float
    before_s: float
    compaction_s: float
    after_mib: float
    after_s: float


def measure_latency(peer: Peer, directory: Path, *, quick: bool) -> Latencies:
    """Measure one broker. Raises LoadFailed if the cleaner finished before the loads."""
    count = _QUICK_LATENCY_RECORDS if quick else _LATENCY_RECORDS
    runs = 1 if quick else _LATENCY_RUNS

    def load(broker: Running) -> Measurement:
        return load_tool.measure("latency", broker.address, ("-rate=2000", f"-records={count}"), server_pids=broker.pids)

    directory.mkdir(parents=True)
    try:
        with _serving(peer, directory, _THROTTLED) as broker:
            load_tool.run(
                "produce",
                broker.address,
                (
                    *(f"-topic={_TOPIC}", "-keep", "-partitions=1", "-size=100", f"-keys={_KEYS}"),
                    *(f"-records={_QUICK_RECORDS if quick else _RECORDS}", "-config=segment.bytes=16777216"),
                ),
            )
            load(broker)
            os.sync()
            quiet = [load(broker) for _ in range(runs)]
            _begin_to_compact(broker.address)
            time.sleep(_BEGIN_S)
            compacting = [load(broker) for _ in range(runs)]
            if (_TOPIC, 0) in _cleaned_offsets(directory):
                reason = f"the cleaner of {peer.name} was through before the load was"
                raise LoadFailed(reason)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Latencies(quiet, compacting)


def measure_reload(peer: Peer, directory: Path, *, quick: bool) -> Reload:
    """Measure one broker. Raises BrokerFailed or LoadFailed."""
    directory.mkdir(parents=True)
    groups = f"-groups={_QUICK_GROUPS if quick else _GROUPS}"
    try:
        with _serving(peer, directory, {**_SMALL_SEGMENTS, "log.cleaner.enable": "false"}) as broker:
            for _ in range(_TIMES):
                load_tool.run("commit-offsets", broker.address, (*_OFFSETS, groups))
        before_mib, before_s = _log_mib(directory), _reload(peer, directory, groups)
        with _serving(peer, directory, {**_SMALL_SEGMENTS, **_EAGER}):
            began_s = time.perf_counter()
            _wait_until_compacted(directory)
            compaction_s = time.perf_counter() - began_s
        return Reload(before_mib, before_s, compaction_s, _log_mib(directory), _reload(peer, directory, groups))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _serving(peer: Peer, directory: Path, settings: Mapping[str, str]) -> Iterator[Running]:
    """Run a broker on the data in ``directory``, and stop it by SIGTERM."""
    process = spawn(_command(peer, directory, settings), directory)
    try:
        running = Running(process, peer.address(process, directory))
        load_tool.run("first-record", running.address, ("-topic=warm-up",))
        yield running
        process.terminate()
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired as hanging:
        reason = f"still there {hanging.timeout:.0f} s after SIGTERM"
        raise BrokerFailed(reason) from hanging
    finally:
        processes.end(process)


def _command(peer: Peer, directory: Path, settings: Mapping[str, str]) -> list[str]:
    """The command that starts the broker, on existing data if there is any."""
    data, kept = directory / "data", directory / "kept"
    if data.exists():
        data.rename(kept)
    command = peer.prepare(directory, {**UNDER_LOAD[peer.name], **settings})
    if kept.exists():
        shutil.rmtree(data, ignore_errors=True)
        kept.rename(data)
    return command


def _reload(peer: Peer, directory: Path, groups: str) -> float:
    """Start the broker on its data, and stop it; the seconds until the last group's offsets were served."""
    os.sync()
    command = _command(peer, directory, {**_SMALL_SEGMENTS, "log.cleaner.enable": "false"})
    with load_tool.waiting("fetch-offsets", (*_OFFSETS, groups)) as tell:
        began_s = time.perf_counter()
        process = spawn(command, directory)
        try:
            answer = tell(peer.address(process, directory))
            took_s = time.perf_counter() - began_s
            process.terminate()
            process.wait(_STOP_TIMEOUT_S)
        finally:
            processes.end(process)
    if not answer:
        raise BrokerFailed(tail(directory))
    return took_s


def _begin_to_compact(address: str) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, _TOPIC, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": address})
    for altered in client.incremental_alter_configs([resource]).values():
        altered.result()


def _wait_until_compacted(directory: Path) -> None:
    """Wait until each partition of the offsets topic is compacted up to its newest segment."""
    deadline_s = time.perf_counter() + _CLEAN_TIMEOUT_S
    while not _newest_segments(directory).items() <= _cleaned_offsets(directory).items():
        if time.perf_counter() > deadline_s:
            reason = f"not compacted within {_CLEAN_TIMEOUT_S:.0f} s\n{tail(directory)}"
            raise BrokerFailed(reason)
        time.sleep(_POLL_S)


def _newest_segments(directory: Path) -> dict[tuple[str, int], int]:
    """The base offset of the newest segment, for each partition of the offsets topic with several segments."""
    found = {}
    for log in (directory / "data").glob("__consumer_offsets-*"):
        bases = sorted(int(file.stem) for file in log.glob("*.log"))
        if len(bases) > 1:
            found["__consumer_offsets", int(log.name.rpartition("-")[2])] = bases[-1]
    return found


def _cleaned_offsets(directory: Path) -> dict[tuple[str, int], int]:
    """The content of ``cleaner-offset-checkpoint``."""
    try:
        text = (directory / "data" / "cleaner-offset-checkpoint").read_text(encoding="ascii")
    except FileNotFoundError:
        return {}
    rows = [line.split() for line in text.splitlines()]
    return {(row[0], int(row[1])): int(row[2]) for row in rows if len(row) == 3}


def _log_mib(directory: Path) -> float:
    """The size of the offsets topic's logs."""
    return sum(file.stat().st_size for file in (directory / "data").glob("__consumer_offsets-*/*.log")) / _BYTES_PER_MIB


def latency_figures(measured: Mapping[str, Latencies]) -> list[Figure]:
    """The best of each broker's runs, and the median of their p99."""

    def figure(name: str, read: Callable[[Latencies], float], target: Target | None = None) -> Figure:
        return Figure(COMPACTING_TITLE, name, {peer: read(latencies) for peer, latencies in measured.items()}, target)

    return [
        figure("p50 ms, not compacting", lambda of: min(run.p50_ms for run in of.quiet)),
        figure("p99 ms, not compacting", lambda of: median(run.p99_ms for run in of.quiet), LATENCY_TARGET),
        figure("p50 ms, compacting", lambda of: min(run.p50_ms for run in of.compacting)),
        figure("p99 ms, compacting", lambda of: median(run.p99_ms for run in of.compacting), LATENCY_TARGET),
    ]


def reload_figures(measured: Mapping[str, Reload]) -> list[Figure]:
    """Figures of one run for each broker."""

    def one(name: str, read: Callable[[Reload], float], target: Target | None = None) -> Figure:
        return Figure(RELOAD_TITLE, name, {peer: read(reload) for peer, reload in measured.items()}, target)

    return [
        one("log MiB", lambda of: of.before_mib),
        one("start to last group s", lambda of: of.before_s),
        one("compaction s", lambda of: of.compaction_s),
        one("log MiB, compacted", lambda of: of.after_mib),
        one("start to last group s, compacted", lambda of: of.after_s, LATENCY_TARGET),
    ]
