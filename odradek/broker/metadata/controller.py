"""The controller: the one writer of the cluster's metadata.

Every operation decides (``decisions``, pure), appends its records as one synced batch to the metadata log, replays them into the
image, and publishes what they changed (``publishing``): to partitions, coordinators and configs. An operation that was answered
is therefore on disk, and one that was not is there whole or not at all. ``Reconciliation`` finishes at the next start what a
publisher could not finish.

Synchronous, on the loop thread: an operation costs one fsync, and metadata changes seldom.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID, uuid4

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata import decisions
from odradek.broker.metadata.decisions import NewPartitions, NewTopic, Placement, TopicResult
from odradek.broker.metadata.elections import elect
from odradek.broker.metadata.features import BOOTSTRAP_RECORDS, update_features
from odradek.broker.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.broker.metadata.internal_topics import internal_topic
from odradek.broker.metadata.loader import MetadataLoader
from odradek.broker.metadata.metadata_log import MetadataBatch, MetadataLog
from odradek.broker.metadata.publishing import MetadataPublisher, Publishers, PublishingOrder
from odradek.broker.metadata.snapshot_generator import SnapshotGenerator
from odradek.broker.metadata.topic import Topic
from odradek.broker.metadata.topic_names import INTERNAL_TOPICS
from odradek.protocol.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from odradek.storage.log_config import LogConfig
from odradek.timing.background import Background, InlineBackground
from odradek.timing.clock import Clock

PRODUCER_ID_BLOCK_SIZE = 1000

ConfigChange = tuple[int, str, str, str | None]


class Controller:
    """Topics, configs, features and producer ids of a cluster of one broker. ``image`` is to be read, never written."""

    def __init__(
        self,
        log: MetadataLog,
        *,
        node_id: int,
        directory_counts: Callable[[], dict[UUID, int]],
        config: BrokerConfig,
        clock: Clock,
        background: Background | None = None,
        new_topic_id: Callable[[], UUID] = uuid4,
    ) -> None:
        """Replay ``log``, and give it its first records if it is new. Raises MetadataUnreadable, KafkaError if the log fails.

        ``directory_counts`` says how many partitions there are in each data directory that works, by its id.
        """
        self.image = MetadataImage()
        self.node_id = node_id
        self._log = log
        self._config = config
        self.clock = clock
        self._new_topic_id = new_topic_id
        self._publishers = Publishers()
        self._producer_ids = iter(range(0))
        self._placement = Placement(
            node_id=node_id,
            directory_counts=directory_counts,
            default_partitions=config["num.partitions"],
            default_replication_factor=config["default.replication.factor"],
        )
        self._snapshots = SnapshotGenerator(log, self.image, config, clock, background or InlineBackground())
        self._load()

    @property
    def log_end_offset(self) -> int:
        """The offset after the last metadata record; one less is the epoch of the finalized features."""
        return self._log.end_offset

    def log_config_for(self, topic_name: str) -> LogConfig:
        """What the logs of a topic act on; for one that is not there, the broker's defaults."""
        return self._config.log_config(self.image.configs(TOPIC_RESOURCE, topic_name))

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Tell ``publisher`` of every later change, when it is committed and in the image."""
        self._publishers.add(publisher, order)

    def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicResult]:
        """Create ``topics``, each by itself; duplicates are answered once, at the end. Raises KafkaError if the log fails."""
        decision = decisions.create_topics(
            self.image, topics, self._placement, self._config.validate_topic_configs, self._new_topic_id
        )
        if not validate_only:
            self._commit(decision.records)
        return decision.results

    def auto_create(self, names: Iterable[str]) -> list[TopicResult]:
        """Create those of ``names`` that are not there, with the broker's defaults, or as the coordinators want their own."""
        missing = [name for name in dict.fromkeys(names) if name not in self.image.topics]
        return self.create_topics(
            [internal_topic(name, self._config) if name in INTERNAL_TOPICS else NewTopic(name=name) for name in missing]
        )

    def ensure_internal_topic(self, name: str) -> Topic:
        """The internal topic ``name``, created if it is not there. Raises KafkaError where it cannot be."""
        for result in self.auto_create([name]):
            if result.error is not None:
                raise result.error
        return self.image.topics[name]

    def delete_topics(self, topic_ids: Iterable[UUID]) -> set[UUID]:
        """Delete topics and tell which were there to delete. Raises KafkaError if the log fails."""
        topics = [
            self.image.topics_by_id[topic_id] for topic_id in dict.fromkeys(topic_ids) if topic_id in self.image.topics_by_id
        ]
        self._commit([RemoveTopicRecord(topic_id=topic.topic_id) for topic in topics])
        return {topic.topic_id for topic in topics}

    def create_partitions(self, topics: Sequence[NewPartitions], *, validate_only: bool = False) -> list[TopicResult]:
        """Add partitions to ``topics``, each by itself. Raises KafkaError if the log fails."""
        decision = decisions.create_partitions(self.image, topics, self._placement)
        if not validate_only:
            self._commit(decision.records)
        return decision.results

    def alter_configs(self, changes: Sequence[ConfigChange]) -> None:
        """Set configs, validated by the caller: (resource type, resource name, config, value or None to remove it).

        All or nothing. Raises KafkaError if the log fails.
        """
        self._commit(
            [
                ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
                for resource_type, resource_name, name, value in changes
            ]
        )

    def update_features(self, updates: Iterable[tuple[str, int, int]], *, validate_only: bool = False) -> None:
        """Finalize feature levels: (feature, level, upgrade type), all or nothing.

        Raises KafkaError(INVALID_UPDATE_VERSION), or what the log raises.
        """
        records = update_features(self.image.features, updates, self.node_id)
        if not validate_only:
            self._commit(records)

    def allocate_producer_id_block(self) -> range:
        """PRODUCER_ID_BLOCK_SIZE producer ids that nobody had and nobody will have. Raises KafkaError if the log fails."""
        start = self.image.next_producer_id
        block = range(start, start + PRODUCER_ID_BLOCK_SIZE)
        self._commit([ProducerIdsRecord(broker_id=self.node_id, next_producer_id=block.stop)])
        return block

    def next_producer_id(self) -> int:
        """A producer id nobody had, from the block at hand or from a new one. Raises KafkaError if the log fails."""
        producer_id = next(self._producer_ids, None)
        if producer_id is None:
            self._producer_ids = iter(self.allocate_producer_id_block())
            producer_id = next(self._producer_ids)
        return producer_id

    def record_directories(self, places: Iterable[tuple[UUID, int, UUID]]) -> None:
        """Record where partitions lie: (topic id, partition, directory id). Raises KafkaError if the log fails."""
        places = [place for place in places if self.image.topics_by_id[place[0]].partitions[place[1]].directories != (place[2],)]
        if places:
            from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord

            self._commit(
                [
                    PartitionChangeRecord(topic_id=topic_id, partition_id=partition, directories=(directory_id,))
                    for topic_id, partition, directory_id in places
                ]
            )

    def close(self) -> None:
        """Close the metadata log."""
        self._log.close(now_ms=self.clock.now_ms())

    def _load(self) -> None:
        """Replay what the log has, and bring it to where this controller may append to it."""
        loader = MetadataLoader(self.image)
        loader.load(self._log.read_snapshot(), lambda _: self._log.snapshot_path)
        loader.load(self._behind_snapshot(), self._log.path_at)
        if loader.is_in_transaction:
            from odradek.protocol.metadata_records.log_control import AbortTransactionRecord

            reason = "The controller that began it has stopped."
            self._log.append([AbortTransactionRecord(reason=reason)], now_ms=self.clock.now_ms())
        if not self.image.features:
            self._commit(BOOTSTRAP_RECORDS)
        self._commit(list(elect(self.image, self.node_id)))

    def _behind_snapshot(self) -> Iterator[MetadataBatch]:
        for batch in self._log.read_all():
            self._snapshots.found(batch.size_bytes)
            yield batch

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            size_bytes = self._log.append(records, now_ms=self.clock.now_ms())
            self._publishers.publish(self.image.replay(records), self.image)
            # After the publishers: a snapshot has forgotten what was deleted, and directories are to be gone by then.
            self._snapshots.appended(size_bytes)
