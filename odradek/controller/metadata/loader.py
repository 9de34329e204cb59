"""Loads the metadata log into the image: all of it at a start, batch by batch if another node writes the log.

Kafka's controller writes a BeginTransactionRecord and an EndTransactionRecord around records that must not be seen in part. They
take effect at the end; an AbortTransactionRecord drops them (KIP-868). A transaction still open at the log's end belongs to a
controller that has stopped. The next one to append aborts it, as Kafka's next active controller does.

If a snapshot replaces the image, publishers get the difference between the two as a delta.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from odradek.controller.metadata.client_quotas import ClientQuotas, QuotaEntity
from odradek.controller.metadata.delta import MetadataDelta, TopicDelta
from odradek.controller.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.metadata_log import MetadataBatch, MetadataUnreadable
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records import MetadataRecord, kind_of

_BEGIN, _END, _ABORT = 23, 24, 25


class MetadataLoader:
    """Replays batches into ``image``."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._delta = MetadataDelta()
        self._open: list[MetadataRecord] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Return whether a metadata transaction is open."""
        return self._open is not None

    def load(self, batches: Iterable[MetadataBatch], path_at: Callable[[int], str]) -> None:
        """Replay all of ``batches``. ``path_at`` returns the file of an offset. Raises MetadataUnreadable."""
        for batch in batches:
            self.replay(batch, path_at)

    def replay(self, batch: MetadataBatch, path_at: Callable[[int], str]) -> None:
        """Replay one batch. Raises MetadataUnreadable."""
        for offset, record in enumerate(batch.records, batch.base_offset):
            try:
                self._take(record)
            except MalformedMessage as error:
                raise MetadataUnreadable(path_at(offset), offset, error) from error

    def take_delta(self) -> MetadataDelta:
        """Return the changes since the last call."""
        delta, self._delta = self._delta, MetadataDelta()
        return delta

    def begin_anew(self) -> None:
        """Drop an open transaction, as a snapshot has replaced the image."""
        self._open = None

    def _take(self, record: MetadataRecord) -> None:
        kind = kind_of(record)
        if kind == _BEGIN:
            if self._open is not None:
                raise MalformedMessage("a metadata transaction begins inside another one")
            self._open = []
        elif kind in (_END, _ABORT):
            if self._open is None:
                raise MalformedMessage("a metadata transaction ends without a beginning")
            records, self._open = self._open, None
            if kind == _END:
                self._image.replay(records, self._delta)
        elif self._open is not None:
            self._open.append(record)
        else:
            self._image.replay((record,), self._delta)


K = TypeVar("K")
V = TypeVar("V")


def difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """Return the delta from ``old`` to ``new``. A topic in both is represented by the object of ``old``."""
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
    """Yield changed overrides. A deleted topic's overrides go with it, so a topic recreated under its name reports its own."""
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
