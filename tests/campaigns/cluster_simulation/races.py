"""Races for the in-sync replicas that chance alone hardly ever comes to.

    restarted   the replica that is proposed loses its power, and what it had not synced, and registers anew (KIP-903)
    fenced      another replica in sync is fenced and unfenced, while the leader goes on without it (KIP-497)
    eligible    a replica that is eligible to lead loses its power, comes back, and then the leader is missing (KIP-966)
    few         of three replicas one is left, which coordinates a transactional id, and is asked for a producer id

In the first two the leader's proposal reaches the controller only then, and must be refused: it names a replica that has not all
that is replicated by now. In the third nobody may lead. In the last the coordinator refuses at once. A race that does not come
about does no harm.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import partition_for
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest
from tests.campaigns.cluster_simulation.client import Client
from tests.campaigns.cluster_simulation.producers import INIT_PRODUCER_ID
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.replica.in_sync_replicas import InSyncReplicas
    from tests.campaigns.cluster_simulation.machine import Machine
    from tests.campaigns.cluster_simulation.world import World

RACES = ("restarted", "fenced")
ELIGIBLE = "eligible"
FEW = "few"
AT_ONCE = "a coordinator with too few replicas in sync refuses at once"
# How often it is looked what has come about, and for how long.
_LOOK_MS = 3
_PATIENCE_MS = 4_000
# Long enough for a session to end.
_DEAD_MS = 2_400
# Nearly a session.
_SILENT_MS = 1_250
# As the world's brokers have it.
TRANSACTION_PARTITIONS = 2
_AT_ONCE_MS = 1_000
# Shorter than a session: the leader is not fenced.
_HELD_MS = 1_300
_CUT_OFF_MS = 2_500

Ways = list[tuple[str, str]]


class Asker(Client):
    """Asks a coordinator for a producer id as long as it is alone, as ``led_alone`` tells by a partition."""

    def __init__(self, world: World, node_id: int, led_alone: Callable[[], int | None]) -> None:
        super().__init__(world, "asker")
        self._node_id = node_id
        self._led_alone = led_alone

    async def work(self) -> None:
        """Twice for one transactional id. Raises Violation."""
        led = self._led_alone()
        transactional_id = next(name for name in map(str, count()) if partition_for(name, TRANSACTION_PARTITIONS) == led)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1_000)
        for _ in range(2):
            response = await self.ask(self._node_id, INIT_PRODUCER_ID, request, _AT_ONCE_MS)
            if self._led_alone() != led:
                return
            if response is None or response.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
                told = "nothing" if response is None else "CONCURRENT_TRANSACTIONS"
                raise Violation(AT_ONCE, f"broker {self._node_id} answers {told} for {transactional_id!r}")
            self.world.counts[f"races: few, {ErrorCode(response.error_code).name}"] += 1


class Races:
    """Of one world. ``start`` starts a machine again, ``is_over`` tells whether all is mended."""

    def __init__(self, world: World, start: Callable[[Machine], None], is_over: Callable[[], bool]) -> None:
        self._world = world
        self._start = start
        self._is_over = is_over
        self._hear_again: Callable[[], None] = lambda: None

    def begin(self, race: str) -> None:
        """Let a replica fall out of the in-sync set, and come back."""
        world = self._world
        if race == ELIGIBLE:
            self._pause_one()
            return
        if race == FEW:
            self._await(self._has_coordinators, self._leave_one)
            return
        joining = world.rng.choice(world.brokers)
        if not joining.is_serving or not world.may_end(joining, loses=False):
            return
        world.note("race: %s, with %s", race, joining.name)
        joining.kill()
        world.later(_DEAD_MS, partial(self._come_back_silently if race == "restarted" else self._pause_another, joining))

    # ---------------------------------------------------------------------------------------------------------------- restarted

    def _come_back_silently(self, joining: Machine) -> None:
        """It registers, catches up with nobody for a while, and is not heard by the controller any more."""
        world = self._world
        ways = self._cut([other.host for other in world.brokers if other is not joining], joining.host)
        self._start(joining)

        def fall_silent() -> None:
            world.network.cut(joining.host, world.controller.host)
            world.later(_SILENT_MS, catch_up)

        def catch_up() -> None:
            self._mend(ways)
            self._await(lambda: self._proposing(joining) is not None, partial(self._restart, joining))
            world.later(_CUT_OFF_MS, hear_again)

        hear_again = self._once(lambda: world.network.mend(joining.host, world.controller.host))
        self._hear_again = hear_again
        self._await(lambda: self._epoch(joining) is not None, fall_silent)

    def _restart(self, joining: Machine) -> None:
        """Let the proposed replica lose something, and register before the proposal comes."""
        leader = self._proposing(joining)
        if leader is None or not self._world.may_end(joining, loses=True):
            return
        release = self._hold("restarted", leader)
        ways = self._cut([leader.host], joining.host)
        self._world.later(_CUT_OFF_MS, lambda: self._mend(ways))
        before = self._epoch(joining)
        joining.lose_power()
        self._start(joining)
        self._hear_again()
        self._await(lambda: self._epoch(joining) not in (None, before), release)

    # ------------------------------------------------------------------------------------------------------------------- fenced

    def _pause_another(self, joining: Machine) -> None:
        world = self._world
        pausing = world.rng.choice([each for each in world.brokers if each is not joining])
        pausing.pause()
        world.later(_PATIENCE_MS, lambda: self._resume(pausing))
        world.later(world.rng.uniform(200, 700), lambda: None if self._is_over() else self._start(joining))
        self._await(lambda: self._proposing(joining) is not None, partial(self._fence, joining, pausing))

    def _fence(self, joining: Machine, pausing: Machine) -> None:
        """Let the paused replica be fenced and unfenced before the proposal comes, and catch up with nothing."""
        leader = self._proposing(joining)
        if leader is None or leader is pausing:
            return
        release = self._hold("fenced", leader)
        ways = self._cut([leader.host], pausing.host)
        self._world.later(_CUT_OFF_MS, lambda: self._mend(ways))

        def come_back() -> None:
            self._resume(pausing)
            self._await(lambda: self._epoch(pausing) is not None, release)

        self._await(lambda: self._epoch(pausing) is None, come_back)

    # ----------------------------------------------------------------------------------------------------------------- eligible

    def _pause_one(self) -> None:
        """Of three replicas one is missing, so that the second is eligible when it is missing, too."""
        world = self._world
        missing, losing, leader = world.rng.sample(world.brokers, 3)
        world.note("race: eligible, with %s", losing.name)
        missing.pause()
        world.later(2 * _PATIENCE_MS, lambda: self._resume(missing))
        self._await(lambda: self._epoch(missing) is None, lambda: world.later(300, partial(self._lose, losing, leader)))

    def _lose(self, losing: Machine, leader: Machine) -> None:
        world = self._world
        if self._is_over() or not losing.is_serving or not world.may_end(losing, loses=True):
            return
        ways = self._cut([leader.host], losing.host)
        world.later(_DEAD_MS + _CUT_OFF_MS, lambda: self._mend(ways))
        losing.lose_power()
        world.later(_DEAD_MS, lambda: None if self._is_over() else self._come_back(losing, leader))

    def _come_back(self, losing: Machine, leader: Machine) -> None:
        world = self._world
        self._start(losing)
        world.counts["races: eligible"] += 1
        leader.pause()
        world.later(_CUT_OFF_MS, lambda: self._resume(leader))

    # ---------------------------------------------------------------------------------------------------------------------- few

    def _has_coordinators(self) -> bool:
        """Return True if all brokers have replicas of the transactions' topic."""
        return all(
            machine.core is not None and machine.core.partitions.get(TRANSACTION_STATE_TOPIC, 0)
            for machine in self._world.brokers
        )

    def _leave_one(self) -> None:
        world = self._world
        left, *missing = world.rng.sample(world.brokers, 3)
        world.note("race: few, with %s", left.name)
        for machine in missing:
            machine.pause()
            world.later(2 * _PATIENCE_MS, partial(self._resume, machine))
        self._await(
            lambda: self._led_alone(left) is not None,
            lambda: world.add(Asker(world, left.node_id, lambda: self._led_alone(left))),
        )

    def _led_alone(self, machine: Machine) -> int | None:
        """A partition of the transactions' topic that the broker leads as the only one in sync."""
        for partition in () if machine.core is None else machine.core.partitions:
            followers = None if partition.leader is None else partition.leader.followers
            if partition.topic == TRANSACTION_STATE_TOPIC and followers is not None and len(followers.isr.committed) == 1:
                return partition.index
        return None

    # -------------------------------------------------------------------------------------------------------------------- parts

    def _hold(self, race: str, leader: Machine) -> Callable[[], None]:
        """Let the controller hear nothing of the leader, until what is returned is called, or its session is nearly over."""
        world = self._world
        world.counts[f"races: {race}"] += 1
        world.note("race: a proposal of %s is held", leader.name)
        way = (leader.host, world.controller.host)
        world.network.cut(*way)
        release = self._once(lambda: world.network.mend(*way))
        world.later(_HELD_MS, release)
        return release

    def _await(self, condition: Callable[[], bool], then: Callable[[], None], left_ms: float = _PATIENCE_MS) -> None:
        """Do ``then`` as soon as ``condition`` holds, if that is in time."""
        if self._is_over() or left_ms <= 0:
            return
        if condition():
            then()
        else:
            self._world.later(_LOOK_MS, lambda: self._await(condition, then, left_ms - _LOOK_MS))

    def _proposing(self, joining: Machine) -> Machine | None:
        """The leader that proposes the replica."""
        for machine in self._world.brokers:
            for partition in () if machine.core is None else machine.core.partitions:
                followers: InSyncReplicas | None = None if partition.leader is None else partition.leader.followers
                if followers is None or followers.isr.proposed is None:
                    continue
                if joining.node_id in followers.isr.proposed - followers.isr.committed:
                    return machine
        return None

    def _once(self, action: Callable[[], None]) -> Callable[[], None]:
        """``action``, unless it was done or all is mended."""
        left = [action]

        def do() -> None:
            if left and not self._is_over():
                left.pop()()

        return do

    def _cut(self, hosts: Sequence[str], host: str) -> Ways:
        ways = [way for other in hosts for way in ((other, host), (host, other))]
        for way in ways:
            self._world.network.cut(*way)
        return ways

    def _mend(self, ways: Ways) -> None:
        if not self._is_over():
            for way in ways:
                self._world.network.mend(*way)

    def _resume(self, machine: Machine) -> None:
        if not self._is_over():
            machine.resume()

    def _epoch(self, machine: Machine) -> int | None:
        """The broker's epoch by the controller, None while it is fenced or nobody knows."""
        server = self._world.controller.server
        broker = None if server is None else server.node.controller.image.kept.brokers.get(machine.node_id)
        return None if broker is None or broker.fenced else broker.broker_epoch
