"""What goes wrong in a history, while it is in trouble: each kind again and again, at random times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.groups.logs import InjectedFault
from tests.campaigns.simulation.groups.plan import LONGEST_HOLD_MS, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.groups.world import World

_APPEND_ERRORS = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class Faults:
    """Those that the world's plan has."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        self._kinds: dict[str, Callable[[], None]] = {
            "crash": self._crash,
            "stop": self._stop,
            "move": self._move,
            "hold the high watermark": self._hold,
            "fail an append": lambda: self._fail_append(is_written=False),
            "write an append and fail": lambda: self._fail_append(is_written=True),
            "lose the tail": self._crash_and_lose_tail,
            "fail a read": self._fail_read,
            "compact": self._compact,
            "change group.max.size": self._change_max_size,
            "delete a group": lambda: world.offsets.delete(self._rng.choice(world.plan.groups)),
            "commit as an administrator": lambda: world.offsets.commit_as_administrator(self._rng.choice(world.plan.groups)),
            "fetch as an administrator": lambda: world.offsets.fetch_all(self._rng.choice(world.plan.groups)),
            "describe a group": lambda: world.administrator.describe(self._rng.choice(world.plan.groups)),
            "list groups": self._list_groups,
            "die": self._die,
            "stall": self._stall,
            "leave": self._leave,
            "lose the connection": self._lose_connection,
            "change protocols": self._change_protocols,
            "be doubled": self._double,
            "create a topic": self._create_topic,
            "grow a topic": self._grow_topic,
            "delete a topic": lambda: self._delete_topic(is_made_anew=False),
            "make a topic anew": lambda: self._delete_topic(is_made_anew=True),
            "roll over": self._roll_over,
            "change its subscription": self._change_subscription,
        }

    def begin(self) -> None:
        """From now on."""
        plan = self._world.plan
        for kind, mean_ms in (*plan.broker_faults.items(), *plan.member_faults.items()):
            self._schedule(kind, mean_ms)
        self._world.later(700, self._look_after)

    def _schedule(self, kind: str, mean_ms: float) -> None:
        def happen() -> None:
            if self._world.is_in_trouble:
                self._world.counts[kind] += 1
                self._kinds[kind]()
                self._schedule(kind, mean_ms)

        self._world.later(self._rng.expovariate(1 / mean_ms), happen)

    def _look_after(self) -> None:
        """What was not told is told, and what could not be read is read again, until all has come to rest."""
        if self._world.is_at_rest:
            return
        self._world.later(700, self._look_after)
        for log in self._world.logs.logs:
            if not log.is_held_back and log.high_watermark < log.log_end_offset:
                log.release()
        if self._world.broker.is_up:
            self._world.broker.load_failed_ones()

    # ----------------------------------------------------------------------------------------------------- the broker

    def _crash(self) -> None:
        if self._world.broker.is_up:
            self._world.kill_broker()
            self._world.later(self._rng.choice((0, 100, 1_000, 8_000)), self._world.start_broker)

    def _stop(self) -> None:
        if self._world.broker.is_up:
            self._world.note("the broker stops")
            self._world.broker.runtime.close()
            self._crash()

    def _crash_and_lose_tail(self) -> None:
        self._crash()
        if not self._world.broker.is_up:
            for log in self._world.logs.logs:
                log.lose_tail(self._rng.randint(0, 1))

    def _move(self) -> None:
        world = self._world
        if not world.broker.is_up:
            return
        partition = self._rng.randrange(world.plan.shards)
        if self._rng.random() < 0.4:
            world.note("shard %s is loaded at a higher epoch", partition)
            world.broker.load(partition)
            return
        world.note("shard %s is unloaded", partition)
        world.broker.unload(partition)

        def load() -> None:
            if world.broker.is_up:
                world.note("shard %s is loaded", partition)
                world.broker.load(partition)

        world.later(self._rng.choice((0, 200, 2_000)), load)

    def _hold(self) -> None:
        log = self._rng.choice(self._world.logs.logs)
        if not log.is_held_back:
            log.is_held_back = True
            partition = self._world.logs.logs.index(log)
            self._world.note("the high watermark of %s is held", partition)

            def release() -> None:
                self._world.note("the high watermark of %s is released", partition)
                log.release()

            self._world.later(self._rng.randint(1, LONGEST_HOLD_MS - 200), release)

    def _fail_append(self, *, is_written: bool) -> None:
        log = self._rng.choice(self._world.logs.logs)
        for _ in range(self._rng.choice((1, 1, 2))):
            log.failures.append((InjectedFault(self._rng.choice(_APPEND_ERRORS)), is_written))

    def _list_groups(self) -> None:
        self._world.administrator.list()

    def _fail_read(self) -> None:
        self._rng.choice(self._world.logs.logs).read_failures.append(InjectedFault(ErrorCode.KAFKA_STORAGE_ERROR))

    def _compact(self) -> None:
        for log in self._world.logs.logs:
            log.compact()

    def _change_max_size(self) -> None:
        broker = self._world.broker
        broker.config = replace(broker.config, group_max_size=self._rng.choice((2, 4, UNLIMITED)))

    # ----------------------------------------------------------------------------------------------------- the members

    def _some(self, what: str) -> Any:
        """A member that runs, of which that is told; None where there is none."""
        alive = self._world.alive()
        if not alive:
            return None
        member = self._rng.choice(alive)
        self._world.note(f"%s {what}", str(member))
        return member

    def _die(self) -> None:
        if (member := self._some("dies")) is not None:
            member.die()
            self._world.restart_later(member)

    def _stall(self) -> None:
        if (member := self._some("stalls")) is not None:
            duration_ms = self._rng.choice((1_000, 5_000, 12_000))
            self._world.note("for %s ms", duration_ms)
            member.stall(duration_ms)

    def _leave(self) -> None:
        if (member := self._some("leaves")) is not None:
            member.leave(for_good=self._rng.random() < 0.3)

    def _lose_connection(self) -> None:
        if (member := self._some("loses its connection")) is not None:
            member.lose_connection()

    def _change_protocols(self) -> None:
        if (member := self._some("starts anew, with other protocols")) is not None:
            member.restart_with(member.protocols[::-1])

    def _double(self) -> None:
        alive = [member for member in self._world.alive() if member.instance_id is not None]
        if alive:
            member = self._rng.choice(alive)
            self._world.start_member(self._world.make_member(member.group, member.client_id, member.instance_id))

    # ------------------------------------------------------------------------------------------- topics and protocols

    def _topic(self, *, is_there: bool) -> str | None:
        topics = self._world.topics
        names = [name for group in self._world.plan.groups for name in group.topics if (name in topics.ids) == is_there]
        return self._rng.choice(names) if names else None

    def _create_topic(self) -> None:
        name = self._topic(is_there=False)
        if name is not None:
            self._world.note("%s is created", name)
            self._world.topics.create(name, self._rng.randint(1, 4))

    def _grow_topic(self) -> None:
        name = self._topic(is_there=True)
        if name is not None:
            self._world.note("%s grows", name)
            self._world.topics.grow(name, self._rng)

    def _delete_topic(self, *, is_made_anew: bool) -> None:
        name = self._topic(is_there=True)
        if name is None:
            return
        world = self._world
        world.note("%s is %s", name, "made anew" if is_made_anew else "deleted")
        world.offsets.forget_topic(name)
        world.topics.delete([name])
        if is_made_anew:
            world.topics.create(name, self._rng.randint(1, 4))

    def _roll_over(self) -> None:
        """A process is replaced by one of the other protocol. A static member of the classic one does not leave."""
        world = self._world
        process = self._some("rolls over")
        if process is None:
            return
        successor = world.successor(process, speaks_consumer=not process.speaks_consumer)
        if process.instance_id is not None and not process.speaks_consumer:
            process.die()
        else:
            process.leave(for_good=True)
        world.later(self._rng.choice((0, 500, 2_000)), lambda: world.start_member(successor) if world.is_in_trouble else None)

    def _change_subscription(self) -> None:
        alive = [each for each in self._world.alive() if each.speaks_consumer or each.instance_id is None]
        if alive:
            process = self._rng.choice(alive)
            subscription = self._world.draw_subscription(process.group)
            self._world.note("%s subscribes to %s", str(process), subscription)
            process.subscribe(subscription)
