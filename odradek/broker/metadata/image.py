"""The cluster's metadata as it stands: what replaying the metadata log gives.

``MetadataImage.replay`` is the only thing that changes it, on start-up and on every write alike, so that what a broker serves
and what a restart would find are the same. Readers may hold a ``Topic`` for as long as they do not await.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from odradek.broker.metadata.topic_names import has_collision_chars, unify_collision_chars
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


@dataclass(slots=True, eq=False)
class Topic:
    """A topic and its partitions, by number; partitions are consecutive from 0."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)


class MetadataImage:
    """Topics by name and by id, configs, feature levels and the next producer id. Changed only by ``replay``."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        # Topics that were there once: a directory of one of them is what a deletion left behind.
        self.removed_topic_ids: set[UUID] = set()
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._collisions: dict[str, set[str]] = {}

    def configs(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """The overrides set on a resource (TOPIC_RESOURCE or BROKER_RESOURCE; broker "" is the cluster-wide default)."""
        return self._configs.get((resource_type, resource_name), {})

    def partitions(self) -> Iterator[tuple[Topic, PartitionRecord]]:
        """Every partition there is, with its topic."""
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                yield topic, partition

    def colliding_topic(self, name: str) -> str | None:
        """A topic that differs from ``name`` only in '.' for '_', whose metrics would be the same; ``name`` itself counts."""
        colliding = self._collisions.get(unify_collision_chars(name)) if has_collision_chars(name) else None
        return min(colliding) if colliding else None

    def replay(self, records: Iterable[MetadataRecord]) -> None:
        """Apply ``records`` in order. Raises MalformedMessage where one speaks of a topic that is not there."""
        for record in records:
            match record:
                case PartitionRecord():
                    self._topic(record.topic_id).partitions[record.partition_id] = record
                case TopicRecord():
                    self._add_topic(Topic(record.name, record.topic_id))
                case RemoveTopicRecord():
                    self._remove_topic(self._topic(record.topic_id))
                case ConfigRecord():
                    self._set_config(record)
                case ProducerIdsRecord():
                    self.next_producer_id = record.next_producer_id
                case FeatureLevelRecord():
                    self._set_feature(record)

    def _topic(self, topic_id: UUID) -> Topic:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise MalformedMessage(f"a metadata record speaks of topic id {topic_id}, which is not there")
        return topic

    def _add_topic(self, topic: Topic) -> None:
        if topic.name in self.topics:
            raise MalformedMessage(f"a metadata record creates topic {topic.name}, which is there already")
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
        if has_collision_chars(topic.name):
            self._collisions.setdefault(unify_collision_chars(topic.name), set()).add(topic.name)

    def _remove_topic(self, topic: Topic) -> None:
        del self.topics[topic.name], self.topics_by_id[topic.topic_id]
        self.removed_topic_ids.add(topic.topic_id)
        self._configs.pop((TOPIC_RESOURCE, topic.name), None)
        unified = unify_collision_chars(topic.name)
        colliding = self._collisions.get(unified, set())
        colliding.discard(topic.name)
        if not colliding:
            self._collisions.pop(unified, None)

    def _set_config(self, record: ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        overrides = self._configs.setdefault(resource, {})
        if record.value is None:
            overrides.pop(record.name, None)
        else:
            overrides[record.name] = record.value
        if not overrides:
            del self._configs[resource]

    def _set_feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
