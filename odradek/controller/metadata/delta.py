"""The changes made by a batch of metadata records, as reported to the publishers of the image.

Replaying records into a ``MetadataImage`` notes each change here. A topic that the same batch creates and deletes leaves no
trace.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.metadata.topic import Topic
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.protocol.metadata_records.security import AccessControlEntryRecord


class TopicDelta(NamedTuple):
    """A topic whose partitions changed: the new ones, and the changed ones in their new form, by index."""

    topic: Topic
    is_new: bool
    created: dict[int, PartitionRecord]
    changed: dict[int, PartitionRecord]


class MetadataDelta:
    """Changes of topics, configs, features, producer ids, nodes, rights and quotas. Attributes without changes are empty.

    ``configs`` has the (resource type, resource name) with changed overrides. ``features`` maps names to levels, 0 for a removed
    one. ``brokers`` maps broker ids to registrations, ``acls`` ids to access control entries; removed ones are None. ``quotas``
    tells whether client quotas changed.
    """

    __slots__ = ("acls", "brokers", "configs", "deleted_topics", "features", "next_producer_id", "quotas", "topics")

    def __init__(self) -> None:
        self.topics: dict[UUID, TopicDelta] = {}
        self.deleted_topics: list[Topic] = []
        self.configs: dict[tuple[int, str], None] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id: int | None = None
        self.brokers: dict[int, MetadataRecord | None] = {}
        self.acls: dict[UUID, AccessControlEntryRecord | None] = {}
        self.quotas = False

    @property
    def new_partitions(self) -> list[tuple[Topic, Sequence[PartitionRecord]]]:
        """Return the new partitions, by topic. For a new topic these are all its partitions."""
        return [(each.topic, list(each.created.values())) for each in self.topics.values() if each.created]

    @property
    def changed_partitions(self) -> list[tuple[Topic, Sequence[PartitionRecord]]]:
        """Return the changed partitions that existed before, by topic."""
        return [(each.topic, list(each.changed.values())) for each in self.topics.values() if each.changed]

    @property
    def is_empty(self) -> bool:
        """Return whether no change is noted."""
        return self.next_producer_id is None and not (
            self.topics or self.deleted_topics or self.configs or self.features or self.brokers or self.acls or self.quotas
        )

    def note_topic(self, topic: Topic) -> None:
        """Note a new topic."""
        self.topics[topic.topic_id] = TopicDelta(topic, True, {}, {})

    def note_partition(self, topic: Topic, record: PartitionRecord, *, is_new: bool) -> None:
        """Note a new or changed partition of ``topic``."""
        noted = self.topics.get(topic.topic_id)
        if noted is None:
            noted = self.topics[topic.topic_id] = TopicDelta(topic, False, {}, {})
        partitions = noted.created if is_new or record.partition_id in noted.created else noted.changed
        partitions[record.partition_id] = record

    def note_deleted(self, topic: Topic) -> None:
        """Note a deleted topic."""
        noted = self.topics.pop(topic.topic_id, None)
        if noted is None or not noted.is_new:
            self.deleted_topics.append(topic)
