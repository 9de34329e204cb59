"""Brokers of odradek's, each a process of `odradek serve`, under the controllers of ``kafka_controllers``."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.ports import free_ports
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, end_process, until
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController


class OdradekBrokers:
    """Brokers by node id, not started yet. ``settings`` are further configs; ``program`` is what Python is to run."""

    program: tuple[str, ...] = ("-m", "odradek")

    def __init__(
        self, scratch: Path, controllers: KafkaControllers | OdradekController, settings: Mapping[int, Mapping[str, str]]
    ) -> None:
        self._scratch = scratch
        self._controllers = controllers
        self._settings = settings
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self.ports = dict(zip(settings, free_ports(len(settings)), strict=True))

    def start(self, *node_ids: int) -> None:
        """Start these, or all, and wait until each is unfenced."""
        started = node_ids or tuple(self.ports)
        for node_id in started:
            self.spawn(node_id)
        for node_id in started:
            until(lambda node_id=node_id: self._is_ready(node_id))

    def spawn(self, node_id: int) -> None:
        """Start a broker, and do not wait for it."""
        self._processes[node_id] = self._spawn(node_id)

    def has_begun(self, node_id: int) -> bool:
        """Whether a broker has been started, and said something."""
        return self._log_path(node_id).exists()

    def data(self, node_id: int) -> Path:
        """Where a broker has its logs."""
        return self._scratch / f"odradek-{node_id}"

    def log(self, node_id: int) -> str:
        """What a broker has said."""
        return self._log_path(node_id).read_text(encoding="utf-8")

    def pid(self, node_id: int) -> int:
        """The process of a broker that runs."""
        return self._processes[node_id].pid

    def signal(self, node_id: int, number: signal.Signals) -> None:
        """Send a signal to a broker."""
        self._processes[node_id].send_signal(number)

    def kill9(self, node_id: int) -> None:
        """End a broker as a loss of its machine does."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> int:
        """Have a broker leave; its exit status."""
        return self._end(node_id, signal.SIGTERM)

    def wait_ended(self, node_id: int) -> int:
        """Wait until a broker that was told to stop has; its exit status."""
        return self._end(node_id, None)

    def close(self) -> None:
        """End all."""
        for node_id in list(self._processes):
            self.kill9(node_id)

    def _is_ready(self, node_id: int) -> bool:
        """Whether it has said so. Somebody's connection may have had its port meanwhile, as its own end: then it tries again."""
        process = self._processes[node_id]
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], TIMEOUT_S)[0], (
            f"broker {node_id} is not ready: {self.log(node_id)[-4000:]}"
        )
        line = process.stdout.readline()
        if line == f"odradek ready on 127.0.0.1:{self.ports[node_id]}\n":
            return True
        process.stdout.close()
        process.wait(TIMEOUT_S)
        assert "address already in use" in self.log(node_id).splitlines()[-1], (line, self.log(node_id))
        self._processes[node_id] = self._spawn(node_id)
        return False

    def _end(self, node_id: int, number: int | None) -> int:
        return end_process(self._processes.pop(node_id), number)

    def _spawn(self, node_id: int) -> "subprocess.Popen[str]":
        self._scratch.mkdir(exist_ok=True)
        settings = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": self._controllers.voters,
            "controller.listener.names": "CONTROLLER",
            **self._settings[node_id],
        }
        chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        place = ["--port", str(self.ports[node_id]), "--data-dir", str(self.data(node_id))]
        command = [sys.executable, *self.program, "serve", *place, *chosen]
        with self._log_path(node_id).open("a", encoding="utf-8") as log:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ)

    def _log_path(self, node_id: int) -> Path:
        return self._scratch / f"odradek-{node_id}.log"
