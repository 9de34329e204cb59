"""Controllers of Apache Kafka's own, each in a JVM (``process.roles=controller``), voters of one quorum.

They are started, killed, frozen and started again by node id. Their data directories are formatted without Kafka's tool, which
would take a JVM: ``meta.properties`` is all that a controller with configured voters needs.
"""

import shutil
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks.peers import spawn, tail
from benchmarks.ports import free_ports
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.texts import new_uuid_text
from tests.campaigns.kafka_tools import jvm
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, until
from tests.campaigns.kafka_tools.kafka_tool import run_tool

if TYPE_CHECKING:
    import subprocess

LOG_DIR = "__cluster_metadata-0"


class KafkaControllers:
    """Controllers 1 to ``count``, not started yet. ``settings`` are further lines of their ``server.properties``.

    The voters of a quorum that ``is_dynamic`` are records of the metadata log (KIP-853), at first controller 1 alone.
    """

    def __init__(self, scratch: Path, count: int, settings: Mapping[str, str], *, is_dynamic: bool = False) -> None:
        self.cluster_id = new_uuid_text(uuid4)
        self.ports = dict(zip(range(1, count + 1), free_ports(count), strict=True))
        self._scratch = scratch
        self._processes: dict[int, subprocess.Popen[str]] = {}
        for node_id in self.ports:
            self._configure(node_id, settings, is_dynamic=is_dynamic)
            if is_dynamic:
                self._format_standalone(node_id)
            else:
                self._format(node_id)

    @property
    def voters(self) -> str:
        """``controller.quorum.voters``."""
        return ",".join(f"{each}@127.0.0.1:{port}" for each, port in self.ports.items())

    def log_dir(self, node_id: int) -> Path:
        """Where a controller has the metadata log."""
        return self._scratch / f"controller-{node_id}" / "data" / LOG_DIR

    def batches(self, node_id: int, offset: int = 0) -> bytes:
        """The record batches of a controller's log from ``offset`` on, which is where one begins."""
        data = b"".join(file.read_bytes() for file in sorted(self.log_dir(node_id).glob("*.log")))
        return data[next(position for position, header in iter_batches(data) if header.base_offset == offset) :]

    def start(self, *node_ids: int) -> None:
        """Start these, or all, and wait until they accept connections."""
        for node_id in node_ids or self.ports:
            directory = self._scratch / f"controller-{node_id}"
            self._processes[node_id] = spawn(jvm.command("kafka.Kafka", str(directory / "server.properties")), directory)
        for node_id in node_ids or self.ports:
            until(lambda node_id=node_id: self._accepts(node_id))

    def kill9(self, node_id: int) -> None:
        """End a controller as a loss of its machine does."""
        process = self._processes.pop(node_id)
        process.kill()
        process.wait(TIMEOUT_S)
        assert process.stdout is not None
        process.stdout.close()

    def freeze(self, *node_ids: int) -> None:
        """Stop controllers from doing anything until they are thawed."""
        for node_id in node_ids:
            self._processes[node_id].send_signal(signal.SIGSTOP)

    def thaw(self, *node_ids: int) -> None:
        """Let frozen controllers go on."""
        for node_id in node_ids:
            self._processes[node_id].send_signal(signal.SIGCONT)

    def lose_segments(self, node_id: int) -> None:
        """Let a stopped controller's log begin at its newest snapshot, as if retention had removed all in front of it."""
        for file in self.log_dir(node_id).iterdir():
            if file.suffix not in {".checkpoint", ".metadata"} and file.name != "quorum-state":
                file.unlink()

    def close(self) -> None:
        """End all, and remove their data."""
        for node_id in list(self._processes):
            self.kill9(node_id)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _configure(self, node_id: int, settings: Mapping[str, str], *, is_dynamic: bool) -> None:
        directory = self._scratch / f"controller-{node_id}"
        (directory / "data").mkdir(parents=True)
        servers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        properties = {
            "process.roles": "controller",
            "node.id": str(node_id),
            **({"controller.quorum.bootstrap.servers": servers} if is_dynamic else {"controller.quorum.voters": self.voters}),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(directory / "data"),
            **settings,
        }
        text = "".join(f"{key}={value}\n" for key, value in properties.items())
        (directory / "server.properties").write_text(text, encoding="utf-8")

    def _format(self, node_id: int) -> None:
        meta = {"version": 1, "cluster.id": self.cluster_id, "node.id": node_id, "directory.id": new_uuid_text(uuid4)}
        path = self._scratch / f"controller-{node_id}" / "data" / "meta.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in meta.items()), encoding="ascii")

    def _format_standalone(self, node_id: int) -> None:
        properties = self._scratch / f"controller-{node_id}" / "server.properties"
        arguments = ["format", "--standalone", "--cluster-id", self.cluster_id, "--config", str(properties)]
        done = run_tool("kafka.tools.StorageTool", *arguments)
        assert done.returncode == 0, done.stderr

    def _accepts(self, node_id: int) -> bool:
        if self._processes[node_id].poll() is not None:
            raise AssertionError(tail(self._scratch / f"controller-{node_id}"))
        try:
            socket.create_connection(("127.0.0.1", self.ports[node_id]), 1).close()
        except OSError:
            return False
        return True
