"""From one image to another: what a snapshot changes that replaces the image, as the delta that its publishers are told."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from odradek.broker.metadata.client_quotas import ClientQuotas, QuotaEntity
from odradek.broker.metadata.delta import MetadataDelta, TopicDelta
from odradek.broker.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.broker.metadata.topic import Topic

K = TypeVar("K")
V = TypeVar("V")


def difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """What makes ``new`` of ``old``. A topic that is in both is told as the object that ``old`` has."""
    delta = MetadataDelta()
    for topic_id, topic in old.topics_by_id.items():
        if topic_id not in new.topics_by_id:
            delta.note_deleted(topic)
    for topic_id, topic in new.topics_by_id.items():
        known = old.topics_by_id.get(topic_id)
        if known is None:
            delta.topics[topic_id] = TopicDelta(topic, True, dict(topic.partitions), {})
        elif known.partitions != topic.partitions:
            delta.topics[topic_id] = _changed(known, topic)
    delta.configs = dict.fromkeys(_configs_that_differ(old, new, {topic.name for topic in delta.deleted_topics}))
    delta.features = {name: new.features.get(name, 0) for name in _keys_that_differ(old.features, new.features)}
    if old.next_producer_id != new.next_producer_id:
        delta.next_producer_id = new.next_producer_id
    brokers = old.kept.brokers, new.kept.brokers
    acls = old.kept.acls, new.kept.acls
    delta.acls = {acl_id: acls[1].get(acl_id) for acl_id in _keys_that_differ(*acls)}
    delta.brokers = {broker_id: brokers[1].get(broker_id) for broker_id in _keys_that_differ(*brokers)}
    delta.quotas = _values(old.quotas) != _values(new.quotas)
    return delta


def _values(quotas: ClientQuotas) -> dict[QuotaEntity, Mapping[str, float]]:
    return {entity: quotas.values(entity) for entity in quotas}


def _changed(known: Topic, topic: Topic) -> TopicDelta:
    created, changed = {}, {}
    for index, partition in topic.partitions.items():
        if index not in known.partitions:
            created[index] = partition
        elif partition != known.partitions[index]:
            changed[index] = partition
    return TopicDelta(known, False, created, changed)


def _configs_that_differ(old: MetadataImage, new: MetadataImage, deleted: set[str]) -> Iterator[tuple[int, str]]:
    """The overrides of a deleted topic go with it: a topic made anew under its name is told its own, equal ones too."""
    before = {key: found for key, found in _overrides(old).items() if key[0] != TOPIC_RESOURCE or key[1] not in deleted}
    yield from (key for key in _keys_that_differ(before, _overrides(new)) if key[0] != TOPIC_RESOURCE or key[1] in new.topics)


def _overrides(image: MetadataImage) -> dict[tuple[int, str], dict[str, str]]:
    found: dict[tuple[int, str], dict[str, str]] = {}
    for resource_type, resource_name, name, value in image.overrides:
        found.setdefault((resource_type, resource_name), {})[name] = value
    return found


def _keys_that_differ(old: Mapping[K, V], new: Mapping[K, V]) -> Iterator[K]:
    yield from (key for key in old if key not in new)
    yield from (key for key, value in new.items() if key not in old or old[key] != value)
