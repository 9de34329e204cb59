"""The controller of a single broker, in its process: a cluster of one, with its ``ClusterMetadata``.

The broker needs no session. The controller registers it at the start and fences it at the stop. So Apache Kafka, started on the
same directory, need not wait for a session to expire. The broker's requests to its controller are plain calls.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from odradek.common.context import RequestContext
from odradek.common.logging import log as broker_log
from odradek.controller.cluster.controller import Controller, decided
from odradek.controller.cluster.partition_changes import change_of, directories_offline, fence_only, fenced
from odradek.controller.metadata.auto_topic_creation import internal_topic
from odradek.controller.metadata.cluster_metadata import ProducerIdManager
from odradek.controller.metadata.cluster_view import ClusterView, directory_of
from odradek.controller.metadata.decisions import NewTopic, Take, TopicResult
from odradek.controller.metadata.image import TOPIC_RESOURCE
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.topic import INTERNAL_TOPICS, Topic
from odradek.controller.metadata.writer import ControllerHost
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import MetadataRecord
from odradek.protocol.metadata_records.base import NO_LEADER_CHANGE
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from odradek.storage.log.log_config import LogConfig
from odradek.timing.reply import Reply


class LoneController(Controller):
    """The controller and ClusterMetadata of a single broker. ``image`` is read-only for others."""

    def __init__(
        self,
        log: MetadataLog,
        host: ControllerHost,
        *,
        broker: RegisterBrokerRecord,
        directory_counts: Callable[[], dict[UUID, int]],
    ) -> None:
        """Replay ``log``, and register ``broker`` unless it is already registered as it is now.

        ``directory_counts`` returns the number of its partitions in each working data directory, by directory id. Raises
        MetadataUnreadable, KafkaError if the log fails.
        """
        self._broker = broker
        self.next_producer_id = ProducerIdManager(self.allocate_producer_id_block).next_producer_id
        super().__init__(log, host, broker.broker_id, directory_counts)

    def close(self) -> None:
        """Fence the broker until its next start, and close the metadata log."""
        if not self._log.has_failed:
            try:
                self._log.append([fence_only(self.view.brokers[self.node_id])], now_ms=self.clock.now_ms())
            except KafkaError as error:
                broker_log.warn("cannot fence the broker at its stop", reason=error.reason)
        super().close()

    def directory_failed(self, directory_id: UUID) -> None:
        """Leave the partitions in a failed directory without a leader."""
        self._operate(lambda: (None, directories_offline(self.view, self.view.brokers[self.node_id], [directory_id])))

    def _usable_brokers(self) -> dict[int, bool]:
        return {self.node_id: False}

    def log_config_for(self, topic_name: str) -> LogConfig:
        """Return the configs of a topic's logs; for a missing topic, the broker's defaults."""
        return self._config.log_config(self.image.configs(TOPIC_RESOURCE, topic_name))

    def auto_create(
        self,
        names: Iterable[str | NewTopic],
        context: RequestContext | None = None,  # noqa: ARG002
        take: Take | None = None,
        configs: Sequence[tuple[str, str]] = (),
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Create the missing topics of ``names`` at once."""
        wanted = [name if isinstance(name, NewTopic) else self._new_topic(name, configs) for name in dict.fromkeys(names)]
        return self._operate(lambda: decided(self._deciding_on_topics(wanted, only_missing=True, take=take)))

    def _new_topic(self, name: str, configs: Sequence[tuple[str, str]]) -> NewTopic:
        return internal_topic(name, self._config) if name in INTERNAL_TOPICS else NewTopic(name=name, configs=configs)

    def ensure_internal_topic(self, name: str) -> Reply[Topic | KafkaError]:
        """Return the internal topic ``name``, created if it is missing."""

        def topic_of(outcome: list[TopicResult] | KafkaError) -> Topic | KafkaError:
            if isinstance(outcome, KafkaError):
                return outcome
            return next((result.error for result in outcome if result.error is not None), None) or self.image.topics[name]

        return self.auto_create([name]).then(topic_of)

    def allocate_producer_id_block(self) -> Reply[range | KafkaError]:
        """Allocate a block of producer ids for the broker."""
        return self._operate(lambda: self._producer_id_block(self.node_id))

    def record_directories(self, places: Iterable[tuple[UUID, int, UUID]]) -> None:
        """Record at start where partitions lie: (topic id, partition, directory id). Raises KafkaError if the log fails.

        A partition recorded in another, lost directory gets its leader back.
        """
        records = self._directory_changes(places)
        self._commit(records)
        if records:
            self._commit(list(_led_here(self.view)))

    def record_move(self, topic_id: UUID, partition: int, directory_id: UUID) -> Reply[KafkaError | None]:
        """Record the new directory of a partition."""
        return self._operate(lambda: (None, self._directory_changes([(topic_id, partition, directory_id)])))

    def _directory_changes(self, places: Iterable[tuple[UUID, int, UUID]]) -> Sequence[MetadataRecord]:
        """Return the records for ``places`` that the image does not have yet. A topic may be deleted by now."""
        records: list[MetadataRecord] = []
        for topic_id, index, directory_id in places:
            topic = self.image.topics_by_id.get(topic_id)
            partition = None if topic is None else topic.partitions.get(index)
            if topic is None or partition is None or directory_of(partition, self.node_id) == directory_id:
                continue
            change = change_of(self.view, topic, partition)
            change.directories[self.node_id] = directory_id
            record = change.record()
            records += [] if record is None else [record]
        return records

    def _without_broker(self, broker_id: int) -> Sequence[MetadataRecord]:
        if broker_id == self.node_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a broker that is its own controller cannot be unregistered")
        return super()._without_broker(broker_id)

    def _first_records(self) -> Sequence[MetadataRecord]:
        return (*super()._first_records(), self._broker)

    def _take_over(self) -> None:
        """Register the broker, fence others, and lead the partitions here."""
        own = self._broker
        brokers = self.view.brokers
        known = brokers.get(self.node_id)
        if known is not None and not set(known.log_dirs) <= set(own.log_dirs):
            lost = [each for each in known.log_dirs if each not in own.log_dirs]
            self._commit(directories_offline(self.view, known, lost))
        if known is None or not _is_same(known, own):
            self._commit([own._replace(broker_epoch=self._log.end_offset)])
        for broker in [each for each in brokers.values() if each.broker_id != self.node_id and not each.fenced]:
            self._commit(fenced(self.view, broker))
        self._commit(list(_led_here(self.view)))


