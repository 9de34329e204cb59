"""The two controllers: Apache Kafka's in a JVM, asked over the wire, and odradek's on a virtual clock, asked by calls.

What differs by chance has one name on both sides: a broker's epoch is asked for by its id, a topic's id by its name.
"""

import asyncio
from typing import Any, NamedTuple
from uuid import UUID

from odradek.controller.metadata.alterations import Alteration, Operation
from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.controller.metadata.features import ELIGIBLE_LEADER_REPLICAS, SAFE_DOWNGRADE, TRANSACTION_VERSION
from odradek.controller.metadata.image import BROKER_RESOURCE, MetadataImage
from odradek.controller.metadata.loader import MetadataLoader
from odradek.controller.metadata.metadata_log import MetadataBatch
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types import update_features
from odradek.protocol.metadata_records import decode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from tests.common.config.doubles import alter_resources
from tests.controller.cluster.clusters import CLUSTER_ID, Cluster
from tests.controller.metadata.doubles import done

SESSION_MS = 2000
# An offset of the metadata that every broker has followed to which is in no haste: both logs are shorter.
FOLLOWED = 1 << 40
# What is left out of answers: words, times, and the offsets that epochs of brokers are.
_UNTOLD = {"error_message", "throttle_time_ms", "broker_epoch", "num_partitions", "replication_factor", "configs"}
_UNTOLD |= {"topic_config_error_code"}


class Answer(NamedTuple):
    """One topic, or one resource: who it is, and the error."""

    name: str
    error_code: int


class Side:
    """What both have: an image of what is committed."""

    image: MetadataImage

    def epoch(self, broker_id: int) -> int:
        """The epoch of a broker's registration; one that never was where there is none."""
        broker = self.image.kept.brokers.get(broker_id)
        return -5 if broker is None else broker.broker_epoch

    def topic_id(self, name: str) -> UUID:
        """A topic's id; one that never was where there is none."""
        topic = self.image.topics.get(name)
        return UUID(int=7) if topic is None else topic.topic_id

    def told(self, response: Any) -> Any:
        """``response`` with names for what differs by chance."""
        if isinstance(response, UUID):
            topic = self.image.topics_by_id.get(response)
            return response if topic is None else topic.name
        if hasattr(response, "_asdict"):
            fields = response._asdict().items()
            return {name: self.told(value) for name, value in fields if name not in _UNTOLD}
        if isinstance(response, list | tuple):
            told = [self.told(each) for each in response]
            # Topics have no order; in-sync replicas have.
            return sorted(told, key=str) if told and isinstance(told[0], dict) else told
        return response

    @property
    def state(self) -> dict[str, Any]:
        """All that both must have alike."""
        image = self.image
        brokers = {
            broker.broker_id: (
                broker.fenced,
                broker.in_controlled_shutdown,
                broker.rack,
                broker.log_dirs,
                broker.cordoned_log_dirs,
            )
            for broker in image.kept.brokers.values()
        }
        partitions = {
            (topic.name, each.partition_id): {
                "leader": each.leader,
                "leader epoch": each.leader_epoch,
                "isr": tuple(each.isr),
                "elr": sorted(each.eligible_leader_replicas or ()),
                # Kafka notes -1 as the last known leader where there was none.
                "last known": tuple(node_id for node_id in each.last_known_elr or () if node_id >= 0),
                "recovery": each.leader_recovery_state,
                "replicas": tuple(each.replicas),
                "adding": tuple(each.adding_replicas),
                "removing": tuple(each.removing_replicas),
                "directories": tuple(each.directories),
                "partition epoch": each.partition_epoch,
            }
            for topic, each in image.partitions()
        }
        configs = sorted(image.overrides)
        return {"brokers": brokers, "partitions": partitions, "configs": configs, "producer ids": image.next_producer_id}


