"""odradek and Apache Kafka as processes that are started with a file of properties, by name, and stopped or killed."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.peers import spawn, tail
from tests.broker_process import command_environment
from tests.campaigns.cluster_chaos.clients import Violation
from tests.campaigns.kafka_tools import jvm
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, accepts, end_process, until

SERVE_WITH_FLAGS = "odradek serve --data-dir {data} --port {port}"
SERVE = "odradek serve --config {file}"
GROW_OUT_WITH_FLAGS = "odradek grow-out --data-dir {data} --port {port} --out {out}"
GROW_OUT = "odradek grow-out --config {file} --out {out}"
START = "kafka-server-start.sh {file}"
CLUSTER_ID = "kafka-cluster.sh cluster-id --bootstrap-server {servers}"
UNREGISTER = "kafka-cluster.sh unregister --bootstrap-server {servers} --id {broker}"
FORMAT = "kafka-storage.sh format --cluster-id {cluster} --config {file}"
FORMAT_STANDALONE = "kafka-storage.sh format --standalone --cluster-id {cluster} --config {file}"
_REASSIGN = "kafka-reassign-partitions.sh --bootstrap-server {servers}"
GENERATE = f"{_REASSIGN} --topics-to-move-json-file {{topics}} --broker-list {{brokers}} --generate"
EXECUTE = f"{_REASSIGN} --reassignment-json-file {{plan}} --execute"
VERIFY = f"{_REASSIGN} --reassignment-json-file {{plan}} --verify"
ALL = (SERVE_WITH_FLAGS, SERVE, GROW_OUT_WITH_FLAGS, GROW_OUT, START, CLUSTER_ID, UNREGISTER, FORMAT, GENERATE, EXECUTE, VERIFY)

_CLASSES = {
    "kafka-server-start.sh": "kafka.Kafka",
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-cluster.sh": "org.apache.kafka.tools.ClusterTool",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}


def words(command: str, **values: object) -> list[str]:
    """The words of one of the commands, to be run."""
    program, *arguments = [word.format(**values) for word in shlex.split(command)]
    if program == "odradek":
        return [sys.executable, "-m", "odradek", *arguments]
    # Half of a controller's heap is the cleaner's.
    return jvm.command(_CLASSES[program], *arguments, flags=("-Xmx512m",))


def is_one(line: str) -> bool:
    """True if a line to type is one of the commands."""
    return any(re.fullmatch(re.sub(r"\\\{\w+\\\}", r"\\S+", re.escape(command)), line) for command in ALL)


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
                words(SERVE, file=properties),
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
        process = self._running[name] = spawn(words(START, file=properties), directory)
        until(lambda: process.poll() is not None or accepts(f"127.0.0.1:{port}"))
        if process.poll() is not None:
            raise AssertionError(tail(directory))

    def grow_out(self, config: Path, out: Path) -> Path:
        """Have ``odradek grow-out`` write a file for Kafka; its path."""
        command = words(GROW_OUT, file=config, out=out)
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


_PROPOSED = "Proposed partition reassignment configuration\n"
_MOVE_TIMEOUT_S = 240.0


class KafkaTools:
    """``servers`` are the brokers to ask, ``scratch`` takes the files that the tools read."""

    def __init__(self, scratch: Path, servers: str) -> None:
        self._scratch = scratch
        self._servers = servers

    def reassign(self, topics: Sequence[str], brokers: Sequence[int]) -> int:
        """Have all partitions of these topics on these brokers and no others, and wait until it is done; how many there are."""
        topics_file, plan_file = self._scratch / "topics.json", self._scratch / "plan.json"
        topics_file.write_text(json.dumps({"version": 1, "topics": [{"topic": topic} for topic in topics]}), encoding="utf-8")
        generated = self._run(GENERATE, topics=topics_file, brokers=",".join(map(str, brokers)))
        proposed = generated.partition(_PROPOSED)[2]
        plan_file.write_text(proposed, encoding="utf-8")
        self._run(EXECUTE, plan=plan_file)
        until(lambda: self._is_done(plan_file), _MOVE_TIMEOUT_S)
        return len(json.loads(proposed)["partitions"])

    def unregister(self, broker: int) -> None:
        """Have the cluster forget a broker that was stopped."""
        told = self._run(UNREGISTER, broker=broker)
        assert f"Broker {broker} is no longer registered" in told, told

    def cluster_id(self) -> str:
        """The cluster's."""
        return self._run(CLUSTER_ID).strip().rpartition(" ")[2]

    def format(self, cluster_id: str, properties: Path) -> None:
        """Make the data directory of a broker that is to join."""
        self._run(FORMAT, cluster=cluster_id, file=properties)

    def format_standalone(self, cluster_id: str, properties: Path) -> None:
        """Make the data directory of a node that is the first of its cluster, as the quickstart does."""
        self._run(FORMAT_STANDALONE, cluster=cluster_id, file=properties)

    def _is_done(self, plan_file: Path) -> bool:
        told = self._run(VERIFY, plan=plan_file)
        assert "failed" not in told, told
        return "is still in progress" not in told

    def _run(self, command: str, **values: object) -> str:
        line = words(command, servers=self._servers, **values)
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, (command, values, done.stdout, done.stderr)
        return done.stdout
