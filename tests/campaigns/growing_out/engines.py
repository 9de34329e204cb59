"""One data directory and one address, served by odradek and by Apache Kafka in turn; clients stay, and find the other engine."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers import spawn, tail
from benchmarks.ports import free_ports
from tests.broker_process import BrokerProcess, command_environment
from tests.campaigns.growing_out import processes
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, accepts, end_process, until

ODRADEK, KAFKA = "odradek", "kafka"
# With the server.properties that grow-out has made for Kafka: as controller of a cluster of which it is the only broker.
ODRADEK_ON_KAFKAS_FILE = "odradek on kafka's file"


class OneDirectory:
    """``settings`` are odradek's. Kafka gets what ``odradek grow-out`` makes of them, and ``kafka_settings`` besides."""

    def __init__(self, scratch: Path, settings: Mapping[str, str], kafka_settings: Mapping[str, str]) -> None:
        self.data = scratch / "data"
        self.port, self._controller_port = free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self.grow_out_said: list[str] = []
        self._scratch = scratch
        self._settings = settings
        self._kafka_settings = kafka_settings
        self._odradek = BrokerProcess(self.data, settings=settings)
        self._odradek.port = self.port
        self._kafka: subprocess.Popen[str] | None = None
        self._runs = 0

    def start(self, engine: str) -> None:
        """Start an engine, and wait until it serves."""
        if engine == ODRADEK:
            self._odradek.settings, self._odradek.arguments = dict(self._settings), ()
            self._odradek.start()
            return
        self._runs += 1
        directory = self._scratch / f"run-{self._runs}"
        directory.mkdir()
        properties = self._grow_out(directory)
        if engine == ODRADEK_ON_KAFKAS_FILE:
            self._odradek.settings, self._odradek.arguments = {}, ("--config", str(properties))
            self._odradek.start()
            return
        self._kafka = process = spawn(processes.words(processes.START, file=properties), directory)
        until(lambda: process.poll() is not None or accepts(self.address))
        if process.poll() is not None:
            raise AssertionError(tail(directory))

    def end(self, how: signal.Signals) -> None:
        """Stop what serves (SIGTERM), or kill it."""
        if self._kafka is None:
            status = self._odradek.stop() if how == signal.SIGTERM else self._odradek.kill9()
            assert not status, self._odradek.stderr
            return
        process, self._kafka = self._kafka, None
        end_process(process, how)

    def close(self) -> None:
        """End what serves still."""
        if self._kafka is not None or self._odradek.running:
            self.end(signal.SIGKILL)

    @property
    def log(self) -> str:
        """What odradek has logged."""
        return self._odradek.stderr

    def _grow_out(self, directory: Path) -> Path:
        """The file that the command writes, and further lines behind it."""
        path = directory / "server.properties"
        chosen = [word for key, value in self._settings.items() for word in ("--set", f"{key}={value}")]
        chosen += ["--controller-port", str(self._controller_port)]
        command = [*processes.words(processes.GROW_OUT_WITH_FLAGS, data=self.data, port=self.port, out=path), *chosen]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=command_environment())
        assert done.returncode == 0, done.stderr
        self.grow_out_said += done.stderr.splitlines()
        with path.open("a", encoding="ascii") as file:
            file.writelines(f"{key}={value}{os.linesep}" for key, value in self._kafka_settings.items())
        return path