class Ours(Side):
    """odradek's."""

    cluster_id = CLUSTER_ID

    def __init__(self, session_ms: int = SESSION_MS) -> None:
        self.cluster = Cluster({"broker.session.timeout.ms": str(session_ms), "auto.leader.rebalance.enable": "false"})
        self.image = self.cluster.image

    async def ask(self, key: ApiKey, request: Any) -> Any:
        """The response, or the errors of topics and resources."""
        controller = self.cluster.controller
        match key:
            case ApiKey.BROKER_REGISTRATION:
                return done(controller.register_broker(request, 4))
            case ApiKey.ALTER_PARTITION:
                return done(controller.alter_partition(request, 3))
            case ApiKey.CREATE_TOPICS:
                return self._created(request)
            case ApiKey.CREATE_PARTITIONS:
                topics = [
                    NewPartitions(each.name, each.count, [one.broker_ids for one in each.assignments]) for each in request.topics
                ]
                return _answers(done(controller.create_partitions(topics)))
            case ApiKey.DELETE_TOPICS:
                wanted = [self.image.topics[each.name].topic_id for each in request.topics if each.name in self.image.topics]
                done(controller.delete_topics(wanted))
                return []
            case ApiKey.INCREMENTAL_ALTER_CONFIGS:
                return self._altered(request)
        asked = {
            ApiKey.BROKER_HEARTBEAT: controller.heartbeat,
            ApiKey.UNREGISTER_BROKER: controller.unregister_broker,
            ApiKey.ASSIGN_REPLICAS_TO_DIRS: controller.assign_replicas_to_dirs,
            ApiKey.ALLOCATE_PRODUCER_IDS: controller.allocate_producer_ids,
            ApiKey.ELECT_LEADERS: controller.elect_leaders,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: controller.alter_partition_reassignments,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: controller.list_partition_reassignments,
        }
        return done(asked[key](request))

    async def finalize(self, *, has_elr: bool) -> None:
        """Begin with or without eligible leader replicas. A new controller has them."""
        if not has_elr:
            controller = self.cluster.controller
            assert done(controller.update_features([(ELIGIBLE_LEADER_REPLICAS, 0, SAFE_DOWNGRADE)])) is None
            assert done(controller.alter_configs([(BROKER_RESOURCE, "", "min.insync.replicas", None)])) is None

    def _created(self, request: Any) -> list[Answer]:
        topics = [
            NewTopic(
                each.name,
                each.num_partitions,
                each.replication_factor,
                [(one.partition_index, one.broker_ids) for one in each.assignments],
                [(one.name, one.value) for one in each.configs],
            )
            for each in request.topics
        ]
        return _answers(done(self.cluster.controller.create_topics(topics)))

    def _altered(self, request: Any) -> list[Answer]:
        view = self.cluster.controller.config_view(self.cluster.config)
        alterations = [
            Alteration(
                each.resource_type,
                each.resource_name,
                [Operation(one.name, one.config_operation, one.value) for one in each.configs],
            )
            for each in request.resources
        ]
        answers = done(alter_resources(view, alterations, self.cluster.controller.alter_configs))
        return [Answer(each.resource_name, code) for each, (code, _) in zip(request.resources, answers, strict=True)]

    async def follow(self) -> None:
        """Nothing is to be waited for."""

    async def pass_time(self) -> None:
        """A part of a session."""
        self.cluster.clock.advance(SESSION_MS / 8)


class Kafkas(Side):
    """Apache Kafka's: the image is what its log on disk has."""

    def __init__(self, quorum: Any) -> None:
        self._quorum = quorum
        self.cluster_id = quorum.controllers.cluster_id
        self.image = MetadataImage()
        self._loader = MetadataLoader(self.image)
        self._next_offset = 0

    async def ask(self, key: ApiKey, request: Any) -> Any:
        """The same."""
        response = await self._quorum.ask(1, key, request)
        if key is ApiKey.CREATE_TOPICS:
            return [Answer(each.name, each.error_code) for each in response.topics]
        if key is ApiKey.CREATE_PARTITIONS:
            return [Answer(each.name, each.error_code) for each in response.results]
        if key is ApiKey.DELETE_TOPICS:
            return []
        if key is ApiKey.INCREMENTAL_ALTER_CONFIGS:
            return [Answer(each.resource_name, each.error_code) for each in response.responses]
        return response

    async def finalize(self, *, has_elr: bool) -> None:
        """The same. This one has been formatted without a tool, and has the metadata version alone."""
        level = (ELIGIBLE_LEADER_REPLICAS, int(has_elr))
        updates = [update_features.FeatureUpdateKey(*each) for each in (level, (TRANSACTION_VERSION, 2))]
        response = await self._quorum.ask(1, ApiKey.UPDATE_FEATURES, update_features.UpdateFeaturesRequest(10_000, updates))
        assert not response.error_code, response
        await self.follow()

    async def follow(self) -> None:
        """Read what has been committed since: before an answer is given, it is on disk."""
        data = b"".join(file.read_bytes() for file in sorted(self._quorum.controllers.log_dir(1).glob("*.log")))
        try:
            for position, header in iter_batches(data):
                if header.base_offset < self._next_offset:
                    continue
                self._next_offset = header.next_offset
                if not header.is_control:
                    records = [decode(record.value) for record in read_records(data, position)]
                    self._loader.replay(MetadataBatch(header.base_offset, records), lambda offset: f"offset {offset}")
        except MalformedMessage:
            # The last batch is being written.
            return

    async def pass_time(self) -> None:
        """A part of a session, by the wall."""
        await asyncio.sleep(SESSION_MS / 8000)


def _answers(results: Any) -> list[Answer]:
    return [Answer(each.name, ErrorCode.NONE if each.error is None else each.error.code) for each in results]
