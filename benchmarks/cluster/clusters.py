"""The measured clusters: three brokers and one controller, each a process, on ports that are known before the start.

Every cluster gets a fresh directory, and starts as its users start it: odradek by ``odradek cluster``, Kafka with the heap and
JVM flags of its own scripts, on directories that are formatted before. All of Kafka's processes are started at once.
"""

import compileall
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import odradek
from benchmarks import kafka_jars, processes
from benchmarks.peers import JVM_FLAGS, KAFKA_SETTINGS, UNDER_LOAD, BrokerFailed, spawn, tail
from benchmarks.ports import free_ports
from odradek.cli.local_cluster.control import NoCluster, ask
from odradek.protocol.texts import new_uuid_text

BROKERS = 3
_CONTROLLER_ID = 100
_STOP_TIMEOUT_S = 60.0
_FORMAT_TIMEOUT_S = 60.0
# What `odradek cluster` decides for three brokers, for Kafka, too.
_REPLICATED: Mapping[str, str] = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class Cluster(Protocol):
    """A cluster to be measured. It is a ``Server`` of loads."""

    name: str
    address: str

    @property
    def pids(self) -> tuple[int, ...]:
        """All its processes."""

    def broker_pids(self) -> dict[int, int]:
        """The process of each broker, by node id."""

    def spawn(self) -> None:
        """Start all processes, and wait for none."""

    def restart(self, node_id: int) -> None:
        """Start a broker that was killed; it may not be ready yet."""

    def close(self) -> None:
        """End all processes, and remove the data."""


class OdradekCluster:
    """``odradek cluster``, with this interpreter."""

    name = "odradek"

    def __init__(self, directory: Path, settings: Mapping[str, str], *, is_for_loads: bool = True) -> None:
        """Compile the modules, as in an installed package."""
        compileall.compile_dir(str(Path(odradek.__file__).parent), quiet=2)
        first_port = _free_range(BROKERS)
        self.address = ",".join(f"127.0.0.1:{first_port + index}" for index in range(BROKERS))
        self._directory = directory
        self._data = directory / "data"
        chosen = {**(UNDER_LOAD[self.name] if is_for_loads else {}), **settings}
        self._command = [
            *(sys.executable, "-m", "odradek", "cluster", "--brokers", str(BROKERS)),
            *("--port", str(first_port), "--data-dir", str(self._data)),
            *(word for key, value in chosen.items() for word in ("--set", f"{key}={value}")),
        ]
        self._process: subprocess.Popen[str] | None = None
        directory.mkdir(parents=True)

    @property
    def pids(self) -> tuple[int, ...]:
        """The nodes' processes, and the one that supervises them."""
        own = (self._process.pid,) if self._process else ()
        return (*own, *(node["pid"] for node in self._nodes() if node["pid"]))

    def broker_pids(self) -> dict[int, int]:
        """As the supervisor tells."""
        return {node["node"]: node["pid"] for node in self._nodes() if node["role"] == "broker"}

    def spawn(self) -> None:
        """One command."""
        self._process = spawn(self._command, self._directory)

    def restart(self, node_id: int) -> None:
        """As ``odradek cluster start`` does."""
        answer = ask(self._data, {"do": "start", "node": node_id})
        if "done" not in answer:
            raise BrokerFailed(f"{answer}\n{tail(self._directory)}")

    def close(self) -> None:
        """The nodes end with the command."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            finally:
                processes.end(self._process)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _nodes(self) -> list[dict[str, object]]:
        try:
            nodes: list[dict[str, object]] = ask(self._data, {"do": "status"})["nodes"]
        except NoCluster as failure:
            raise BrokerFailed(tail(self._directory)) from failure
        return nodes


class KafkaCluster:
    """Apache Kafka: one controller and three brokers, a JVM each, with data directories that are formatted beforehand."""

    name = "kafka"

    def __init__(self, directory: Path, settings: Mapping[str, str], *, is_for_loads: bool = True) -> None:
        """Write each node's ``server.properties``, and format its directory."""
        controller_port, *ports = free_ports(1 + BROKERS)
        self.address = ",".join(f"127.0.0.1:{port}" for port in ports)
        self._directory = directory
        self._processes: dict[int, subprocess.Popen[str]] = {}
        cluster_id = new_uuid_text(uuid4)
        shared = {
            **KAFKA_SETTINGS,
            **(UNDER_LOAD[self.name] if is_for_loads else {}),
            **_REPLICATED,
            "controller.quorum.voters": f"{_CONTROLLER_ID}@127.0.0.1:{controller_port}",
            **settings,
        }
        nodes = {_CONTROLLER_ID: {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{controller_port}"}}
        nodes |= {
            node_id: {"process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
            for node_id, port in enumerate(ports, 1)
        }
        for node_id, own in nodes.items():
            place = directory / str(node_id)
            (place / "data").mkdir(parents=True)
            properties = {**shared, **own, "node.id": str(node_id), "log.dirs": str(place / "data")}
            if node_id == _CONTROLLER_ID:
                del properties["inter.broker.listener.name"]
            _write_properties(place / "server.properties", properties)
            if node_id == _CONTROLLER_ID:
                _format(cluster_id, place / "server.properties")
            else:
                meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id), "directory.id": new_uuid_text(uuid4)}
                _write_properties(place / "data" / "meta.properties", meta)

    @property
    def pids(self) -> tuple[int, ...]:
        """The JVMs."""
        return tuple(process.pid for process in self._processes.values())

    def broker_pids(self) -> dict[int, int]:
        """The JVMs of brokers."""
        return {node_id: process.pid for node_id, process in self._processes.items() if node_id != _CONTROLLER_ID}

    def spawn(self) -> None:
        """All at once."""
        for node_id in (_CONTROLLER_ID, *range(1, BROKERS + 1)):
            self._spawn(node_id)

    def restart(self, node_id: int) -> None:
        """A new JVM on the same directory and port."""
        processes.end(self._processes[node_id])
        self._spawn(node_id)

    def close(self) -> None:
        """Kill all: the data is removed anyway."""
        for process in self._processes.values():
            processes.end(process)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _spawn(self, node_id: int) -> None:
        place = self._directory / str(node_id)
        command = [kafka_jars.java(), *JVM_FLAGS, "-cp", f"{kafka_jars.libraries()}/*", "kafka.Kafka"]
        self._processes[node_id] = spawn([*command, str(place / "server.properties")], place)


def _format(cluster_id: str, properties: Path) -> None:
    """By Kafka's tool, which writes the levels of the features that a new cluster has."""
    tool = [kafka_jars.java(), "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars.libraries()}/*", "kafka.tools.StorageTool"]
    # An id may begin with a dash.
    command = [*tool, "format", f"--cluster-id={cluster_id}", "--config", str(properties)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S)
    if done.returncode != 0:
        raise BrokerFailed(f"Kafka's storage tool: {done.stderr.strip()}")


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")


def _free_range(count: int) -> int:
    """The first of several free ports in a row."""
    while True:
        [first] = free_ports(1)
        try:
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
        except (OSError, OverflowError):
            continue
        return first
