"""The cluster's metadata as it stands: what replaying the metadata log gives.

``MetadataImage.replay`` is the only thing that changes it, on start-up and on every write alike, so that a broker serves what a
restart would find. Readers may hold a ``Topic`` for as long as they do not await.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.controller.metadata.client_quotas import ClientQuotas
from odradek.controller.metadata.delta import MetadataDelta
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

if TYPE_CHECKING:
    from odradek.controller.metadata.kept_records import KeptRecords

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16


class MetadataImage:
    """Topics by name and by id, configs, feature levels, the next producer id, client quotas, and what is kept for Kafka.

    Changed only by ``replay``.
    """

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        # The same object for as long as the image is there.
        self.quotas = ClientQuotas()
        # Topics that were deleted since the last snapshot: a directory of one of them is what the deletion left behind.
        self.removed_topic_ids: set[UUID] = set()
        # By resource type and name; no resource is there without an override.
        self._configs: dict[int, dict[str, dict[str, str]]] = {}
        self._collisions: dict[str, set[str]] = {}
        # Made with the first record that odradek itself does not write.
        self._kept: KeptRecords | None = None

    @property
    def overrides(self) -> Iterator[tuple[int, str, str, str]]:
        """Every override: (resource type, resource name, config, value)."""
        for resource_type, resources in self._configs.items():
            for resource_name, configs in resources.items():
                for name, value in configs.items():
                    yield resource_type, resource_name, name, value

    @property
    def kept(self) -> "KeptRecords":
        """Brokers, controllers, rights, credentials and tokens."""
        if self._kept is None:
            from odradek.controller.metadata.kept_records import KeptRecords

            self._kept = KeptRecords()
        return self._kept

    def configs(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """The overrides set on a resource (TOPIC_RESOURCE or BROKER_RESOURCE; broker "" is the cluster-wide default)."""
        return self._configs.get(resource_type, {}).get(resource_name, {})

    def configured(self, resource_type: int) -> list[str]:
        """The names of the resources of a type that have overrides."""
        return list(self._configs.get(resource_type, ()))

    def partitions(self) -> Iterator[tuple[Topic, PartitionRecord]]:
        """Every partition there is, with its topic."""
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                yield topic, partition

    def colliding_topic(self, name: str) -> str | None:
        """A topic that differs from ``name`` only in '.' for '_', whose metrics would be the same; ``name`` itself counts."""
        colliding = self._collisions.get(unify_collision_chars(name)) if has_collision_chars(name) else None
        return min(colliding) if colliding else None

    def replay(self, records: Iterable[MetadataRecord], delta: MetadataDelta | None = None) -> MetadataDelta:
        """Apply ``records`` in order; what they changed, noted in ``delta`` if that is given.

        Raises MalformedMessage where one speaks of a topic, partition or broker that is not there.
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
        """Have all that ``other`` has, which is not used any more. A topic that is in both stays the same object."""
        for topic_id, topic in other.topics_by_id.items():
            known = self.topics_by_id.get(topic_id)
            if known is not None:
                known.partitions = topic.partitions
                other.topics_by_id[topic_id] = other.topics[topic.name] = known
        self.removed_topic_ids |= self.topics_by_id.keys() - other.topics_by_id.keys()
        # In place: others hold these dictionaries.
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
        self._kept = other._kept  # noqa: SLF001  of the same class

    def topic(self, topic_id: UUID) -> Topic:
        """The topic of an id. Raises MalformedMessage where there is none: a record speaks of it."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise MalformedMessage(f"a metadata record speaks of topic id {topic_id}, which does not exist")
        return topic

    def _set_partition(self, record: PartitionRecord, delta: MetadataDelta) -> None:
        topic = self.topic(record.topic_id)
        is_new = record.partition_id not in topic.partitions
        topic.partitions[record.partition_id] = record
        delta.note_partition(topic, record, is_new=is_new)

    def _add_topic(self, topic: Topic, delta: MetadataDelta) -> None:
        if topic.name in self.topics:
            raise MalformedMessage(f"a metadata record creates topic {topic.name}, which exists already")
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
