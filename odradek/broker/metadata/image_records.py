"""The image as records: a snapshot's, in the order in which Kafka's ``ImageWriter`` writes them."""

from collections.abc import Iterator

from odradek.broker.metadata.features import METADATA_VERSION
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TopicRecord,
)

# The broker and the epoch of a block of producer ids, which an image does not have.
_NO_BROKER = -1


def records_of(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Records that make the same image of an empty one, but for the ids of topics that are deleted.

    A snapshot begins with the metadata version, which says how to read the rest.
    """
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from image.kept.records()
    yield from image.quotas.records()
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        yield from topic.partitions.values()
    for resource_type, resource_name, name, value in image.overrides:
        yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=_NO_BROKER, next_producer_id=image.next_producer_id)
