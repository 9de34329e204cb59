"""One history: machines with brokers and a controller, clients, and what goes wrong between them, all from one seed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.controller_node import ControllerServer
from odradek.broker.start.server import BrokerOptions
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.protocol.hashing import partition_for
from tests.campaigns.cluster_simulation.consumers import Committer, Member, Reader
from tests.campaigns.cluster_simulation.loop import ProcessClock, VirtualLoop
from tests.campaigns.cluster_simulation.machine import Machine, member_of
from tests.campaigns.cluster_simulation.network import SimulatedNetwork
from tests.campaigns.cluster_simulation.plan import HURRIED, draw, with_race
from tests.campaigns.cluster_simulation.producers import CarelessProducer, IdempotentProducer
from tests.campaigns.cluster_simulation.races import TRANSACTION_PARTITIONS
from tests.campaigns.cluster_simulation.transactions import HurriedProducer, TransactionalProducer
from tests.campaigns.cluster_simulation.witness import Ledger, Witness
from tests.campaigns.simulation.runner import Events

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.replica.partition import Partition
    from odradek.broker.start.server import Broker
    from odradek.broker.start.shared_server import SharedServer
    from tests.campaigns.cluster_simulation.client import Client
    from tests.campaigns.cluster_simulation.loop import Handle

_LOOK_MS = 60
_OFFSETS_PARTITIONS = 2
_CONTROLLER_ID = 100
_CONTROLLER_HOST = "controller"
_VOTERS = f"{_CONTROLLER_ID}@{_CONTROLLER_HOST}:9093"
BROKER_CONFIGS = {
    "process.roles": "broker",
    "controller.quorum.voters": _VOTERS,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.heartbeat.interval.ms": "450",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "1200",
    "controller.socket.timeout.ms": "1200",
    "replica.lag.time.max.ms": "1200",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1500",
    "replica.high.watermark.checkpoint.interval.ms": "1500",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS),
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": str(TRANSACTION_PARTITIONS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "400",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.enable": "false",
    "auto.create.topics.enable": "false",
}
CONTROLLER_CONFIGS = {
    "process.roles": "controller",
    "controller.quorum.voters": _VOTERS,
    "controller.listener.names": "CONTROLLER",
    "listeners": f"CONTROLLER://{_CONTROLLER_HOST}:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "metadata.max.idle.interval.ms": "0",
    "broker.heartbeat.interval.ms": "450",
    "broker.session.timeout.ms": "1500",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


async def _start_broker(shared: SharedServer, on_open: Callable[[Broker], None]) -> BrokerServer:
    return await BrokerServer.start(shared, BrokerOptions(on_open=on_open))


async def _start_controller(shared: SharedServer, on_open: Callable[[Broker], None]) -> ControllerServer:
    return await ControllerServer.start(shared)


class World(Events):
    """A history of a cluster."""

    def __init__(self, seed: int, *, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, show)
        self.loop = VirtualLoop()
        self.clock = ProcessClock(self.loop, 0)
        # Of its own, so that what it draws changes no other history.
        self.plan = with_race(draw(self.rng), Random(f"race {seed}"))
        self.network = SimulatedNetwork(self.loop, Random(self.rng.getrandbits(64)), self.plan.longest_latency_ms)
        self.loop.network = self.network
        self.ledger = Ledger()
        self.witness = Witness()
        self.is_in_trouble = True
        self.topic = "t"
        self.places = [(self.topic, index) for index in range(self.plan.partition_count)]
        self.clients: list[Client] = []
        # Brokers that ended without warning, and whether their disks have lost something: until they are in sync again.
        self._tainted: dict[int, bool] = {}
        self._complaint: Exception | None = None
        self._had_last: set[Client] = set()
        configs = {**CONTROLLER_CONFIGS, "min.insync.replicas": str(self.plan.min_in_sync)}
        self.controller = Machine(self, _CONTROLLER_ID, _CONTROLLER_HOST, configs, _start_controller)
        self.brokers = [self._make_broker(node_id) for node_id in range(1, self.plan.broker_count + 1)]

    def _make_broker(self, node_id: int) -> Machine:
        host = self.host_of(node_id)
        configs = {**BROKER_CONFIGS, "listeners": f"PLAINTEXT://{host}:9092"}
        configs["min.insync.replicas"] = str(self.plan.min_in_sync)
        configs["transaction.state.log.min.isr"] = str(self.plan.min_in_sync)
        if self.plan.flushes_each:
            configs["log.flush.interval.messages"] = "1"
        return Machine(self, node_id, host, configs, _start_broker)

    # ----------------------------------------------------------------------------------------------------------- what it knows

    @property
    def broker_ids(self) -> list[int]:
        """Those that there are to be."""
        return [machine.node_id for machine in self.brokers]

    @property
    def machines(self) -> list[Machine]:
        """All."""
        return [self.controller, *self.brokers]

    def _replica(self, node_id: int, place: tuple[str, int]) -> Partition | None:
        core = self.brokers[node_id - 1].core
        return None if core is None else core.partitions.get(*place)

    def leads(self, node_id: int, place: tuple[str, int]) -> bool:
        """Whether a broker takes itself for a partition's leader."""
        replica = self._replica(node_id, place)
        return replica is not None and replica.leader is not None

    def is_superseded(self, node_id: int, place: tuple[str, int]) -> bool:
        """Whether a broker does not lead a partition, or only takes itself for its leader: there is a newer epoch."""
        mine = self._replica(node_id, place)
        if mine is None or mine.leader is None:
            return True
        replicas = [self._replica(other, place) for other in self.broker_ids]
        newest = max(replica.leader_epoch for replica in replicas if replica is not None)
        return mine.leader_epoch < max(newest, self.witness.newest_epoch(mine))

    def offsets_place(self, group: str) -> tuple[str, int]:
        """The partition that a group's offsets are in."""
        return CONSUMER_OFFSETS_TOPIC, partition_for(group, _OFFSETS_PARTITIONS)

    def host_of(self, node_id: int) -> str:
        """Where a broker is."""
        return f"b{node_id}"

    def complain(self, error: Exception) -> None:
        """Something was found; the history ends with the first."""
        if self._complaint is None:
            self._complaint = error

    # -------------------------------------------------------------------------------------------------------------- its course

    def later(self, delay_ms: float, action: Callable[[], Any]) -> Handle:
        """Do something then, as nobody."""
        return self.loop.at_ms(self.loop.now_ms + delay_ms, action)

    def run(self, duration_ms: float, is_over: Callable[[], bool] | None = None) -> bool:
        """Let time pass, until ``is_over`` if that is earlier. Raises what was found."""
        end_ms = self.loop.now_ms + duration_ms
        while self.loop.now_ms < end_ms:
            self.loop.run_until(lambda: self._complaint is not None, min(self.loop.now_ms + _LOOK_MS, end_ms))
            self.look()
            if is_over is not None and is_over():
                return True
        return False

    def look(self) -> None:
        """Raise what was found."""
        if self._complaint is not None:
            raise self._complaint
        server = self.controller.server
        self.witness.look(self.brokers, None if server is None else server.node.controller.image)

    def may_end(self, machine: Machine, *, loses: bool) -> bool:
        """Whether a broker's process may end without warning, its disk losing something perhaps.

        The controller takes every such end for a loss. Two at a time are more than min.insync.replicas promises to bear: if
        nothing is left in sync, the last leader leads again with what it has. So one of the two must not have lost anything.
        """
        for node_id in list(self._tainted):
            if self.brokers[node_id - 1].is_serving and self._is_in_sync(self.brokers[node_id - 1]):
                del self._tainted[node_id]
        loses = loses and not self.plan.flushes_each
        others = [has_lost for node_id, has_lost in self._tainted.items() if node_id != machine.node_id]
        if others and (loses or any(others)):
            self.counts["ends that would be too much"] += 1
            return False
        self._tainted[machine.node_id] = loses or self._tainted.get(machine.node_id, False)
        return True

    def _is_in_sync(self, machine: Machine) -> bool:
        """Whether it has all that its replicas are to have, by what all brokers know that run."""
        cores = [other.core for other in self.brokers if other.core is not None]
        if len(cores) < len(self.brokers):
            return False
        for core in cores:
            for topic in core.controller.image.topics.values():
                for record in topic.partitions.values():
                    if machine.node_id in record.replicas and machine.node_id not in record.isr:
                        return False
        registered = {core.controller.image.kept.brokers[machine.node_id].broker_epoch for core in cores}
        own = None if machine.core is None else member_of(machine.core).lifecycle.broker_epoch
        return registered == {own}

    def wants_more(self, client: Client) -> bool:
        """Whether a client has something to do: one last thing when all is well again."""
        if self.is_in_trouble:
            return True
        is_last = client not in self._had_last
        self._had_last.add(client)
        return is_last

    def add(self, client: Client) -> None:
        """Let a client work."""
        self.clients.append(client)
        client.begin(client.work())  # type: ignore[attr-defined]

    def begin_clients(self) -> None:
        """Those of the plan."""
        plan = self.plan
        for number in range(plan.idempotent_producers):
            self.add(IdempotentProducer(self, f"producer{number}"))
        for number in range(plan.transactional_ids):
            self.begin_transactions(f"tx{number}")
        for number in range(plan.committers):
            kind = Member if plan.has_members else Committer
            self.add(kind(self, f"committer{number}", f"group{number}"))
        if plan.has_careless:
            self.add(CarelessProducer(self, "careless"))
        self.add(Reader(self, "reader", is_committed=True))
        self.add(Reader(self, "looker", is_committed=False))

    def begin_transactions(self, transactional_id: str) -> None:
        """A process of a transactional id, one more."""
        number = sum(isinstance(each, TransactionalProducer) for each in self.clients)
        adds = self.rng.random() < 0.5
        kind = HurriedProducer if self.plan.race == HURRIED else TransactionalProducer
        self.add(kind(self, f"{transactional_id}#{number}", transactional_id, adds=adds))

    def close(self) -> None:
        """Leave nothing that runs."""
        for client in self.clients:
            client.kill()
        for machine in self.machines:
            machine.kill()
        self.loop.run_until(lambda: False, self.loop.now_ms + 1)
        self.loop.close()
