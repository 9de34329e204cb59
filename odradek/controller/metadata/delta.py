"""What a batch of metadata records changed, as those are told who keep in step with the image.

Replaying records into a ``MetadataImage`` notes each change here. A topic that is created and deleted by the same batch leaves no
trace: nobody has known it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.metadata.topic import Topic
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.protocol.metadata_records.security import AccessControlEntryRecord


class TopicDelta(NamedTuple):
    """A topic whose partitions changed: those that are new, and those that are as they are now; by index."""

    topic: Topic
    is_new: bool
    created: dict[int, PartitionRecord]
    changed: dict[int, PartitionRecord]


class MetadataDelta:
    """Changes of topics, configs, features, producer ids, nodes, rights and quotas; an attribute is empty where nothing changed.

    ``configs`` are the (resource type, resource name) whose overrides changed. ``features`` are by name, 0 for one that is gone.
    ``brokers`` are registrations by broker id, ``acls`` access control entries by id, None for one that is gone. ``quotas`` says
    whether client quotas changed.
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
        """The partitions that are new, by topic; those of a new topic are all that it has."""
        return [(each.topic, list(each.created.values())) for each in self.topics.values() if each.created]

    @property
    def changed_partitions(self) -> list[tuple[Topic, Sequence[PartitionRecord]]]:
        """The partitions that were there and have changed, by topic."""
        return [(each.topic, list(each.changed.values())) for each in self.topics.values() if each.changed]

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has changed of what is noted here."""
        return self.next_producer_id is None and not (
            self.topics or self.deleted_topics or self.configs or self.features or self.brokers or self.acls or self.quotas
        )

    def note_topic(self, topic: Topic) -> None:
        """``topic`` is new."""
        self.topics[topic.topic_id] = TopicDelta(topic, True, {}, {})

    def note_partition(self, topic: Topic, record: PartitionRecord, *, is_new: bool) -> None:
        """A partition of ``topic`` is new, or has changed."""
        noted = self.topics.get(topic.topic_id)
        if noted is None:
            noted = self.topics[topic.topic_id] = TopicDelta(topic, False, {}, {})
        partitions = noted.created if is_new or record.partition_id in noted.created else noted.changed
        partitions[record.partition_id] = record

    def note_deleted(self, topic: Topic) -> None:
        """``topic`` is gone."""
        noted = self.topics.pop(topic.topic_id, None)
        if noted is None or not noted.is_new:
            self.deleted_topics.append(topic)
