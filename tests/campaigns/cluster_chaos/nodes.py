"""The nodes of the cluster that is harmed: three brokers of odradek's, a controller, and the network between them all.

Each broker has a listener for clients and one for brokers, and advertises a gate of the network for each. So has the controller.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.ports import free_ports
from tests.campaigns.cluster_chaos.network import CLIENTS, CONTROLLER, Flow, Network, Party, both_ways
from tests.campaigns.cluster_chaos.watched_broker import TASKS
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController

NODES: Final = (11, 12, 13)
SESSION_S: Final = 3
LAG_S: Final = 3
_CONTROLLER_ID: Final = 1
_SETTINGS: Final = {
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": str(SESSION_S * 1000),
    "controller.socket.timeout.ms": "3000",
    "replica.lag.time.max.ms": str(LAG_S * 1000),
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "3000",
    "request.timeout.ms": "3000",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
_CONTROLLER_SETTINGS: Final = {"broker.session.timeout.ms": str(SESSION_S * 1000), "min.insync.replicas": "2"}


class WatchedBrokers(OdradekBrokers):
    """Brokers that tell how many tasks they have, and that may have a fault."""

    def __init__(self, *arguments: object, fault: str | None) -> None:
        super().__init__(*arguments)
        self.program = ("-m", "tests.campaigns.cluster_chaos.watched_broker", fault or "-")

    def tasks(self, node_id: int) -> int:
        """How many tasks there are now. TimeoutError."""
        before = self.log(node_id).count(TASKS)
        self.signal(node_id, signal.SIGUSR1)
        deadline = time.monotonic() + 10
        while self.log(node_id).count(TASKS) == before:
            if time.monotonic() > deadline:
                raise TimeoutError(f"broker {node_id} does not tell its tasks")
            time.sleep(0.01)
        return int(self.log(node_id).rpartition(TASKS)[2].split()[0])

    def sockets(self, node_id: int) -> int:
        """How many sockets there are now."""
        directory = Path(f"/proc/{self.pid(node_id)}/fd")
        return sum(str(each.readlink()).startswith("socket:") for each in directory.iterdir() if each.is_symlink())

    def memory_mib(self, node_id: int) -> float:
        """The memory that is resident now."""
        status = Path(f"/proc/{self.pid(node_id)}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class Nodes:
    """``controller`` is a kind of ``CONTROLLERS``, and ``fault`` a name of ``faults``. Nothing runs before ``start``."""

    def __init__(self, scratch: Path, controller: str, fault: str | None = None) -> None:
        self.network = Network()
        advertised = self.network.gate(CONTROLLER, lambda: self.controllers.ports[_CONTROLLER_ID])
        self.controllers = CONTROLLERS[controller](
            scratch / "controllers", {**_CONTROLLER_SETTINGS, "advertised.listeners": f"CONTROLLER://127.0.0.1:{advertised}"}
        )
        ports = dict(zip(NODES, free_ports(len(NODES)), strict=True))
        gates: dict[int, tuple[int, int]] = {}
        settings = {}
        for node_id, port in ports.items():
            clients = self.network.gate(node_id, lambda node_id=node_id: self.brokers.ports[node_id], source=CLIENTS)
            brokers = self.network.gate(node_id, lambda port=port: port)
            gates[node_id] = clients, brokers
            settings[node_id] = {
                **_SETTINGS,
                "controller.quorum.voters": f"{_CONTROLLER_ID}@127.0.0.1:{advertised}",
                "listeners": f"CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:{port}",
                "advertised.listeners": f"CLIENTS://127.0.0.1:{clients},BROKERS://127.0.0.1:{brokers}",
            }
        self.servers = ",".join(f"127.0.0.1:{clients}" for clients, _ in gates.values())
        self.brokers = WatchedBrokers(scratch / "brokers", self.controllers, settings, fault=fault)

    def start(self) -> None:
        """Start the controller, then the brokers."""
        self.controllers.start()
        self.brokers.start()

    def close(self) -> None:
        """End everything."""
        self.brokers.close()
        self.controllers.close()
        self.network.close()

    def logs(self) -> dict[str, str]:
        """What each node of odradek's has said."""
        logs = {f"broker {node_id}": self.brokers.log(node_id) for node_id in NODES}
        if isinstance(self.controllers, OdradekController):
            logs["the controller"] = self.controllers.log()
        return logs

    def freeze_controller(self) -> None:
        """Stop the controller from doing anything."""
        self.controllers.freeze(_CONTROLLER_ID)

    def thaw_controller(self) -> None:
        """Let it go on."""
        self.controllers.thaw(_CONTROLLER_ID)

    def kill_controller(self) -> None:
        """End the controller as a loss of its machine does."""
        self.controllers.kill9(_CONTROLLER_ID)

    def start_controller(self) -> None:
        """Start it again."""
        self.controllers.start(_CONTROLLER_ID)


def between(node_id: int, *others: Party) -> list[Flow]:
    """The flows between a broker and others, both ways."""
    return both_ways((node_id, other) for other in others)


def peers_of(node_id: int) -> list[int]:
    """The other brokers."""
    return [each for each in NODES if each != node_id]


Controllers = KafkaControllers | OdradekController
CONTROLLERS: Final[dict[str, Callable[[Path, dict[str, str]], Controllers]]] = {
    "kafka": lambda scratch, settings: KafkaControllers(scratch, 1, settings),
    "odradek": OdradekController,
}
