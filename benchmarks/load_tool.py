"""Builds the load generator (``benchmarks/load``, Go) and runs its subcommands."""

import json
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import processes

SOURCE = Path(__file__).parent / "load"
BINARY = Path(__file__).parent / "build" / "load"

_BUILD_TIMEOUT_S = 600.0
# A load gives up by itself a little before the harness gives up on it, so that its own reason is what is told.
_LOAD_TIMEOUT_S = 60.0
_GRACE_S = 10.0
# For those that wait for a broker which has much to load first.
_WAITING_TIMEOUT_S = 300.0


class LoadFailed(Exception):
    """A load did not run to its end; the message is the load generator's."""


class MissingTool(Exception):
    """A program that the benchmarks need is not installed; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one load.

    Args:
        records: records, or committed offsets, that passed; 0 where the load counts none.
        requests: requests of the kind that the load is about, where it counts them; else 0.
        groups: groups that the load took through their steps; 0 where it has none.
        seconds: how long it took.
        p50_ms: median latency; NaN where the load measures none.
        p99_ms: its 99th percentile, likewise.
        server_cpu_s: CPU time that the broker spent meanwhile.
        client_cpu_s: CPU time that the load generator spent.
        steps_ms: how long the steps of a group took, by their names.
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
        """CPU seconds that the broker spent on a million records, which is microseconds on one."""
        return self.server_cpu_s / self.records * 1e6

    @property
    def server_cpu_us_per_request(self) -> float:
        """CPU microseconds that the broker spent on one request, which is milliseconds on a thousand."""
        return self.server_cpu_s / self.requests * 1e6

    @property
    def server_cpu_ms_per_group(self) -> float:
        """CPU milliseconds that the broker spent on one group, from its members' first requests to its deletion."""
        return self.server_cpu_s / self.groups * 1e3


def parse_measurement(line: str) -> Measurement:
    """Read the line of JSON that a load prints."""
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
    """Compile the load generator; a build that is up to date takes Go well under a second."""
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
    server_pid: int = 0,
    timeout_s: float = _LOAD_TIMEOUT_S,
) -> list[str]:
    """The command line of one load; an empty broker makes those that wait for one read the address from their standard input."""
    return [
        str(BINARY),
        subcommand,
        f"-broker={broker}",
        f"-pid={server_pid}",
        f"-timeout={timeout_s:.0f}s",
        *arguments,
    ]


def run(subcommand: str, broker: str, arguments: tuple[str, ...] = (), *, server_pid: int = 0) -> str:
    """Run one load to its end and give the line it printed; LoadFailed when it fails or hangs."""
    try:
        done = subprocess.run(
            command(subcommand, broker, arguments, server_pid=server_pid),
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


def measure(subcommand: str, broker: str, arguments: tuple[str, ...], *, server_pid: int) -> Measurement:
    """Run one load and read what it measured."""
    return parse_measurement(run(subcommand, broker, arguments, server_pid=server_pid))


@contextmanager
def waiting(subcommand: str, arguments: tuple[str, ...] = ()) -> Iterator[Callable[[str], str]]:
    """Have a load running that waits to be told a broker's address.

    Yields what tells it, and gives the line it then prints: empty when it failed, or is silent for too long.
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
