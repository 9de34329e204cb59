"""The faults of a history in trouble: each kind again and again, at random times."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.groups.logs import InjectedFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.shares.world import World

_APPEND_ERRORS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR)


class Faults:
    """The faults in the world's plan."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        kinds: dict[str, Callable[[], None]] = {
            "move a leader": self._move_leader,
            "crash a broker": self._crash_broker,
            "move a shard": self._move_shard,
            "crash the coordinator": self._crash_coordinator,
            "fail an append": partial(self._fail_append, is_written=False),
            "write an append and fail": partial(self._fail_append, is_written=True),
            "hold the high watermark": self._hold,
            "delete records": self._delete_records,
            "die": self._die,
            "stall": self._stall,
            "cut a connection": self._cut,
        }
        for kind, mean_ms in world.plan.faults.items():
            self._schedule(kind, kinds[kind], mean_ms)
        world.later(700, self._look_after)

    def _schedule(self, kind: str, happens: Callable[[], None], mean_ms: float) -> None:
        def happen() -> None:
            if self._world.is_in_trouble:
                self._world.counts[kind] += 1
                self._world.note("%s", kind)
                happens()
                self._schedule(kind, happens, mean_ms)

        self._world.later(self._rng.expovariate(1 / mean_ms), happen)

    def _look_after(self) -> None:
        self._world.coordinator.look_after()
        self._world.later(700, self._look_after)

    def _move_leader(self) -> None:
        world = self._world
        index = self._rng.randrange(world.plan.partitions)
        up = [broker.node_id for broker in world.up()]
        others = [node_id for node_id in up if node_id != world.leaders[index][0]]
        if up:
            world.elect(index, self._rng.choice(others or up))

    def _crash_broker(self) -> None:
        world = self._world
        broker = self._rng.choice(world.brokers)
        if broker.is_up:
            broker.crash()
            world.later(self._rng.choice((0, 300, 3_000)), lambda: world.start_broker(broker.node_id))

    def _move_shard(self) -> None:
        coordinator, partition = self._world.coordinator, self._rng.randrange(self._world.plan.shards)
        if not coordinator.is_up:
            return
        if self._rng.random() < 0.4:
            coordinator.load(partition)
            return
        coordinator.runtime.unload(partition)
        self._world.later(self._rng.choice((0, 200, 2_000)), lambda: coordinator.load(partition) if coordinator.is_up else None)

    def _crash_coordinator(self) -> None:
        coordinator = self._world.coordinator
        if coordinator.is_up:
            coordinator.crash()
            self._world.later(self._rng.choice((0, 100, 1_500)), coordinator.start)

    def _fail_append(self, *, is_written: bool) -> None:
        log = self._rng.choice(self._world.coordinator.logs.logs)
        for _ in range(self._rng.choice((1, 1, 2))):
            log.failures.append((InjectedFault(self._rng.choice(_APPEND_ERRORS)), is_written))

    def _hold(self) -> None:
        log = self._rng.choice(self._world.coordinator.logs.logs)
        if not log.is_held_back:
            log.is_held_back = True
            self._world.later(self._rng.randint(1, 7_000), log.release)

    def _delete_records(self) -> None:
        world, index = self._world, self._rng.randrange(self._world.plan.partitions)
        leader = world.leader_of(index)
        if leader is not None:
            replica, log = leader.partitions[index], world.topic[index].log
            low, high = log.log_start_offset, replica.last_stable_offset
            log.delete_records_before(min(low + self._rng.choice((1, 5, 30)), high))

    def _die(self) -> None:
        alive = self._world.alive()
        if alive:
            self._rng.choice(alive).die()
            self._world.later(self._rng.choice((0, 500, 4_000)), self._world.start_member)

    def _stall(self) -> None:
        for member in self._world.alive()[:1]:
            member.stalled_until_ms = self._world.clock.monotonic_ms() + self._rng.choice((300, 2_500, 9_000))

    def _cut(self) -> None:
        alive = self._world.alive()
        if alive:
            self._rng.choice(self._rng.choice(alive).connections).cut()
