"""odradek and Apache Kafka as processes that are started with a file of properties, by name, and stopped or killed."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers import spawn, tail
from tests.broker_process import command_environment
from tests.campaigns.cluster_chaos.accounts import Violation
from tests.campaigns.growing_out import commands
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, accepts, end_process, until


class Processes:
    """``scratch`` takes their files and logs."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._starts = 0

    def properties(self, name: str, settings: Mapping[str, str]) -> Path:
        """Write a file of properties; its path."""
        path = self._scratch / name
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return path

    def start_odradek(self, properties: Path) -> None:
        """Start ``odradek``, and wait until it is ready."""
        with self._log.open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                commands.words(commands.SERVE, file=properties),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=command_environment(),
            )
        self._running["odradek"] = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "ready on" in line, self.odradeks_log

    def start_kafka(self, name: str, properties: Path, port: int) -> None:
        """Start a node of Kafka's, and wait until it accepts connections."""
        self._starts += 1
        directory = self._scratch / f"kafka-{self._starts}"
        directory.mkdir()
        process = self._running[name] = spawn(commands.words(commands.START, file=properties), directory)
        until(lambda: process.poll() is not None or accepts(f"127.0.0.1:{port}"))
        if process.poll() is not None:
            raise AssertionError(tail(directory))

    def grow_out(self, config: Path, out: Path) -> Path:
        """Have ``odradek grow-out`` write a file for Kafka; its path."""
        command = commands.words(commands.GROW_OUT, file=config, out=out)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=command_environment())
        assert done.returncode == 0, done.stderr
        return out

    def stop(self, name: str) -> None:
        """Stop one by SIGTERM. Violation if odradek does not end well; Kafka's JVM always ends with 143."""
        status = self._end(name, signal.SIGTERM)
        if name == "odradek" and status != 0:
            raise Violation(f"{name} ended with status {status}: {self.odradeks_log[-2000:]}")

    def kill9(self, name: str) -> None:
        """Kill one."""
        self._end(name, signal.SIGKILL)

    def close(self) -> None:
        """End all."""
        for name in list(self._running):
            self.kill9(name)

    @property
    def odradeks_log(self) -> str:
        """What odradek has said, in all its runs."""
        return self._log.read_text(encoding="utf-8")

    def _end(self, name: str, how: signal.Signals) -> int:
        return end_process(self._running.pop(name), how)

    @property
    def _log(self) -> Path:
        return self._scratch / "odradek.log"
