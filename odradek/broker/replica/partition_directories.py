"""Keeps directories and partitions in step with the cluster's metadata.

The metadata log is the truth; a partition's directory follows it. What a kill between the two leaves undone,
``metadata.reconcile`` settles at the next start.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.config.dynamic import ResourceType
from odradek.broker.logging import log
from odradek.broker.metadata.delta import MetadataDelta
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.topic import Topic
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partitions import Partitions
from odradek.protocol.errors import KafkaError
from odradek.protocol.metadata_records import PartitionRecord
from odradek.storage.data_directory import DataDirectory
from odradek.storage.log_config import LogConfig
from odradek.storage.log_manager import LogManager

if TYPE_CHECKING:
    from odradek.broker.server import Broker


class PartitionDirectories:
    """A publisher of the controller's. Loop thread only."""

    def __init__(self, broker: "Broker", log_manager: LogManager, image: MetadataImage) -> None:
        self._broker = broker
        self._log_manager = log_manager
        self._image = image
        # Soon, and not from within what met the error.
        log_manager.on_failure = lambda directory: broker.timer.call_after(0, lambda: self.directory_failed(directory))

    def lead_all(self) -> None:
        """At start, once the logs are open (``metadata.reconcile``): take up leadership of all there is."""
        for topic in self._image.topics.values():
            self._lead(topic, [topic.partitions[index] for index in sorted(topic.partitions)])

    def places(self) -> list[tuple[UUID, int, UUID]]:
        """Where the logs are that serve: (topic id, partition, directory id)."""
        found = []
        for partition in self._broker.partitions:
            if partition.log is not None:
                identity = self._log_manager.home_of(partition.log).identity
                if identity is not None:
                    found.append((partition.topic_id, partition.index, identity.directory_id))
        return found

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Part of MetadataPublisher."""
        for topic in delta.deleted_topics:
            self._delete(topic)
        for topic, partitions in delta.new_partitions:
            self._lead(topic, partitions)
        for topic, partitions in delta.changed_partitions:
            self._change(topic, partitions)

    def _change(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        """Take the role that each of ``partitions`` has for this broker now."""
        for record in partitions:
            partition = self._broker.partitions.get(topic.name, record.partition_id)
            if partition is None:
                continue
            if record.leader == self._broker.node_id:
                partition.become_leader(record.leader_epoch)
            else:
                partition.become_follower(record.leader, record.leader_epoch)

    def _lead(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        config = self._log_config(topic.name)
        for record in partitions:
            if self._broker.node_id in record.replicas:
                self._broker.partitions.add(self._partition(topic, record, config))

    def _delete(self, topic: Topic) -> None:
        for partition in self._broker.partitions.remove_topic(topic.name):
            self._broker.moves.cancel((topic.name, partition.index))
            partition.delete()
            try:
                self._log_manager.delete(topic.name, partition.index)
            except OSError as error:
                log.error("a deleted partition's directory stays", error, topic=topic.name, partition=partition.index)
        try:
            self._log_manager.removed_logs.sync()
        except OSError as error:
            log.error("a loss of power may bring a deleted topic's partitions back", error, topic=topic.name)
        self._broker.housekeeping.remove_deleted_after(self._broker.config["log.segment.delete.delay.ms"])

    def directory_failed(self, directory: DataDirectory) -> None:
        """Take the partitions of a directory that has failed offline; the broker ends where that was the last, or metadata's."""
        for key in self._log_manager.take_offline(directory):
            partition = self._broker.partitions.get(*key)
            if partition is not None:
                partition.take_offline(directory.failure)
                partition.flush_failed()
                self._broker.produce_purgatory.check_and_complete(partition)
        self._broker.moves.directory_failed(directory)
        if directory is self._log_manager.directories.metadata:
            self._broker.fail(f"the data directory of the metadata log, {directory.path}, does not work: {directory.failure}")
        elif not self._log_manager.directories.online:
            self._broker.fail(f"no data directory works; the last, {directory.path}: {directory.failure}")

    def _partition(self, topic: Topic, record: PartitionRecord, config: LogConfig) -> Partition:
        key = (topic.name, record.partition_id)
        found = self._log_manager.logs.get(key)
        reason = self._log_manager.offline.get(key, "")
        if found is None and not reason:
            try:
                found = self._log_manager.create(
                    topic.name,
                    record.partition_id,
                    topic.topic_id,
                    config,
                    now_ms=self._broker.clock.now_ms(),
                    directory=self._log_manager.directories.with_id(record.directories[0]),
                )
            except (KafkaError, OSError) as error:
                reason = str(error)
                log.error("a partition cannot be created", error, topic=topic.name, partition=record.partition_id)
        partition = Partition(
            topic.name,
            record.partition_id,
            topic.topic_id,
            record.leader_epoch,
            found,
            self._broker.fetch_purgatory.check_and_complete,
            reason,
        )
        if record.leader != self._broker.node_id:
            partition.become_follower(record.leader, record.leader_epoch)
        return partition

    def _log_config(self, topic: str) -> LogConfig:
        return self._broker.config.log_config(self._image.configs(ResourceType.TOPIC, topic))


class LogConfigs:
    """Puts topics' configs in force in the logs that are open; the broker's are the defaults of any topic's."""

    def __init__(self, partitions: Partitions, log_config_for: Callable[[str], LogConfig]) -> None:
        self._partitions = partitions
        self._log_config_for = log_config_for

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Part of MetadataPublisher."""
        names = {name for kind, name in delta.configs if kind == ResourceType.TOPIC}
        if any(kind == ResourceType.BROKER for kind, _ in delta.configs):
            names |= image.topics.keys()
        for name in names:
            config = self._log_config_for(name)
            for partition in self._partitions.of_topic(name).values():
                if partition.log is not None:
                    partition.log.config = config
