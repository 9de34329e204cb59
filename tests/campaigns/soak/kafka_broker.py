"""Apache Kafka as the bank's broker, for comparison: started, killed and started again like odradek."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

from benchmarks import processes
from benchmarks.peers import Kafka

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
LOOK_INTERVAL_S = 0.05
# The controller is killed with the broker, and waits for the broker's former session when it is back.
SETTINGS = {"broker.session.timeout.ms": 5_000, "broker.heartbeat.interval.ms": 500}


class KafkaBroker:
    """What the bank uses of ``BrokerProcess``, of one KRaft node. Its log goes to ``stderr.log`` in ``directory``."""

    host = "127.0.0.1"

    def __init__(self, directory: Path, *, settings: Mapping[str, object]) -> None:
        template = directory / "template"
        template.mkdir(parents=True)
        self.data_dir = directory / "data"
        self._directory = directory
        told = {name: str(value) for name, value in {**SETTINGS, **settings}.items()}
        self._command = Kafka(template).prepare(directory, told)
        self.port = int((directory / "port").read_text())
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start, and return when the port accepts connections."""
        with (self._directory / "stderr.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._accepts():
            assert self._process.poll() is None, f"Kafka has ended; see {self._directory}"
            assert time.monotonic() < deadline, f"Kafka does not accept connections; see {self._directory}"
            time.sleep(LOOK_INTERVAL_S)
        return self

    def kill9(self) -> None:
        """No handler runs."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)

    def _accepts(self) -> bool:
        try:
            socket.create_connection((self.host, self.port), 1).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            processes.end(self._process)
