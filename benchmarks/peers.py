"""The measured brokers and how to start them: odradek, Apache Kafka (one KRaft node), franz-go's kfake.

Every broker gets a fresh data directory and a free port of 127.0.0.1, and starts as its users start it: odradek by its command,
Kafka with the heap and the JVM flags of its own scripts and the settings of the ``server.properties`` it ships.
"""

import compileall
import contextlib
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import odradek
from benchmarks import kafka_jars, load_tool, processes
from benchmarks.ports import free_ports

_ROOT = Path(__file__).parent.parent
_READY_TIMEOUT_S = 30.0
_FORMAT_TIMEOUT_S = 60.0
_TAIL_LINES = 15

# A load's data is deleted from disk together with its topic. The default delay is a minute. By then the kernel would be writing
# the data out under the next load, which halves that load's throughput. Kafka's file deletion begins 30 s after its start by
# default.
_DELETE_SOON: Mapping[str, str] = {"log.segment.delete.delay.ms": "100"}
# Kafka's default makes a new group wait 3 s for more members; odradek's does not. With equal settings the brokers are compared.
_NO_DELAY: Mapping[str, str] = {"group.initial.rebalance.delay.ms": "0"}
# The interval at which members of consumer and share groups heartbeat. With 5 s, the default, a step takes as long as the
# interval does.
_SHORT_INTERVAL: Mapping[str, str] = {
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
}
UNDER_LOAD: Mapping[str, Mapping[str, str]] = {
    "odradek": {**_DELETE_SOON, **_NO_DELAY, **_SHORT_INTERVAL},
    "kafka": {**_DELETE_SOON, **_NO_DELAY, **_SHORT_INTERVAL, "log.initial.task.delay.ms": "100"},
    "kfake": {},
}

# kafka-run-class.sh's KAFKA_JVM_PERFORMANCE_OPTS and KAFKA_JMX_OPTS, kafka-server-start.sh's KAFKA_HEAP_OPTS.
JVM_FLAGS = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15"),
    *("-Djava.awt.headless=true", "-Dcom.sun.management.jmxremote=true"),
    *("-Dcom.sun.management.jmxremote.authenticate=false", "-Dcom.sun.management.jmxremote.ssl=false"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
# A broker that is given one has an SSL listener in place of the other.
_KEY_STORE = "ssl.keystore.location"
KAFKA_SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class BrokerFailed(Exception):
    """A broker did not start; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Running:
    """A broker's process, and the HOST:PORT it serves on."""

    process: subprocess.Popen[str]
    address: str

    @property
    def pids(self) -> tuple[int, ...]:
        """The one process."""
        return (self.process.pid,)


class Server(Protocol):
    """What a load runs on: a broker, or a cluster."""

    @property
    def address(self) -> str:
        """HOST:PORT, or several of them, separated by commas."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Its processes."""


class Peer(Protocol):
    """A broker to be measured."""

    name: str

    def prepare(self, directory: Path, settings: Mapping[str, str]) -> list[str]:
        """Prepare ``directory`` for the first start (not measured), and return the command that starts the broker."""

    def address(self, process: subprocess.Popen[str], directory: Path) -> str:
        """The HOST:PORT of the broker just spawned. It may not accept connections there yet."""


class Odradek:
    """``odradek serve``, with this interpreter."""

    name = "odradek"

    def prepare(self, directory: Path, settings: Mapping[str, str]) -> list[str]:
        """Compile the modules, as in an installed package. odradek creates its data directory itself."""
        compileall.compile_dir(str(Path(odradek.__file__).parent), quiet=2)
        if _KEY_STORE in settings:
            settings = {**settings, "listeners": "SSL://127.0.0.1:0"}
        chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return [sys.executable, "-m", "odradek", "serve", "--port", "0", "--data-dir", str(directory / "data"), *chosen]

    def address(self, process: subprocess.Popen[str], directory: Path) -> str:
        """The address in the ready line."""
        return _ready_address(process, directory, "odradek ready on ")


class Kfake:
    """franz-go's broker for tests, with data on disk: the cost of the protocol in compiled code."""

    name = "kfake"

    def prepare(self, directory: Path, settings: Mapping[str, str]) -> list[str]:
        """Nothing to prepare; kfake has none of the settings."""
        del settings
        return [str(load_tool.BINARY), "serve-kfake", "-data-dir", str(directory / "data")]

    def address(self, process: subprocess.Popen[str], directory: Path) -> str:
        """The address in its ready line."""
        return _ready_address(process, directory, "kfake ready on ")


class Kafka:
    """Apache Kafka: broker and controller in one process, with a data directory formatted beforehand."""

    name = "kafka"

    def __init__(self, template: Path) -> None:
        """``template`` is an empty directory. It is formatted at the first use, and copied for every start."""
        self._template = template

    def prepare(self, directory: Path, settings: Mapping[str, str]) -> list[str]:
        """Write ``server.properties``, and copy a formatted data directory."""
        port, controller_port = free_ports(2)
        (directory / "port").write_text(str(port), encoding="ascii")
        properties = directory / "server.properties"
        properties.write_text(server_properties(directory / "data", port, controller_port, settings), encoding="utf-8")
        classpath = f"{kafka_jars.libraries()}/*"
        if not (self._template / "data").exists():
            self._format(classpath)
        shutil.copytree(self._template / "data", directory / "data")
        return [kafka_jars.java(), *JVM_FLAGS, "-cp", classpath, "kafka.Kafka", str(properties)]

    def address(self, process: subprocess.Popen[str], directory: Path) -> str:
        """The port chosen beforehand."""
        del process
        return "127.0.0.1:" + (directory / "port").read_text(encoding="ascii")

    def _format(self, classpath: str) -> None:
        properties = self._template / "server.properties"
        port, controller_port = free_ports(2)
        properties.write_text(server_properties(self._template / "data", port, controller_port, {}), encoding="utf-8")
        storage_tool = [kafka_jars.java(), "-cp", classpath, "kafka.tools.StorageTool"]
        cluster_id = subprocess.run(
            [*storage_tool, "random-uuid"], check=True, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S
        )
        format_command = [*storage_tool, "format", "--cluster-id", cluster_id.stdout.strip(), "--config", str(properties)]
        done = subprocess.run(format_command, check=False, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S)
        if done.returncode != 0:
            reason = f"Kafka's storage tool: {done.stderr.strip()}"
            raise BrokerFailed(reason)


def server_properties(data_dir: Path, port: int, controller_port: int, settings: Mapping[str, str]) -> str:
    """The text of a ``server.properties`` for one node that is broker and controller; with a key store, by an SSL listener."""
    protocol = "SSL" if _KEY_STORE in settings else "PLAINTEXT"
    every = {
        **KAFKA_SETTINGS,
        "inter.broker.listener.name": protocol,
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocol}:{protocol}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"{protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"{protocol}://127.0.0.1:{port}",
        "log.dirs": str(data_dir),
        **settings,
    }
    return "".join(f"{key}={value}\n" for key, value in every.items())


