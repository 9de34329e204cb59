"""What goes wrong in a history, while it is in trouble: each kind of its plan again and again, at random times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.transactions import requests
from tests.campaigns.simulation.transactions.disk import Trap
from tests.campaigns.simulation.transactions.fetcher import Administrator
from tests.campaigns.simulation.transactions.plan import LONGEST_HOLD_MS
from tests.campaigns.simulation.transactions.server import COORDINATORS_TOPICS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from odradek.broker.replica.partition import Partition
    from tests.campaigns.simulation.transactions.producer import Process
    from tests.campaigns.simulation.transactions.server import Server
    from tests.campaigns.simulation.transactions.world import World


_FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
# Between the question to the coordinator and its answer they end what was asked about.
_UNVERIFYING = frozenset({"delete a topic", "repeat an old marker"})


def check_refusal(world: World, process: Process, api_key: ApiKey, code: int) -> None:
    """A process is refused for good: somebody newer has to be there. Raises Violation."""
    world.counts[f"ended by {ErrorCode(code).name}"] += 1
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        raise Violation("the broker makes no mistake", f"{api_key.name} of {process} is answered {ErrorCode(code).name}")
    producer_id, epoch = process.identity
    # A batch that comes again after its transaction is asked about as if it began one, and others wait for it, as in Kafka.
    is_plain = not world.plan.repeat_share and "delete a topic" not in world.plan.faults
    if is_plain and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        raise Violation("who sends in order is taken in order", f"{api_key.name} of {process}")
    if api_key is ApiKey.PRODUCE and code == ErrorCode.INVALID_TXN_STATE and world.plan.faults.keys() & _UNVERIFYING:
        # A verification before these says nothing of the present state.
        return
    if code in _FENCED and not world.witness.fates.is_superseded(process.plan.transactional_id, producer_id, epoch):
        latest = world.witness.fates.latest.get(process.plan.transactional_id)
        raise Violation("who is fenced was superseded", f"{api_key.name} of {process}: {ErrorCode(code).name}, at {latest}")


_LOOK_AFTER_MS = 150
_KILLS = (Trap.KILL_BEFORE, Trap.KILL_WITHIN, Trap.KILL_AFTER)
_BUMPING_VERSION = 2


class Faults:
    """Those that the world's plan has."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        self._offline: dict[Partition, Any] = {}
        self._kinds: dict[str, Callable[[Server], None]] = {
            "kill at a moment": self._kill,
            "kill at a write": lambda _: world.disk.arm(self._rng.choice(_KILLS), self._rng.randint(0, 12)),
            "stop": self._stop,
            "look": Administrator(world).look,
            "move a transaction shard": lambda server: self._move(server, COORDINATORS_TOPICS[0]),
            "move a group shard": lambda server: self._move(server, COORDINATORS_TOPICS[1]),
            "fail an append": lambda _: world.disk.arm(Trap.FAIL, self._rng.randint(0, 8)),
            "take a partition offline": self._take_offline,
            "hold a high watermark": self._hold,
            "delete a topic": self._delete_topic,
            "start a zombie": lambda _: self._start_zombie(),
            "flush": lambda server: server.flush(),
            "compact": self._compact,
            "stall a producer": lambda _: self._stall(),
            "kill a producer": lambda _: self._kill_producer(),
            "commit offsets without a transaction": lambda _: self._commit_offsets(),
            "delete a group": lambda _: self._delete_group(),
            "repeat an old marker": lambda _: self._repeat_marker(),
        }

    def begin(self) -> None:
        """From now on."""
        for kind, mean_ms in self._world.plan.faults.items():
            self._schedule(kind, mean_ms)
        self._world.later(_LOOK_AFTER_MS, self._look_after)

    def _schedule(self, kind: str, mean_ms: float) -> None:
        def happen() -> None:
            world = self._world
            if world.is_in_trouble:
                self._schedule(kind, mean_ms)
                if world.server is not None:
                    world.counts[kind] += 1
                    self._kinds[kind](world.server)

        self._world.later(self._rng.expovariate(1 / mean_ms), happen)

    def end(self) -> None:
        """Set right what is wrong."""
        world = self._world
        world.disk.disarm()
        world.start_broker()
        self._bring_online()
        for name in list(world.held):
            self._release(name)
        self._look_after()

    def _look_after(self) -> None:
        """Load again what could not be, and what is led by nobody."""
        world = self._world
        if world.is_in_trouble:
            world.later(_LOOK_AFTER_MS, self._look_after)
        if world.server is None:
            return
        for topic, runtime in world.server.runtimes():
            states = runtime.states()
            for partition in world.server.partitions.of_topic(topic).values():
                state = states.get(partition.index)
                if partition.log is not None and (state is ShardState.FAILED or (state is None and not world.is_in_trouble)):
                    world.server.load(topic, partition.index, at_higher_epoch=False)

    # ----------------------------------------------------------------------------------------------------- the broker

    def _kill(self, _server: Server) -> None:
        self._world.note("the broker is killed")
        self._world.kill_broker()
        self._world.later(self._rng.choice((0, 100, 800)), self._world.start_broker)

    def _stop(self, _server: Server) -> None:
        self._world.stop_broker()
        self._world.later(self._rng.choice((0, 100, 800)), self._world.start_broker)

    def _compact(self, server: Server) -> None:
        self._world.counts["logs compacted"] += server.compact()

    def _move(self, server: Server, topic: str) -> None:
        world = self._world
        index = self._rng.choice(list(server.partitions.of_topic(topic).values())).index
        if self._rng.random() < 0.4:
            world.note("%s-%s is led at a higher epoch", topic, index)
            server.load(topic, index, at_higher_epoch=True)
            return
        world.note("%s-%s is led no longer", topic, index)
        for name, runtime in server.runtimes():
            if name == topic:
                runtime.unload(index)

        def load() -> None:
            if world.server is server:
                world.note("%s-%s is led again", topic, index)
                server.load(topic, index, at_higher_epoch=True)

        world.later(self._rng.choice((0, 100, 600)), load)

    def _take_offline(self, server: Server) -> None:
        world = self._world
        partition = self._rng.choice(list(server.partitions))
        if partition.log is None:
            return
        world.note("%s-%s goes offline", partition.topic, partition.index)
        self._offline[partition] = partition.log
        partition.log = None
        partition.offline_reason = "a fault"
        world.later(self._rng.choice((50, 300, 1_000)), lambda: self._bring_back(partition))

    def _bring_back(self, partition: Partition) -> None:
        world = self._world
        log = self._offline.pop(partition, None)
        name = partition.topic, partition.index
        # There may be another one by now, of another process or of another topic of the same name.
        if log is not None and world.server is not None and world.server.partitions.get(*name) is partition:
            world.note("%s-%s is back", *name)
            partition.log = log
            if name not in world.held:
                self._advance(world.server, partition)

    def _bring_online(self) -> None:
        for partition in list(self._offline):
            self._bring_back(partition)

    def _hold(self, server: Server) -> None:
        world = self._world
        partition = self._rng.choice(list(server.partitions))
        name = partition.topic, partition.index
        if partition.log is not None and name not in world.held:
            world.note("the high watermark of %s-%s is held", *name)
            world.held[name] = partition.high_watermark
            world.later(self._rng.randint(1, LONGEST_HOLD_MS - 200), lambda: self._release(name, server))

    def _release(self, name: tuple[str, int], of_server: Server | None = None) -> None:
        world = self._world
        server = world.server
        if name not in world.held or server is None or of_server not in (None, server):
            return
        del world.held[name]
        partition = server.partitions.get(*name)
        if partition is not None and partition.log is not None:
            world.note("the high watermark of %s-%s is released", *name)
            self._advance(server, partition)

    def _advance(self, server: Server, partition: Partition) -> None:
        partition._advance(partition.require_log().log_end_offset)
        server.produce_purgatory.check_and_complete(partition)

    def _delete_topic(self, server: Server) -> None:
        world = self._world
        topic, _ = self._rng.choice(world.plan.topics)
        known = server.controller.image.topics.get(topic)
        if known is None:
            return
        world.note("topic %s is deleted", topic)
        for partition in server.partitions.of_topic(topic).values():
            self._offline.pop(partition, None)
            world.held.pop((topic, partition.index), None)
        server.controller.delete_topics([known.topic_id])
        world.look_at_partitions()
        world.later(self._rng.choice((0, 100, 800)), lambda: self.create_topics() if world.is_in_trouble else None)

    def create_topics(self) -> None:
        """Those of the plan that are deleted."""
        server = self._world.server
        if server is None:
            return
        for topic, count in self._world.plan.topics:
            if topic not in server.controller.image.topics:
                self._world.note("topic %s is created", topic)
                server.create(topic, count)
                self._world.look_at_partitions()

    # -------------------------------------------------------------------------------------------------------- clients

    def _some_process(self) -> Process | None:
        alive = self._world.alive()
        return self._rng.choice(alive) if alive else None

    def _start_zombie(self) -> None:
        self._world.start_process(self._rng.choice(self._world.plan.producers))

    def _stall(self) -> None:
        process = self._some_process()
        if process is not None:
            duration_ms = self._rng.choice((300, 1_500, 5_000))
            self._world.note("%s stalls for %s ms", str(process), duration_ms)
            process.stalled_until_ms = self._world.clock.monotonic_ms() + duration_ms

    def _kill_producer(self) -> None:
        process = self._some_process()
        if process is not None:
            process.die("killed")

    def _commit_offsets(self) -> None:
        world = self._world
        group_id = self._rng.choice(world.plan.groups)
        partition = self._rng.choice(world.plan.partitions)
        offset = world.ledger.next_offset(None)
        world.network.ask(None, ApiKey.OFFSET_COMMIT, 8, lambda: requests.commit(group_id, partition, offset), lambda _: None)
        is_stable = self._rng.random() < 0.5
        build = lambda: requests.fetch(group_id, world.plan.partitions, require_stable=is_stable)  # noqa: E731
        world.network.ask(None, ApiKey.OFFSET_FETCH, 8, build, self._note_fetched)

    def _note_fetched(self, response: Any) -> None:
        if response is not None:
            codes = [each.error_code for group in response.groups for topic in group.topics for each in topic.partitions]
            self._world.counts["unstable offsets"] += codes.count(ErrorCode.UNSTABLE_OFFSET_COMMIT)

    def _delete_group(self) -> None:
        group_id = self._rng.choice(self._world.plan.groups)
        self._world.network.ask(None, ApiKey.DELETE_GROUPS, 2, lambda: requests.delete(group_id), lambda _: None)

    def _repeat_marker(self) -> None:
        """One of a transaction with an epoch of its own, late: it may end nothing."""
        world = self._world
        fates = [fate for fate in world.witness.fates.all if fate.version >= _BUMPING_VERSION and fate.partitions]
        if not fates:
            return
        fate = self._rng.choice(fates[-8:])
        if world.witness.fates.of_producer[fate.producer_id] is fate and fate.missing:
            return
        partition = self._rng.choice(sorted(fate.partitions))
        identity = fate.producer_id, fate.marker_epoch
        build = lambda: requests.marker(  # noqa: E731
            identity, partition, is_commit=fate.is_commit, coordinator_epoch=fate.coordinator_epoch, version=_BUMPING_VERSION
        )
        world.network.ask(None, ApiKey.WRITE_TXN_MARKERS, 2, build, self._note_marker)

    def _note_marker(self, response: Any) -> None:
        if response is not None:
            code = response.markers[0].topics[0].partitions[0].error_code
            self._world.counts[f"WRITE_TXN_MARKERS {ErrorCode(code).name}"] += 1