def _is_same(known: RegisterBrokerRecord, own: RegisterBrokerRecord) -> bool:
    """Return whether ``known`` equals the registration of ``own``, except for the epoch and fields set by others."""
    return known == own._replace(
        broker_epoch=known.broker_epoch, incarnation_id=known.incarnation_id, cordoned_log_dirs=known.cordoned_log_dirs
    )


def _led_here(view: ClusterView) -> Iterator[MetadataRecord]:
    """Yield changes that make this node the leader, and the in-sync set, of every partition with a working replica here.

    A Kafka broker that stops gracefully gives up its leaderships: its controller records no leader, an empty in-sync set, and
    that the broker is eligible to lead (KIP-966). When the broker is back, it is elected. odradek's broker keeps its leaderships
    when it stops. So this concerns data directories that Kafka has used, and directories that had failed.
    """
    node_id = view.node_id
    for _, partition in view.image.partitions():
        is_elected = partition.leader == node_id and partition.isr == (node_id,)
        if is_elected or not view.is_online(partition, node_id):
            continue
        yield PartitionChangeRecord(
            topic_id=partition.topic_id,
            partition_id=partition.partition_id,
            leader=NO_LEADER_CHANGE if partition.leader == node_id else node_id,
            isr=(node_id,),
            eligible_leader_replicas=() if partition.eligible_leader_replicas else None,
            last_known_elr=() if partition.last_known_elr else None,
        )
