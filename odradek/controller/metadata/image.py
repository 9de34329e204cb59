"""The current cluster metadata: the result of replaying the metadata log.

Only ``MetadataImage.replay`` changes it, both at start-up and on every write. So a broker serves the same state that a restart
would find. Readers may hold a ``Topic`` only until they await.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID

from odradek.controller.metadata.client_quotas import ClientQuotas
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.kept_records import KeptRecords
from odradek.controller.metadata.topic import Topic, has_collision_chars, unify_collision_chars
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16


class MetadataImage:
    """Topics by name and by id, configs, feature levels, the next producer id, client quotas, and records kept for Kafka.

    Only ``replay`` changes it.
    """

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        # The object stays the same as long as the image exists.
        self.quotas = ClientQuotas()
        # Topics deleted since the last snapshot. A directory of one of them is a remnant of the deletion.
        self.removed_topic_ids: set[UUID] = set()
        # By resource type and name. Resources without overrides are removed.
        self._configs: dict[int, dict[str, dict[str, str]]] = {}
        self._collisions: dict[str, set[str]] = {}
        # Brokers, controllers, rights, credentials and tokens.
        self.kept = KeptRecords()

    @property
    def overrides(self) -> Iterator[tuple[int, str, str, str]]:
        """Iterate over all overrides: (resource type, resource name, config, value)."""
        for resource_type, resources in self._configs.items():
            for resource_name, configs in resources.items():
                for name, value in configs.items():
                    yield resource_type, resource_name, name, value

    def configs(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """Return the overrides of a resource (TOPIC_RESOURCE or BROKER_RESOURCE; broker "" is the cluster-wide default)."""
        return self._configs.get(resource_type, {}).get(resource_name, {})

    def configured(self, resource_type: int) -> list[str]:
        """Return the names of the resources of a type that have overrides."""
        return list(self._configs.get(resource_type, ()))

    def partitions(self) -> Iterator[tuple[Topic, PartitionRecord]]:
        """Iterate over all partitions, with their topics."""
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                yield topic, partition

    def colliding_topic(self, name: str) -> str | None:
        """Return a topic with the same metric names as ``name`` ('.' equals '_'), ``name`` itself included; or None."""
        colliding = self._collisions.get(unify_collision_chars(name)) if has_collision_chars(name) else None
        return min(colliding) if colliding else None

    def replay(self, records: Iterable[MetadataRecord], delta: MetadataDelta | None = None) -> MetadataDelta:
        """Apply ``records`` in order. Return their changes, noted in ``delta`` if given.

        Raises MalformedMessage if one refers to a missing topic, partition or broker.
        """
        delta = MetadataDelta() if delta is None else delta
        for record in records:
            match record:
                case PartitionRecord():
                    self._set_partition(record, delta)
                case TopicRecord():
                    self._add_topic(Topic(record.name, record.topic_id), delta)
                case RemoveTopicRecord():
                    self._remove_topic(self.topic(record.topic_id), delta)
                case ConfigRecord():
                    self._set_config(record, delta)
                case ProducerIdsRecord():
                    self.next_producer_id = delta.next_producer_id = record.next_producer_id
                case FeatureLevelRecord():
                    self._set_feature(record, delta)
                case _:
                    self.kept.replay(record, self, delta)
        return delta

    def become(self, other: "MetadataImage") -> None:
        """Take over the content of ``other``, which must not be used any more. Topics in both stay the same objects."""
        for topic_id, topic in other.topics_by_id.items():
            known = self.topics_by_id.get(topic_id)
            if known is not None:
                known.partitions = topic.partitions
                other.topics_by_id[topic_id] = other.topics[topic.name] = known
        self.removed_topic_ids |= self.topics_by_id.keys() - other.topics_by_id.keys()
        # Update in place, as others hold these dictionaries.
        self.topics.clear()
        self.topics.update(other.topics)
        self.features.clear()
        self.features.update(other.features)
        self.topics_by_id.clear()
        self.topics_by_id.update(other.topics_by_id)
        self.next_producer_id = other.next_producer_id
        self.quotas.become(other.quotas)
        self._configs = other._configs  # noqa: SLF001  of the same class
        self._collisions = other._collisions  # noqa: SLF001  of the same class
        self.kept = other.kept

    def topic(self, topic_id: UUID) -> Topic:
        """Return the topic of an id. Raises MalformedMessage if there is none, as a record refers to it."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise MalformedMessage(f"a metadata record has topic id {topic_id}, which does not exist")
        return topic

    def _set_partition(self, record: PartitionRecord, delta: MetadataDelta) -> None:
        topic = self.topic(record.topic_id)
        is_new = record.partition_id not in topic.partitions
        topic.partitions[record.partition_id] = record
        delta.note_partition(topic, record, is_new=is_new)

    def _add_topic(self, topic: Topic, delta: MetadataDelta) -> None:
        if topic.name in self.topics:
            raise MalformedMessage(f"a metadata record creates topic {topic.name}, which already exists")
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
        if has_collision_chars(topic.name):
            self._collisions.setdefault(unify_collision_chars(topic.name), set()).add(topic.name)
        delta.note_topic(topic)

    def _remove_topic(self, topic: Topic, delta: MetadataDelta) -> None:
        del self.topics[topic.name], self.topics_by_id[topic.topic_id]
        self.removed_topic_ids.add(topic.topic_id)
        self._configs.get(TOPIC_RESOURCE, {}).pop(topic.name, None)
        unified = unify_collision_chars(topic.name)
        colliding = self._collisions.get(unified, set())
        colliding.discard(topic.name)
        if not colliding:
            self._collisions.pop(unified, None)
        delta.note_deleted(topic)

    def _set_config(self, record: ConfigRecord, delta: MetadataDelta) -> None:
        delta.configs[record.resource_type, record.resource_name] = None
        resources = self._configs.setdefault(record.resource_type, {})
        overrides = resources.setdefault(record.resource_name, {})
        if record.value is None:
            overrides.pop(record.name, None)
        else:
            overrides[record.name] = record.value
        if not overrides:
            del resources[record.resource_name]

    def _set_feature(self, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
        delta.features[record.name] = record.feature_level
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
