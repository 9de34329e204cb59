"""The other way in: what Apache Kafka's quickstart has made is served by odradek with Kafka's own file, and by Kafka again.

``kafka-storage.sh format --standalone`` makes a quorum whose voters are records of the metadata log (KIP-853), and finalizes
all features of Kafka's.
"""

from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from benchmarks.ports import free_ports
from odradek.protocol.texts import new_uuid_text
from tests.campaigns.growing_out.inventory import Inventory, differences, settled, take_inventory
from tests.campaigns.growing_out.kept import Kept
from tests.campaigns.growing_out.processes import KafkaTools, Processes
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S
from tests.raw_client import RawClient


@dataclass(slots=True)
class QuickstartFound:
    """``things`` were there again at a start, ``checks`` were requests that went on."""

    things: int = 0
    checks: int = 0
    differences: list[str] = field(default_factory=list)

    def report(self) -> str:
        """One line."""
        return f"kafka's quickstart, odradek, kafka: {self.things} things found again, {self.checks} requests that went on"


def come_from_kafka(scratch: Path) -> QuickstartFound:
    """Kafka, odradek killed, Kafka killed, odradek."""
    found, kept, processes = QuickstartFound(), Kept(), Processes(scratch)
    port, controller_port = free_ports(2)
    settings = {
        # What config/server.properties of Kafka's distribution says, with other ports and a directory of its own.
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
        "listeners": f"PLAINTEXT://:{port},CONTROLLER://:{controller_port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": f"PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "num.network.threads": "3",
        "log.dirs": str(scratch / "data"),
        "num.partitions": "1",
        "num.recovery.threads.per.data.dir": "2",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.retention.hours": "168",
        # Fewer, for a fast start.
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
    }
    kafkas = processes.properties("server.properties", settings)
    inventory: Inventory = {}

    def use() -> None:
        nonlocal inventory
        with RawClient("127.0.0.1", port) as client:
            if inventory:
                before = inventory
                after = settled(lambda: take_inventory(client), before, TIMEOUT_S)
                found.differences += differences(before, after)
                found.things += len(before)
            kept.go_on(client)
            kept.leave(client)
            inventory = settled(lambda: take_inventory(client), None, TIMEOUT_S)

    try:
        KafkaTools(scratch, f"127.0.0.1:{port}").format_standalone(new_uuid_text(uuid4), kafkas)
        processes.start_kafka("kafka", kafkas, port)
        use()
        processes.stop("kafka")
        processes.start_odradek(kafkas)
        use()
        processes.kill9("odradek")
        processes.start_kafka("kafka", processes.grow_out(kafkas, scratch / "again.properties"), port)
        use()
        processes.kill9("kafka")
        processes.start_odradek(scratch / "again.properties")
        use()
        processes.stop("odradek")
    finally:
        processes.close()
    if "Traceback" in processes.odradeks_log:
        found.differences.append(f"odradek has had a fault:\n{processes.odradeks_log[-3000:]}")
    found.differences += kept.differences
    found.checks = kept.checks
    return found