def spawn(command: list[str], directory: Path) -> subprocess.Popen[str]:
    """Start a broker that logs to a file in its directory."""
    with (directory / "stderr.log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)


@contextlib.contextmanager
def serving(
    peer: Peer, directory: Path, settings: Mapping[str, str] | None = None, security: tuple[str, ...] = ()
) -> Iterator[Running]:
    """Run a broker, configured for loads, during the ``with`` block, which begins when the broker has served its first record.

    ``settings`` are further ones; with stores of certificates among them, ``security`` are the load generator's flags for TLS.
    """
    directory.mkdir(parents=True)
    process = spawn(peer.prepare(directory, {**UNDER_LOAD[peer.name], **(settings or {})}), directory)
    try:
        running = Running(process, peer.address(process, directory))
        try:
            load_tool.run("first-record", running.address, (*security, "-topic=warm-up"))
        except load_tool.LoadFailed as failure:
            reason = f"{failure}\n{tail(directory)}"
            raise BrokerFailed(reason) from failure
        yield running
    finally:
        processes.end(process)
        shutil.rmtree(directory, ignore_errors=True)


def tail(directory: Path) -> str:
    """The end of a broker's log."""
    lines = (directory / "stderr.log").read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])


def _ready_address(process: subprocess.Popen[str], directory: Path, prefix: str) -> str:
    """Wait for the ready line on a broker's standard output. Raises BrokerFailed on any other line, or none in time."""
    if process.stdout is None:
        reason = "the broker's standard output is not a pipe"
        raise BrokerFailed(reason)
    readable, _, _ = select.select([process.stdout], [], [], _READY_TIMEOUT_S)
    line = process.stdout.readline() if readable else ""
    if not line.startswith(prefix):
        reason = f"no ready line but {line!r}\n{tail(directory)}"
        raise BrokerFailed(reason)
    return line.removeprefix(prefix).strip()
