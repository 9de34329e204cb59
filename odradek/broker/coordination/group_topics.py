"""The topics of the metadata image, in the form that consumer groups need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.consumer.topics import SubscribedTopic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.controller.metadata.image import MetadataImage
    from odradek.protocol.metadata_records import PartitionRecord


class ImageTopics:
    """The topics of the image. Implements ``coordinator.group.consumer.topics.Topics``."""

    def __init__(self, services: CoordinatorServices) -> None:
        self._services = services

    @property
    def _image(self) -> MetadataImage:
        return self._services.controller.image

    @property
    def version(self) -> int:
        """The offset of the newest metadata record."""
        return self._services.controller.log_end_offset - 1

    def find(self, name: str) -> SubscribedTopic | None:
        """Return the topic of that name, or None."""
        topic = self._image.topics.get(name)
        if topic is None:
            return None
        return SubscribedTopic(topic.topic_id, name, len(topic.partitions), self._racks(topic.partitions))

    def name_of(self, topic_id: UUID) -> str | None:
        """Return the name of a topic, or None."""
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Sequence[str]:
        """Return all topic names."""
        return list(self._image.topics)

    def _racks(self, partitions: dict[int, PartitionRecord]) -> Sequence[Sequence[str]]:
        """Return the registered racks of each partition's replicas; empty if no broker has a rack."""
        brokers = self._image.kept.brokers
        racks = {broker_id: broker.rack for broker_id, broker in brokers.items() if broker.rack is not None}
        own: str | None = self._services.config["broker.rack"]
        if not brokers and own is not None:
            racks[self._services.config["node.id"]] = own
        if not racks:
            return ()
        return [
            [rack for each in partitions[index].replicas if (rack := racks.get(each)) is not None]
            for index in range(len(partitions))
        ]
