"""From one odradek node to Apache Kafka alone, without a stop of its clients, as docs/growing-out.md has it.

    1. odradek runs with a listener for controllers, so that others can join.
    2. A broker of Kafka's joins, in a directory that kafka-storage.sh has formatted.
    3. kafka-reassign-partitions.sh moves every partition to it, those of the coordinators, too.
    4. odradek goes on as a controller alone, and its broker is unregistered.
    5. Kafka takes over the controller, on the same directory, with what ``odradek grow-out`` writes.

There is one replica of each partition throughout, so nothing but the moves carries the data over. Producers with ids, sequence
numbers and open transactions go on at the other broker (``kept``).
"""

from pathlib import Path

from benchmarks.ports import free_ports
from tests.campaigns.cluster_chaos.clients import Violation
from tests.campaigns.growing_out.inventory import Inventory, differences, settled, take_inventory
from tests.campaigns.growing_out.kept import Kept
from tests.campaigns.growing_out.live import LiveClients
from tests.campaigns.growing_out.moved import MovedFound
from tests.campaigns.growing_out.processes import KafkaTools, Processes
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S
from tests.raw_client import RawClient

ODRADEK, KAFKA = 1, 2
_TOPICS = ("__consumer_offsets", "__transaction_state", "kept-0", "ledger", "orders")
_COMMON = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "controller.listener.names": "CONTROLLER",
}


def leave_one_node(scratch: Path) -> MovedFound:
    """All five steps."""
    steps = _Steps(scratch)
    try:
        steps.go()
    except Violation as violation:
        steps.found.differences.append(str(violation))
    finally:
        steps.processes.close()
    return steps.found


class _Steps:
    def __init__(self, scratch: Path) -> None:
        self.found = MovedFound("odradek's controller and broker in one process")
        self.processes = Processes(scratch)
        self._scratch = scratch
        self._ports = dict(zip((ODRADEK, KAFKA), free_ports(2), strict=True))
        (self._controller_port,) = free_ports(1)
        self._servers = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        self._tools = KafkaTools(scratch, self._servers)
        self._kept = Kept()

    def go(self) -> None:
        """From odradek to Kafka."""
        self.processes.start_odradek(self._properties("odradek.properties", ODRADEK, "broker,controller"))
        live = LiveClients(self._servers, replicas=1)
        try:
            self._go(live)
            self.found.differences += live.finish() + self._kept.differences
        finally:
            self.found.live = live.report()
        if "Traceback" in self.processes.odradeks_log:
            self.found.differences.append(f"odradek has had a fault:\n{self.processes.odradeks_log[-3000:]}")

    def _go(self, live: LiveClients) -> None:
        with self._client(ODRADEK) as client:
            self._kept.leave(client)
            live.go_on()
            before = settled(lambda: take_inventory(client), None, TIMEOUT_S)
        self._start_kafka_broker()
        self.found.partitions += self._tools.reassign(_TOPICS, [KAFKA])
        live.go_on()
        self._look(before)
        self.processes.stop("odradek")
        controller = self._properties("controller.properties", ODRADEK, "controller")
        self.processes.start_odradek(controller)
        live.go_on()
        self._tools.unregister(ODRADEK)
        self.found.brokers += 1
        self.processes.stop("odradek")
        kafkas = self.processes.grow_out(controller, self._scratch / "kafka-1.properties")
        self.processes.start_kafka("controller", kafkas, self._controller_port)
        live.go_on()
        with self._client(KAFKA) as client:
            # A topic, and ids of producers, are the controller's to give.
            self._kept.leave(client)
            self._kept.go_on(client)

    def _look(self, before: Inventory) -> None:
        with self._client(KAFKA) as client:
            after = settled(lambda: take_inventory(client, broker=str(KAFKA)), before, TIMEOUT_S)
            self.found.differences += [f"moved: {line}" for line in differences(before, after)]
            self.found.things += len(before)
            self._kept.go_on(client)

    def _start_kafka_broker(self) -> None:
        path = self._properties("kafka-2.properties", KAFKA, "broker")
        self._tools.format(self._tools.cluster_id(), path)
        self.processes.start_kafka("broker", path, self._ports[KAFKA])

    def _client(self, node_id: int) -> RawClient:
        return RawClient("127.0.0.1", self._ports[node_id])

    def _properties(self, name: str, node_id: int, roles: str) -> Path:
        listeners = [f"PLAINTEXT://127.0.0.1:{self._ports[node_id]}"] if "broker" in roles else []
        if "controller" in roles:
            listeners.append(f"CONTROLLER://127.0.0.1:{self._controller_port}")
        own = {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "log.dirs": str(self._scratch / f"data-{node_id}"),
            "controller.quorum.voters": f"{ODRADEK}@127.0.0.1:{self._controller_port}",
        }
        return self.processes.properties(name, own | _COMMON)
