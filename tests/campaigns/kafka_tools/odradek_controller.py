"""odradek's own controller, a process of `odradek serve`, in the place of ``KafkaControllers``: the one voter of its quorum."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from benchmarks.ports import free_ports
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.texts import new_uuid_text
from tests.campaigns.kafka_tools.kafka_broker import end_process

NODE_ID = 1
LOG_DIR = "__cluster_metadata-0"


class OdradekController:
    """Controller 1, not started yet. ``settings`` are further configs. The interface is that of ``KafkaControllers``.

    The voter of a quorum that ``is_dynamic`` is a record of the metadata log (KIP-853).
    """

    def __init__(self, scratch: Path, settings: Mapping[str, str] | None = None, *, is_dynamic: bool = False) -> None:
        self.cluster_id = new_uuid_text(uuid4)
        self.ports = dict(zip([NODE_ID], free_ports(1), strict=True))
        self._scratch = scratch
        self._settings = dict(settings or {})
        self._is_dynamic = is_dynamic
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._format()

    @property
    def voters(self) -> str:
        """``controller.quorum.voters``."""
        return f"{NODE_ID}@127.0.0.1:{self.ports[NODE_ID]}"

    @property
    def quorum(self) -> dict[str, str]:
        """What says who the controllers are."""
        if self._is_dynamic:
            return {"controller.quorum.bootstrap.servers": f"127.0.0.1:{self.ports[NODE_ID]}"}
        return {"controller.quorum.voters": self.voters}

    def log_dir(self, node_id: int = NODE_ID) -> Path:
        """Where the controller has the metadata log."""
        return self._scratch / f"controller-{node_id}" / "data" / LOG_DIR

    def batches(self, node_id: int = NODE_ID, offset: int = 0) -> bytes:
        """The record batches of the controller's log from ``offset`` on, which is where one begins."""
        data = b"".join(file.read_bytes() for file in sorted(self.log_dir(node_id).glob("*.log")))
        return data[next(position for position, header in iter_batches(data) if header.base_offset == offset) :]

    def log(self, node_id: int = NODE_ID) -> str:
        """What the controller has said."""
        return self._log_path(node_id).read_text(encoding="utf-8")

    def start(self, *node_ids: int) -> None:
        """Start it, and wait until it is ready."""
        for node_id in node_ids or self.ports:
            process = self._processes[node_id] = self._spawn(node_id)
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line == f"odradek controller ready on 127.0.0.1:{self.ports[node_id]}\n", (line, self.log(node_id))

    def kill9(self, node_id: int = NODE_ID) -> None:
        """End the controller as a loss of its machine does."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int = NODE_ID) -> int:
        """Have the controller stop; its exit status."""
        return self._end(node_id, signal.SIGTERM)

    def freeze(self, *node_ids: int) -> None:
        """Stop the controller from doing anything until it is thawed."""
        for node_id in node_ids or self.ports:
            self._processes[node_id].send_signal(signal.SIGSTOP)

    def thaw(self, *node_ids: int) -> None:
        """Let the frozen controller go on."""
        for node_id in node_ids or self.ports:
            self._processes[node_id].send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, and remove its data."""
        for node_id in list(self._processes):
            self.kill9(node_id)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _spawn(self, node_id: int) -> "subprocess.Popen[str]":
        settings = {
            "process.roles": "controller",
            "node.id": str(node_id),
            **self.quorum,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
            **self._settings,
        }
        chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "odradek", "serve", "--data-dir", str(self.log_dir(node_id).parent), *chosen]
        with self._log_path(node_id).open("a", encoding="utf-8") as log:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ)

    def _end(self, node_id: int, number: int) -> int:
        return end_process(self._processes.pop(node_id), number)

    def _format(self) -> None:
        data = self.log_dir(NODE_ID).parent
        data.mkdir(parents=True)
        meta = {"version": 1, "cluster.id": self.cluster_id, "node.id": NODE_ID, "directory.id": new_uuid_text(uuid4)}
        text = "".join(f"{key}={value}\n" for key, value in meta.items())
        (data / "meta.properties").write_text(text, encoding="ascii")

    def _log_path(self, node_id: int) -> Path:
        return self._scratch / f"controller-{node_id}" / "odradek.log"
