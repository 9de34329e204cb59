"""A history of requests, drawn from a seed, that both controllers are asked; the first answer or state that differs ends it.

Brokers are registered, unfenced, killed by missing heartbeats, shut down, started again and unregistered, with one directory or
two, which fail. Topics are created, grow, are reassigned and deleted; leaders propose in-sync replicas, right and wrong ones.
"""

import time
from random import Random
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types import (
    allocate_producer_ids,
    alter_partition,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
)
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest, Listener
from tests.campaigns.controller_differential.sides import FOLLOWED, SESSION_MS, Kafkas, Ours, Side
from tests.controller.cluster.clusters import FEATURES

BROKERS = range(1, 6)
_RACKS = (None, "a", "b")


class Difference(Exception):
    """The controllers have answered differently, or are in different states."""


class Stalled(Exception):
    """The machine was too slow: Apache Kafka has fenced a broker that was about to be heard of."""


class History:
    """``trace`` are the steps so far, in words. Without ``kafkas`` odradek alone is asked.

    Without ``passes_time`` no session ends, and a machine that is slow does not matter.
    """

    def __init__(self, ours: Ours, kafkas: Side | None, seed: int, *, passes_time: bool = True) -> None:
        self._passes_time = passes_time
        self.sides = [ours] if kafkas is None else [ours, kafkas]
        self.ours, self.kafkas = ours, kafkas
        self.random = Random(seed)
        self.trace: list[str] = []
        # What is being asked.
        self.asking = ""
        self.counts: dict[str, int] = {}
        # The brokers that send heartbeats, with what they ask for.
        self._alive: dict[int, dict[str, Any]] = {}
        self._incarnations: dict[int, UUID] = {}
        self._epochs: dict[int, tuple[int, int]] = {}
        self._directories = {
            broker: [UUID(int=self.random.getrandbits(127) | 1 << 126) for _ in range(1 + broker % 2)] for broker in BROKERS
        }
        self._topic_count = 0
        self._last_beat_ms = time.monotonic() * 1000

    async def run(self, steps: int, *, has_elr: bool = True) -> None:
        """Raise Difference where the controllers differ. With eligible leader replicas (KIP-966), or without."""
        for side in self.sides:
            await side.finalize(has_elr=has_elr)
        for broker in list(BROKERS)[:3]:
            await self._register(broker)
        await self._beat()
        await self._create_topic()
        for _ in range(steps):
            await self._beat()
            step = self.random.choices(list(_STEPS), weights=list(_STEPS.values()))[0]
            self.counts[step] = self.counts.get(step, 0) + 1
            await getattr(self, f"_{step}")()

    # ------------------------------------------------------------------------------------------------------ both are asked

    async def _ask(self, what: str, key: ApiKey, make: Any) -> Any:
        """The answer, which must be the same of both, as must be the state afterwards."""
        self.asking = what
        if what not in self.trace[-len(BROKERS) :]:
            self.trace.append(what)
        answers = []
        for side in self.sides:
            response = await side.ask(key, make(side))
            await side.follow()
            answers.append(side.told(response))
        if answers[0] != answers[-1]:
            self._ensure_in_time()
            raise Difference(f"{what}: odradek answers {answers[0]}, Kafka {answers[-1]}")
        self._compare_states(what)
        return response

    def _compare_states(self, what: str) -> None:
        if self.kafkas is None:
            return
        ours, kafkas = (side.state for side in self.sides)
        for kind, state in ours.items():
            if state != kafkas[kind]:
                self._ensure_in_time()
                raise Difference(f"{what}: {kind}: {_difference(state, kafkas[kind])}")

    def _ensure_in_time(self) -> None:
        if (
            self._passes_time
            and isinstance(self.kafkas, Kafkas)
            and time.monotonic() * 1000 - self._last_beat_ms > SESSION_MS * 0.7
        ):
            raise Stalled

    async def _beat(self) -> None:
        """The heartbeats of all that live."""
        self._ensure_in_time()
        self._last_beat_ms = time.monotonic() * 1000
        for broker, asked in list(self._alive.items()):
            response = await self._heartbeat(broker, **asked)
            if response.should_shut_down or response.error_code:
                del self._alive[broker]

    async def _heartbeat(self, broker: int, **what: Any) -> Any:
        asked = {"current_metadata_offset": FOLLOWED} | what
        return await self._ask(
            f"heartbeat of {broker}: {what}",
            ApiKey.BROKER_HEARTBEAT,
            lambda side: BrokerHeartbeatRequest(**{"broker_id": broker, "broker_epoch": side.epoch(broker)} | asked),
        )

    async def _pass_session(self) -> None:
        """Let the sessions of all end that send no heartbeats."""
        if not self._passes_time:
            return
        for _ in range(13):
            for side in self.sides:
                await side.pass_time()
            await self._beat_until_equal()
        self._compare_states("sessions end")

    async def _beat_until_equal(self) -> None:
        """Heartbeats while one controller may have noticed already what the other has not."""
        self._last_beat_ms = time.monotonic() * 1000
        for broker, asked in self._alive.items():
            for side in self.sides:
                request = BrokerHeartbeatRequest(broker, side.epoch(broker), FOLLOWED, **asked)
                await side.ask(ApiKey.BROKER_HEARTBEAT, request)
        for side in self.sides:
            await side.follow()

    # --------------------------------------------------------------------------------------------------------------- brokers

    async def _register(self, broker: int | None = None) -> None:
        """A new incarnation, or the same again; a wrong one at times. It sends heartbeats from then on."""
        broker = broker or self.random.choice(BROKERS)
        # odradek ends the session of a broker that has leave to stop, and Kafka's lasts: docs/differences-all.md.
        has_left = "want_shut_down" in self._alive.get(broker, {"want_shut_down": True})
        is_new = self.random.random() < 0.6 and (self._passes_time or not has_left)
        if is_new or broker not in self._incarnations:
            if has_left:
                await self._pass_session()
            incarnation = UUID(int=self.random.getrandbits(127) | 1 << 126)
        else:
            incarnation = self._incarnations[broker]
        was_clean = self.random.random() < 0.5
        spoilt = self.random.choice((None,) * 12 + ("features", "directories", "duplicate", "cluster"))
        directories = self._directories[broker]

        def request(side: Any) -> BrokerRegistrationRequest:
            return BrokerRegistrationRequest(
                broker_id=broker,
                cluster_id="another" if spoilt == "cluster" else side.cluster_id,
                incarnation_id=incarnation,
                listeners=[Listener("PLAINTEXT", "localhost", 9000 + broker, 0)],
                features=FEATURES[1:] if spoilt == "features" else FEATURES,
                rack=_RACKS[broker % 3],
                log_dirs={"directories": [], "duplicate": directories[:1] * 2}.get(spoilt, directories),
                previous_broker_epoch=side.epoch(broker) if was_clean else -1,
            )

        what = f"register {broker}, {'clean' if was_clean else 'unclean'}, {spoilt or 'right'}"
        response = await self._ask(what, ApiKey.BROKER_REGISTRATION, request)
        if not response.error_code:
            self._incarnations[broker] = incarnation
            self._alive[broker] = {}
            if self.random.random() < 0.3:
                await self._heartbeat(broker, want_fence=True)
            if self.random.random() < 0.3:
                await self._heartbeat(broker, current_metadata_offset=0)

    async def _kill(self) -> None:
        """A broker is not heard of any more."""
        if self._passes_time and len(self._alive) > 1:
            broker = self.random.choice(sorted(self._alive))
            del self._alive[broker]
            self.trace.append(f"kill {broker}")
            await self._pass_session()

    async def _shut_down(self) -> None:
        if self._alive:
            self._alive[self.random.choice(sorted(self._alive))] = {"want_shut_down": True}

    async def _fence(self) -> None:
        if self._alive:
            await self._heartbeat(self.random.choice(sorted(self._alive)), want_fence=True)

    async def _unregister(self) -> None:
        broker = self.random.choice(BROKERS)
        await self._ask(
            f"unregister {broker}",
            ApiKey.UNREGISTER_BROKER,
            lambda _: unregister_broker.UnregisterBrokerRequest(broker),
        )
        self._alive.pop(broker, None)

    async def _stale(self) -> None:
        broker = self.random.choice(BROKERS)
        await self._heartbeat(broker, broker_epoch=3)
        await self._ask(
            f"producer ids for {broker}",
            ApiKey.ALLOCATE_PRODUCER_IDS,
            lambda side: allocate_producer_ids.AllocateProducerIdsRequest(broker, side.epoch(broker)),
        )

    async def _lose_directory(self) -> None:
        if self._alive:
            broker = self.random.choice(sorted(self._alive))
            registered = self.ours.image.kept.brokers[broker].log_dirs
            offline = self.random.sample(registered, min(1, len(registered) - 1))
            await self._heartbeat(broker, offline_log_dirs=offline)

    async def _cordon(self) -> None:
        if self._alive:
            broker = self.random.choice(sorted(self._alive))
            await self._heartbeat(broker, cordoned_log_dirs=self._directories[broker][: self.random.randrange(3)])

    async def _assign_directories(self) -> None:
        broker = self.random.choice(BROKERS)
        name, index = self._some_partition()
        directory = self.random.choice([*self._directories[broker], UUID(int=1 << 120)])

        def request(side: Any) -> Any:
            topic = assign_replicas_to_dirs.RequestTopicData(
                side.topic_id(name), [assign_replicas_to_dirs.RequestPartitionData(index)]
            )
            return assign_replicas_to_dirs.AssignReplicasToDirsRequest(
                broker, side.epoch(broker), [assign_replicas_to_dirs.RequestDirectoryData(directory, [topic])]
            )

        await self._ask(f"{name}-{index} of {broker} is in {directory}", ApiKey.ASSIGN_REPLICAS_TO_DIRS, request)

    # ---------------------------------------------------------------------------------------------------------------- topics

    async def _create_topic(self) -> None:
        self._topic_count += 1
        name = f"t{self._topic_count}"
        factor = self.random.choice((1, 2, 3, 3, 3))
        assignments = [self._some_replicas(factor) for _ in range(self.random.randrange(1, 4))]
        configs = []
        if self.random.random() < 0.3:
            configs.append(create_topics.CreatableTopicConfig("unclean.leader.election.enable", "true"))
        if self.random.random() < 0.6:
            configs.append(create_topics.CreatableTopicConfig("min.insync.replicas", str(self.random.randrange(1, 4))))
        placed = [create_topics.CreatableReplicaAssignment(index, ids) for index, ids in enumerate(assignments)]
        topic = create_topics.CreatableTopic(name, -1, -1, placed, configs)
        await self._ask(
            f"create {name} on {assignments} with {configs}",
            ApiKey.CREATE_TOPICS,
            lambda _: create_topics.CreateTopicsRequest([topic], 10_000),
        )

    async def _place_topic(self) -> None:
        """A topic whose brokers are chosen by chance, which has rules. odradek's gets those that the other has chosen."""
        self._topic_count += 1
        name, count, factor = f"t{self._topic_count}", self.random.randrange(1, 4), self.random.randrange(1, 5)
        self.asking = f"place {name}, {count} partitions of {factor} replicas"
        usable = self.ours.cluster.controller._placement.brokers()
        if any(not each.is_fenced and not self.ours.cluster.controller.view.is_active(each.broker_id) for each in usable):
            # Whether a partition has a replica in sync is a matter of chance then.
            return
        self.trace.append(self.asking)
        here = self._placed_here(count, factor)
        other = self.sides[-1]
        if other is self.ours:
            return
        request = create_topics.CreateTopicsRequest([create_topics.CreatableTopic(name, count, factor)], 10_000)
        [answer] = await other.ask(ApiKey.CREATE_TOPICS, request)
        await other.follow()
        if answer.error_code or not here:
            if answer.error_code != ErrorCode.INVALID_REPLICATION_FACTOR or here:
                raise Difference(f"{self.asking}: odradek places {here}, Kafka answers {answer}")
            return
        there = [partition.replicas for partition in other.image.topics[name].partitions.values()]
        for replicas in (*here, *there):
            self._ensure_spread(replicas, factor)
        placed = [create_topics.CreatableReplicaAssignment(index, ids) for index, ids in enumerate(there)]
        await self.ours.ask(
            ApiKey.CREATE_TOPICS, create_topics.CreateTopicsRequest([create_topics.CreatableTopic(name, -1, -1, placed)], 10_000)
        )
        self._compare_states(self.asking)

    def _placed_here(self, count: int, factor: int) -> list[tuple[int, ...]]:
        """The replicas that odradek chooses; none where that cannot be."""
        try:
            placed = self.ours.cluster.controller._placement.begin().placed(count, factor)
        except KafkaError:
            return []
        return [each.replicas for each in placed]

    def _ensure_spread(self, replicas: tuple[int, ...], factor: int) -> None:
        """On different brokers, of as many racks as there are, and one that is not fenced is the first."""
        brokers = self.ours.image.kept.brokers
        usable = {each.broker_id: each for each in self.ours.cluster.controller._placement.brokers()}
        racks = min(factor, len({each.rack for each in usable.values()}))
        spread = len(set(replicas)) == factor and len({brokers[each].rack for each in replicas}) == racks
        if not spread or not set(replicas) <= usable.keys() or usable[replicas[0]].is_fenced:
            raise Difference(f"{self.asking}: {replicas} of {list(usable.values())}")

    async def _delete_topic(self) -> None:
        if len(self.ours.image.topics) > 3:
            name = self.random.choice(sorted(self.ours.image.topics))
            topics = [delete_topics.DeleteTopicState(name=name)]
            await self._ask(
                f"delete {name}",
                ApiKey.DELETE_TOPICS,
                lambda _: delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=10_000),
            )

    async def _grow_topic(self) -> None:
        name, _ = self._some_partition()
        topic = self.ours.image.topics.get(name)
        # Where partitions differ in how many replicas they have, Kafka takes any for the measure.
        if topic is None or len({len(each.replicas) for each in topic.partitions.values()}) > 1:
            return
        new = [
            create_partitions.CreatePartitionsAssignment(self._some_replicas(len(topic.partitions[0].replicas)))
            for _ in range(self.random.randrange(1, 3))
        ]
        count = len(topic.partitions) + len(new) + (self.random.random() < 0.1)
        asked = create_partitions.CreatePartitionsTopic(name, count, new)
        await self._ask(
            f"grow {name} by {new}",
            ApiKey.CREATE_PARTITIONS,
            lambda _: create_partitions.CreatePartitionsRequest([asked], 10_000),
        )

    async def _configure(self) -> None:
        resource_type, resource_name = self.random.choice(((2, self._some_partition()[0]), (4, ""), (4, "2")))
        name, value = self.random.choice(
            (
                ("min.insync.replicas", str(self.random.randrange(1, 4))),
                ("min.insync.replicas", None),
                ("unclean.leader.election.enable", self.random.choice(("true", "false"))),
                ("unclean.leader.election.enable", None),
            )
        )
        config = incremental_alter_configs.AlterableConfig(name, int(value is None), value)
        resource = incremental_alter_configs.AlterConfigsResource(resource_type, resource_name, [config])
        await self._ask(
            f"configure {resource}",
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            lambda _: incremental_alter_configs.IncrementalAlterConfigsRequest([resource]),
        )

    async def _propose(self) -> None:
        """In-sync replicas, of the leader mostly."""
        name, index = self._some_partition()
        topic = self.ours.image.topics.get(name)
        partition = None if topic is None else topic.partitions.get(index)
        replicas = (1, 2, 3) if partition is None else partition.replicas
        leader = self.random.choice(BROKERS) if partition is None or self.random.random() < 0.1 else partition.leader
        if leader not in self.ours.image.kept.brokers and self.random.random() < 0.9:
            return
        wanted = {leader, *self.random.sample(replicas, self.random.randrange(len(replicas) + 1))}
        if self.random.random() < 0.1:
            wanted = set(self.random.sample(BROKERS, 2))
        isr = sorted(wanted, key=lambda _: self.random.random())
        epochs = [self.random.choice((0,) * 10 + (1, -1)) for _ in range(2)]
        is_wrong = self.random.random() < 0.1
        recovery = 0 if partition is None or self.random.random() < 0.7 else partition.leader_recovery_state

        def request(side: Any) -> Any:
            states = [alter_partition.BrokerState(each, 1 if is_wrong else side.epoch(each)) for each in isr]
            data = alter_partition.RequestPartitionData(
                index,
                epochs[0] + (0 if partition is None else partition.leader_epoch),
                states,
                recovery,
                epochs[1] + (0 if partition is None else partition.partition_epoch),
            )
            topics = [alter_partition.RequestTopicData(side.topic_id(name), [data])]
            return alter_partition.AlterPartitionRequest(leader, side.epoch(leader), topics)

        await self._ask(f"{leader} proposes {isr} for {name}-{index}, {epochs}, {recovery}", ApiKey.ALTER_PARTITION, request)

    async def _elect(self) -> None:
        kind = self.random.randrange(2)
        if self.random.random() < 0.3:
            asked = None
        else:
            name, index = self._some_partition()
            asked = [elect_leaders.TopicPartitions(name, [index])]
        await self._ask(
            f"elect {('preferred', 'unclean')[kind]} {asked}",
            ApiKey.ELECT_LEADERS,
            lambda _: elect_leaders.ElectLeadersRequest(kind, asked, 10_000),
        )

    async def _reassign(self) -> None:
        name, index = self._some_partition()
        target = None if self.random.random() < 0.3 else self._some_replicas(self.random.randrange(1, 4))
        if target is not None:
            # A move that removed what the one before it adds would not end in Kafka's controller.
            target += [each for each in self._added(name, index) if each not in target]
        allows = self.random.random() < 0.8
        asked = alter_partition_reassignments.ReassignableTopic(
            name, [alter_partition_reassignments.ReassignablePartition(index, target)]
        )
        await self._ask(
            f"reassign {name}-{index} to {target}",
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            lambda _: alter_partition_reassignments.AlterPartitionReassignmentsRequest(10_000, allows, [asked]),
        )
        await self._ask(
            "list reassignments",
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            lambda _: list_partition_reassignments.ListPartitionReassignmentsRequest(10_000, None),
        )

    def _some_partition(self) -> tuple[str, int]:
        """One that there is, mostly."""
        known = [(topic.name, each.partition_id) for topic, each in self.ours.image.partitions()]
        if not known or self.random.random() < 0.05:
            return self.random.choice((("nobody", 0), ("t1", 77)))
        return self.random.choice(known)

    def _added(self, name: str, index: int) -> list[int]:
        """The replicas that a partition is getting."""
        found = [each for topic, each in self.ours.image.partitions() if (topic.name, each.partition_id) == (name, index)]
        return [replica for each in found for replica in each.adding_replicas]

    def _some_replicas(self, count: int) -> list[int]:
        """Brokers that are registered, mostly."""
        registered = sorted(self.ours.image.kept.brokers)
        if self.random.random() < 0.05 or len(registered) < count:
            registered = list(BROKERS)
        return self.random.sample(registered, count)


_STEPS = {
    "register": 6,
    "kill": 3,
    "shut_down": 4,
    "fence": 4,
    "unregister": 1,
    "stale": 2,
    "lose_directory": 2,
    "cordon": 1,
    "assign_directories": 5,
    "create_topic": 5,
    "place_topic": 3,
    "delete_topic": 1,
    "grow_topic": 3,
    "configure": 5,
    "propose": 24,
    "elect": 8,
    "reassign": 12,
}


def _difference(ours: Any, kafkas: Any) -> str:
    if isinstance(ours, dict):
        keys = [key for key in {**ours, **kafkas} if ours.get(key) != kafkas.get(key)]
        return "; ".join(f"{key}: odradek has {ours.get(key)}, Kafka {kafkas.get(key)}" for key in keys)
    return f"odradek has {ours}, Kafka {kafkas}"
