"""Builds the load generator (``benchmarks/load``, Go) and runs its subcommands."""

import json
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import processes

SOURCE = Path(__file__).parent / "load"
BINARY = Path(__file__).parent / "build" / "load"

_BUILD_TIMEOUT_S = 600.0
# A load times out slightly before the harness does, so that its own reason is reported.
_LOAD_TIMEOUT_S = 60.0
_GRACE_S = 10.0
# For loads that wait for a broker with much to load first.
_WAITING_TIMEOUT_S = 300.0


class LoadFailed(Exception):
    """A load did not finish; the message is the load generator's."""


class MissingTool(Exception):
    """A required program is not installed; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one load.

    Args:
        records: the number of records, or of committed offsets; 0 if the load counts none.
        requests: the number of requests of the load's own kind; 0 if the load counts none.
        groups: the number of groups that the load took through their steps; 0 if it has none.
        seconds: the duration.
        p50_ms: median latency; NaN if the load measures none.
        p99_ms: 99th percentile of latency; NaN if the load measures none.
        server_cpu_s: CPU time of the broker, or of all of a cluster's processes, during the load.
        client_cpu_s: CPU time of the load generator.
        steps_ms: durations of a group's steps, by name.
    """

    records: int
    requests: int
    groups: int
    seconds: float
    p50_ms: float
    p99_ms: float
    server_cpu_s: float
    client_cpu_s: float
    steps_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def records_per_s(self) -> float:
        """Throughput."""
        return self.records / self.seconds

    @property
    def server_cpu_s_per_million(self) -> float:
        """The broker's CPU time for a million records, in seconds (for one record, in microseconds)."""
        return self.server_cpu_s / self.records * 1e6

    @property
    def server_cpu_us_per_request(self) -> float:
        """The broker's CPU time for one request, in microseconds (for a thousand, in milliseconds)."""
        return self.server_cpu_s / self.requests * 1e6

    @property
    def server_cpu_ms_per_group(self) -> float:
        """The broker's CPU time for one group, in milliseconds, from its members' first requests to its deletion."""
        return self.server_cpu_s / self.groups * 1e3


def parse_measurement(line: str) -> Measurement:
    """Parse the line of JSON that a load prints."""
    told: dict[str, Any] = json.loads(line)
    return Measurement(
        records=int(told.get("records", 0)),
        requests=int(told.get("requests", 0)),
        groups=int(told.get("groups", 0)),
        seconds=float(told["seconds"]),
        p50_ms=float(told.get("p50_ms", "nan")),
        p99_ms=float(told.get("p99_ms", "nan")),
        server_cpu_s=float(told.get("server_cpu_s", "nan")),
        client_cpu_s=float(told["client_cpu_s"]),
        steps_ms=told.get("steps_ms", {}),
    )


def build() -> None:
    """Compile the load generator. Without changes this takes Go well under a second."""
    go = shutil.which("go")
    if go is None:
        reason = (
            "the load generator is written in Go, and there is no `go` on the PATH: "
            "apt-get install golang-go, or https://go.dev/dl (1.21 or later: it fetches the release it needs)"
        )
        raise MissingTool(reason)
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    command = ["nice", go, "build", "-trimpath", "-buildvcs=false", "-o", str(BINARY), "."]
    try:
        subprocess.run(command, cwd=SOURCE, check=True, timeout=_BUILD_TIMEOUT_S)
    except subprocess.CalledProcessError as failure:
        reason = f"the load generator does not build: `go build` in {SOURCE} ended with status {failure.returncode}"
        raise LoadFailed(reason) from failure


def command(
    subcommand: str,
    broker: str,
    arguments: tuple[str, ...] = (),
    *,
    server_pids: Sequence[int] = (),
    timeout_s: float = _LOAD_TIMEOUT_S,
) -> list[str]:
    """The command line of a load. If ``broker`` is empty, a waiting load reads the address from its standard input."""
    return [
        str(BINARY),
        subcommand,
        f"-broker={broker}",
        f"-pid={','.join(map(str, server_pids)) or 0}",
        f"-timeout={timeout_s:.0f}s",
        *arguments,
    ]


def run(subcommand: str, broker: str, arguments: tuple[str, ...] = (), *, server_pids: Sequence[int] = ()) -> str:
    """Run a load, and return the line that it printed. Raises LoadFailed if it fails or hangs."""
    try:
        done = subprocess.run(
            command(subcommand, broker, arguments, server_pids=server_pids),
            capture_output=True,
            text=True,
            check=False,
            timeout=_LOAD_TIMEOUT_S + _GRACE_S,
        )
    except subprocess.TimeoutExpired as hanging:
        reason = f"{subcommand}: no end after {hanging.timeout:.0f} s"
        raise LoadFailed(reason) from hanging
    if done.returncode != 0:
        reason = f"{subcommand}: {done.stderr.strip() or f'status {done.returncode}'}"
        raise LoadFailed(reason)
    return done.stdout


def measure(subcommand: str, broker: str, arguments: tuple[str, ...], *, server_pids: Sequence[int]) -> Measurement:
    """Run a load, and return its measurement."""
    return parse_measurement(run(subcommand, broker, arguments, server_pids=server_pids))


@contextmanager
def waiting(subcommand: str, arguments: tuple[str, ...] = ()) -> Iterator[Callable[[str], str]]:
    """Run a load that waits for a broker's address.

    Yields a function that passes the address to the load and returns the line that the load prints; empty if the load failed or
    timed out.
    """
    waiting_for_address = command(subcommand, "", arguments, timeout_s=_WAITING_TIMEOUT_S)
    client = subprocess.Popen(waiting_for_address, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        _line(client)

        def tell(address: str) -> str:
            if client.stdin is not None:
                client.stdin.write(address + "\n")
                client.stdin.flush()
            return _line(client)

        yield tell
    finally:
        processes.end(client)


def _line(client: subprocess.Popen[str]) -> str:
    if client.stdout is None or not select.select([client.stdout], [], [], _WAITING_TIMEOUT_S + _GRACE_S)[0]:
        return ""
    return client.stdout.readline()
