"""Brokers of Apache Kafka's own, each in a JVM (``process.roles=broker``), under the controllers of ``kafka_controllers``."""

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks.peers import spawn, tail
from benchmarks.ports import free_ports
from odradek.protocol.texts import new_uuid_text
from tests.campaigns.kafka_tools import jvm
from tests.campaigns.kafka_tools.kafka_broker import accepts, end_process, until
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController

if TYPE_CHECKING:
    import subprocess


class KafkaBrokers:
    """Brokers by node id, not started yet, each with the listeners PLAINTEXT and, where it is to have it, OTHER.

    ``settings`` are further lines of their ``server.properties``.
    """

    def __init__(
        self, scratch: Path, controllers: KafkaControllers | OdradekController, settings: Mapping[int, Mapping[str, str]]
    ) -> None:
        self._controllers = controllers
        self._scratch = scratch
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self.ports = dict(zip(settings, free_ports(len(settings)), strict=True))
        for node_id, chosen in settings.items():
            self._configure(node_id, chosen)

    def start(self, *node_ids: int) -> None:
        """Start these, or all, and wait until they accept connections."""
        started = node_ids or tuple(self.ports)
        for node_id in started:
            self.spawn(node_id)
        for node_id in started:
            until(lambda node_id=node_id: self._serves(node_id))

    def spawn(self, node_id: int) -> None:
        """Start a broker, and do not wait for it."""
        directory = self._directory(node_id)
        self._processes[node_id] = spawn(jvm.command("kafka.Kafka", str(directory / "server.properties")), directory)

    def data(self, node_id: int) -> Path:
        """Where a broker has its logs."""
        return self._directory(node_id) / "data"

    def kill9(self, node_id: int) -> None:
        """End a broker as a loss of its machine does."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> None:
        """Have a broker leave."""
        self._end(node_id, signal.SIGTERM)

    def _end(self, node_id: int, number: signal.Signals) -> None:
        end_process(self._processes.pop(node_id), number)

    def close(self) -> None:
        """End all, and remove their data."""
        for node_id in list(self._processes):
            self.kill9(node_id)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _directory(self, node_id: int) -> Path:
        return self._scratch / f"broker-{node_id}"

    def _configure(self, node_id: int, settings: Mapping[str, str]) -> None:
        directory = self._directory(node_id)
        (directory / "data").mkdir(parents=True)
        listener = f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}"
        properties = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": self._controllers.voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": listener,
            "advertised.listeners": listener,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
            "log.dirs": str(directory / "data"),
            **settings,
        }
        text = "".join(f"{key}={value}\n" for key, value in properties.items())
        (directory / "server.properties").write_text(text, encoding="utf-8")
        meta = {
            "version": 1,
            "cluster.id": self._controllers.cluster_id,
            "node.id": node_id,
            "directory.id": new_uuid_text(uuid4),
        }
        lines = "".join(f"{key}={value}\n" for key, value in meta.items())
        (directory / "data" / "meta.properties").write_text(lines, encoding="ascii")

    def _serves(self, node_id: int) -> bool:
        if self._processes[node_id].poll() is not None:
            raise AssertionError(tail(self._directory(node_id)))
        return accepts(f"127.0.0.1:{self.ports[node_id]}")
