"""What goes wrong, and for how long: one fault after the other, several at a time.

What is acknowledged is on two machines at least, and two losses at a time may take both: see ``World.may_end``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.message_types.elect_leaders import ElectLeadersRequest
from tests.campaigns.cluster_simulation.client import Client
from tests.campaigns.cluster_simulation.plan import ADMIN_ACTS, BROKER_FAULTS, CLIENT_FAULTS, CONTROLLER_FAULTS, HURRIED
from tests.campaigns.cluster_simulation.producers import IdempotentProducer
from tests.campaigns.cluster_simulation.races import Races
from tests.campaigns.cluster_simulation.transactions import TransactionalProducer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.campaigns.cluster_simulation.machine import Machine
    from tests.campaigns.cluster_simulation.world import World

_WEIGHTS = {**BROKER_FAULTS, **CONTROLLER_FAULTS, **CLIENT_FAULTS, **ADMIN_ACTS}
# How long a proposal is looked for: so many times, with so long between.
_LOOKS = 300
_LOOK_MS = 4
_REASSIGN: Api[Any, Any] = Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
_ELECT: Api[Any, Any] = Api(ApiKey.ELECT_LEADERS, 1)


class Faults:
    """Of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        self._is_over = False
        self._admin = Client(world, "admin")
        self._races = Races(world, self._start, lambda: self._is_over)
        self._acts: dict[str, Callable[[], None]] = {
            "kill a broker": lambda: self._kill(self._broker()),
            "lose a broker's power": self._lose_power,
            "stop a broker": self._stop,
            "pause a broker": lambda: self._pause(self._broker()),
            "isolate a broker": lambda: self._cut(self._everybody(), self._everybody()),
            "cut two brokers off from each other": self._cut_two,
            "cut a broker off from the controller": self._cut_from_controller,
            "let a broker hear nothing": lambda: self._cut((), self._everybody()),
            "let nobody hear a broker": lambda: self._cut(self._everybody(), ()),
            "hold back a proposal of in-sync replicas": lambda: self._hold_proposal(_LOOKS),
            "slow a broker's network": self._slow_network,
            "slow a broker's disk": self._slow_disk,
            "sever connections": self._sever,
            "kill the controller": lambda: self._kill(world.controller),
            "lose the controller's power": self._lose_controllers_power,
            "pause the controller": lambda: self._pause(world.controller),
            "kill a client": self._kill_client,
            "pause a client": self._pause_client,
            "cut a client off from a broker": self._cut_client,
            "reassign a partition": self._reassign,
            "elect preferred leaders": self._elect,
        }

    def begin(self) -> None:
        """Let things go wrong from now on."""
        race = self._world.plan.race
        if race and race != HURRIED:
            self._races.begin(race)
        if self._world.plan.faults:
            self._next()

    def end(self) -> None:
        """Mend all."""
        self._is_over = True
        world = self._world
        world.network.mend_all()
        for machine in world.machines:
            machine.slow_down(is_slow=False)
            machine.resume()
            if not machine.is_stopping:
                self._start(machine)
        for client in world.clients:
            if not client.process.is_dead:
                client.resume()

    def _next(self) -> None:
        if self._is_over:
            return
        faults = self._world.plan.faults
        [name] = self._rng.choices(faults, [_WEIGHTS[each] for each in faults])
        self._world.counts[name] += 1
        self._world.note("fault: %s", name)
        self._acts[name]()
        self._world.later(self._rng.uniform(0.3, 1.7) * self._world.plan.fault_interval_ms, self._next)

    def _broker(self) -> Machine:
        """One, rather a leader."""
        leading = [each for each in self._world.brokers if each.core is not None and any(p.leader for p in each.core.partitions)]
        return (
            self._rng.choice(leading or self._world.brokers)
            if self._rng.random() < 0.5
            else self._rng.choice(self._world.brokers)
        )

    def _everybody(self) -> list[str]:
        return [machine.host for machine in self._world.machines]

    def _duration_ms(self) -> float:
        return self._rng.choice((100, 500, 1_000, 2_500, 4_000)) * self._rng.uniform(0.5, 1.5)

    # ----------------------------------------------------------------------------------------------------------------- machines

    def _kill(self, machine: Machine) -> None:
        if machine is not self._world.controller and not self._world.may_end(machine, loses=False):
            return
        machine.kill()
        self._world.later(self._rng.choice((10, 100, 1_000, 3_000)), lambda: self._start(machine))

    def _start(self, machine: Machine) -> None:
        if machine.is_up:
            return
        was_dark = machine.host in self._world.network.dark
        machine.start()
        if was_dark:
            # Whoever still has a connection to it is told that there is none, if it is lucky.
            for transport in self._world.network.reset(machine.host):
                if self._rng.random() < 0.8:
                    self._world.network.sever(transport)
            self._world.network.wake()

    def _lose_power(self) -> None:
        world = self._world
        machine = self._broker()
        if not machine.is_up or not world.may_end(machine, loses=True):
            return
        machine.lose_power()
        world.later(self._rng.choice((100, 1_000, 3_000)), lambda: self._start(machine))

    def _lose_controllers_power(self) -> None:
        controller = self._world.controller
        if controller.is_up:
            controller.lose_power()
            self._world.later(self._rng.choice((100, 1_000, 3_000)), lambda: self._start(controller))

    def _stop(self) -> None:
        machine = self._broker()
        if machine.is_serving:
            machine.stop()
            self._start_when_down(machine)

    def _start_when_down(self, machine: Machine) -> None:
        if machine.is_up:
            self._world.later(200, lambda: self._start_when_down(machine))
        else:
            self._world.later(self._rng.choice((10, 500, 2_000)), lambda: self._start(machine))

    def _pause(self, machine: Machine) -> None:
        machine.pause()
        process = machine.process
        self._world.later(self._duration_ms(), lambda: machine.resume() if machine.process is process else None)

    def _slow_disk(self) -> None:
        machine = self._broker()
        machine.slow_down(is_slow=True)
        self._world.later(self._duration_ms(), lambda: machine.slow_down(is_slow=False))

    # ------------------------------------------------------------------------------------------------------------------ network

    def _cut(self, towards: Any, back: Any, machine: Machine | None = None) -> None:
        """Let nothing through from a broker ``towards`` these hosts, nor ``back`` from those."""
        host = (machine or self._broker()).host
        pairs = [(host, other) for other in towards if other != host] + [(other, host) for other in back if other != host]
        self._world.note("cut %s", pairs)
        for pair in pairs:
            self._world.network.cut(*pair)
        self._world.later(self._duration_ms(), partial(self._mend, pairs))

    def _mend(self, pairs: list[tuple[str, str]]) -> None:
        if not self._is_over:
            self._world.note("mend %s", pairs)
            for pair in pairs:
                self._world.network.mend(*pair)

    def _cut_two(self) -> None:
        machine = self._broker()
        other = self._rng.choice([each for each in self._world.brokers if each is not machine])
        self._cut([other.host], [other.host], machine)

    def _cut_from_controller(self) -> None:
        host = self._world.controller.host
        self._cut([host], [host])

    def _hold_proposal(self, looks: int) -> None:
        """Wait for a leader that proposes other in-sync replicas, and let the controller hear nothing of it for a while."""
        if self._is_over or not looks:
            return
        controller = self._world.controller.host
        for machine in self._world.brokers:
            for partition in () if machine.core is None else machine.core.partitions:
                leader = partition.leader
                if leader is not None and leader.followers is not None and leader.followers.isr.proposed is not None:
                    self._world.counts["proposals held back"] += 1
                    pairs = [(machine.host, controller)]
                    self._world.note("hold back a proposal of %s", machine.name)
                    self._world.network.cut(*pairs[0])
                    self._world.later(self._rng.uniform(200, 1_400), partial(self._mend, pairs))
                    return
        self._world.later(_LOOK_MS, lambda: self._hold_proposal(looks - 1))

    def _slow_network(self) -> None:
        network = self._world.network
        host = self._broker().host
        network.slow[host] = self._rng.choice((20.0, 150.0, 600.0))
        self._world.later(self._duration_ms(), lambda: network.slow.pop(host, None))

    def _cut_client(self) -> None:
        client = self._rng.choice(self._world.clients)
        both = [client.process.host]
        self._cut(both if self._rng.random() < 0.7 else (), both)

    def _sever(self) -> None:
        transports = self._world.network.transports
        for transport in self._rng.sample(transports, min(len(transports), self._rng.choice((1, 3, 10)))):
            self._world.network.sever(transport)

    # ------------------------------------------------------------------------------------------------------------------ clients

    def _client(self) -> Client | None:
        able = [
            each
            for each in self._world.clients
            if isinstance(each, (IdempotentProducer, TransactionalProducer)) and not each.process.is_dead
        ]
        return self._rng.choice(able) if able else None

    def _kill_client(self) -> None:
        client = self._client()
        if client is None:
            return
        self._world.note("%s is killed", client.name)
        client.kill()
        if isinstance(client, TransactionalProducer):
            transactional_id = client.transactional_id
            self._world.later(self._rng.choice((10, 500)), lambda: self._world.begin_transactions(transactional_id))
        else:
            number = len(self._world.clients)
            self._world.later(10, lambda: self._world.add(IdempotentProducer(self._world, f"producer{number}")))

    def _pause_client(self) -> None:
        client = self._client()
        if client is None:
            return
        client.pause()
        if isinstance(client, TransactionalProducer) and self._rng.random() < 0.5:
            # Another one takes it for dead.
            transactional_id = client.transactional_id
            self._world.later(100, lambda: self._world.begin_transactions(transactional_id))
        self._world.later(self._duration_ms(), lambda: None if client.process.is_dead else client.resume())

    # ----------------------------------------------------------------------------------------------------------- administration

    def _reassign(self) -> None:
        replicas = self._rng.sample(self._world.broker_ids, 3)
        index = self._rng.randrange(self._world.plan.partition_count)
        partition = ReassignablePartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=1_000, topics=[ReassignableTopic(name=self._world.topic, partitions=[partition])]
        )
        self._world.note("reassign %s to %s", index, replicas)
        self._admin.begin(self._admin.ask_any(_REASSIGN, request))

    def _elect(self) -> None:
        self._admin.begin(
            self._admin.ask_any(_ELECT, ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1_000))
        )
