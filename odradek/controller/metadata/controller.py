"""The controller: the one writer of the cluster's metadata.

Every operation decides (``decisions``, pure), appends its records as one synced batch to the metadata log, replays them into the
image, and publishes what they changed (``cluster_metadata``): to partitions, coordinators and configs. An operation that was
answered is therefore on disk, and one that was not is there whole or not at all. ``Reconciliation`` finishes at the next start
what a publisher could not finish.

An operation answers by a Reply, as that of a controller in another process will: it is completed when the records are committed.
Here that is before the call returns, on the loop thread, for one fsync; metadata changes seldom. The records of a large operation
are encoded, and brought into the image, in slices. The operations submitted meanwhile are queued.
"""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from odradek.common.config import BrokerConfig
from odradek.common.config.dynamic import ConfigView
from odradek.common.context import RequestContext
from odradek.common.logging import LineLimit
from odradek.common.logging import log as broker_log
from odradek.controller.metadata import decisions
from odradek.controller.metadata.cluster_metadata import MetadataPublisher, Publishers, PublishingOrder
from odradek.controller.metadata.decisions import NewPartitions, NewTopic, Take, TopicResult, parts
from odradek.controller.metadata.elections import elect
from odradek.controller.metadata.features import (
    BOOTSTRAP_RECORDS,
    ELIGIBLE_LEADER_REPLICAS,
    KRAFT_VERSION,
    one_min_isr,
    unknown_level,
    update_features,
)
from odradek.controller.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.internal_topics import internal_topic
from odradek.controller.metadata.loader import MetadataLoader
from odradek.controller.metadata.metadata_log import MetadataBatch, MetadataLog, UnknownFeatureLevel
from odradek.controller.metadata.placement import Placement, PlacementHere
from odradek.controller.metadata.producer_ids import ProducerIdManager
from odradek.controller.metadata.snapshot_generator import SnapshotGenerator
from odradek.controller.metadata.topic import INTERNAL_TOPICS, Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import Background, InlineBackground
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices

if TYPE_CHECKING:
    from odradek.common.acls import AclBinding, AclFilter
    from odradek.controller.metadata.acls import Created, Deleted
    from odradek.protocol.message_types.alter_client_quotas import AlterClientQuotasRequest
    from odradek.protocol.message_types.alter_client_quotas import EntryData as AlteredQuotas
    from odradek.protocol.message_types.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResult,
    )

PRODUCER_ID_BLOCK_SIZE = 1000
# Records that are committed at once, in some milliseconds; and those that are brought into the image together.
_AT_ONCE: Final = 250
_REPLAYED_TOGETHER: Final = 200

ConfigChange = tuple[int, str, str, str | None]

T = TypeVar("T")


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
        new_topic_id: Callable[[], UUID],
        background: Background | None = None,
        slices: Slices | None = None,
    ) -> None:
        """Replay ``log``, and give it its first records if it is new. Raises MetadataUnreadable, KafkaError if the log fails.

        ``directory_counts`` says how many partitions there are in each data directory that works, by its id. Without ``slices``
        all operations are carried out at once.
        """
        self.image = MetadataImage()
        self.node_id = node_id
        self._log = log
        self._config = config
        self.clock = clock
        self._new_topic_id = new_topic_id
        self._publishers = Publishers()
        # Where the clock stands still, all work is done within the first slice.
        self._slices = slices or Slices(lambda: 0.0, lambda _: None)
        # Whether the records of a large operation are being encoded, and the operations that wait for it.
        self._is_committing = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._line_limit = LineLimit(clock)
        self.next_producer_id = ProducerIdManager(self.allocate_producer_id_block).next_producer_id
        self._placement: Placement = PlacementHere(
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

    @property
    def kraft_version(self) -> int:
        """Part of ClusterMetadata."""
        return self._log.kraft_version

    def log_config_for(self, topic_name: str) -> LogConfig:
        """What the logs of a topic act on; for one that is not there, the broker's defaults."""
        return self._config.log_config(self.image.configs(TOPIC_RESOURCE, topic_name))

    def config_view(self, config: BrokerConfig) -> ConfigView:
        """What alterations of configs are decided upon, in a process with ``config``."""
        image = self.image
        has_elr = image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        return ConfigView(config, image.configs, image.topics.__contains__, has_elr=has_elr)

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Tell ``publisher`` of every later change, when it is committed and in the image."""
        self._publishers.add(publisher, order)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, take: Take | None = None
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Create ``topics``, each by itself; the results of duplicates come once, at the end. ``take`` as for the decision."""
        deciding = self._deciding_on_topics(topics, validate_only=validate_only, take=take)
        return self._operate_in_slices(deciding) if len(topics) > _AT_ONCE else self._operate(lambda: _decided(deciding))

    def _deciding_on_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, only_missing: bool = False, take: Take | None = None
    ) -> Generator[None, None, tuple[list[TopicResult], Sequence[MetadataRecord]]]:
        wanted = [topic for topic in topics if not only_missing or topic.name not in self.image.topics]
        decision = yield from decisions.deciding_on_topics(
            self.image, wanted, self._placement, self._config.validate_topic_configs, self._new_topic_id, take
        )
        return decision.results, [] if validate_only else decision.records

    def auto_create(
        self,
        names: Iterable[str],
        context: RequestContext | None = None,  # noqa: ARG002
        take: Take | None = None,
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Part of ClusterMetadata."""
        wanted = [self._internal_topic(name) if name in INTERNAL_TOPICS else NewTopic(name=name) for name in dict.fromkeys(names)]
        return self._operate(lambda: _decided(self._deciding_on_topics(wanted, only_missing=True, take=take)))

    def _internal_topic(self, name: str) -> NewTopic:
        """What the coordinators want ``name`` to be."""
        return internal_topic(name, self._config)

    def ensure_internal_topic(self, name: str) -> Reply[Topic | KafkaError]:
        """The internal topic ``name``, created if it is not there."""

        def topic_of(outcome: list[TopicResult] | KafkaError) -> Topic | KafkaError:
            if isinstance(outcome, KafkaError):
                return outcome
            return next((result.error for result in outcome if result.error is not None), None) or self.image.topics[name]

        return self.auto_create([name]).then(topic_of)

    def delete_topics(self, topic_ids: Iterable[UUID]) -> Reply[set[UUID] | KafkaError]:
        """Delete topics; those that were there to delete."""
        wanted = dict.fromkeys(topic_ids)

        def decide() -> tuple[set[UUID], Sequence[MetadataRecord]]:
            found = [topic_id for topic_id in wanted if topic_id in self.image.topics_by_id]
            return set(found), [RemoveTopicRecord(topic_id=topic_id) for topic_id in found]

        return self._operate(decide)

    def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, take: Take | None = None
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Add partitions to ``topics``, each by itself. ``take`` as for the decision."""

        def decide() -> tuple[list[TopicResult], Sequence[MetadataRecord]]:
            decision = decisions.create_partitions(self.image, topics, self._placement, take)
            return decision.results, [] if validate_only else decision.records

        return self._operate(decide)

    def alter_configs(self, changes: Sequence[ConfigChange]) -> Reply[KafkaError | None]:
        """Set configs, validated by the caller, all or nothing.

        A change is (resource type, resource name, config, value or None to remove it).
        """
        # A topic may have been deleted since the caller has looked.
        return self._operate(lambda: (None, self._config_records(changes)))

    def alter_many_configs(self, deciding: Iterable[Sequence[ConfigChange]]) -> Reply[KafkaError | None]:
        """The same with changes that ``deciding`` comes upon one part after the other, in slices."""

        def decide() -> Generator[None, None, tuple[None, Sequence[MetadataRecord]]]:
            records: list[MetadataRecord] = []
            for changes in deciding:
                records += self._config_records(changes)
                yield
            return None, records

        return self._operate_in_slices(decide())

    def _config_records(self, changes: Iterable[ConfigChange]) -> list[MetadataRecord]:
        return [
            ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
            for resource_type, resource_name, name, value in changes
            if resource_type != TOPIC_RESOURCE or resource_name in self.image.topics
        ]

    def create_acls(self, bindings: Iterable["AclBinding"]) -> Reply["Created | KafkaError"]:
        """Create access control entries, each by itself: an error for each that cannot be, else None."""
        from odradek.controller.metadata.acls import create_acls

        return self._operate_in_slices(create_acls(self.image.kept.acls, bindings, self._new_topic_id))

    def delete_acls(self, filters: Sequence["AclFilter"]) -> Reply["Deleted | KafkaError"]:
        """Delete the access control entries that ``filters`` select: those of each filter."""
        from odradek.controller.metadata.acls import delete_acls

        return self._operate_in_slices(delete_acls(self.image.kept.acls, filters))

    def alter_user_scram_credentials(
        self, request: "AlterUserScramCredentialsRequest"
    ) -> Reply["list[AlterUserScramCredentialsResult] | KafkaError"]:
        """Set and remove users' SCRAM credentials, each user's by themselves."""
        from odradek.controller.metadata.scram_credentials import alter

        return self._operate_in_slices(alter(self.image, request))

    def change(self, decide: Callable[[MetadataImage], tuple[T, Sequence[MetadataRecord]]]) -> Reply[T | KafkaError]:
        """Commit what ``decide`` makes of the image; its answer, or the error that it raises."""
        return self._operate(lambda: decide(self.image))

    def alter_client_quotas(
        self, request: "AlterClientQuotasRequest", unknown_hosts: Collection[str] = ()
    ) -> Reply["list[AlteredQuotas] | KafkaError"]:
        """Set and remove client quotas, each entity's by themselves; no host has one of ``unknown_hosts``."""
        from odradek.controller.metadata.client_quota_requests import alter

        def decide() -> Generator[None, None, tuple["list[AlteredQuotas]", Sequence[MetadataRecord]]]:
            results, records = yield from alter(self.image.quotas, request.entries, unknown_hosts)
            return results, [] if request.validate_only else records

        return self._operate_in_slices(decide())

    def update_features(
        self, updates: Iterable[tuple[str, int, int]], *, validate_only: bool = False
    ) -> Reply[KafkaError | None]:
        """Finalize feature levels, (feature, level, upgrade type), all or nothing. KafkaError: INVALID_UPDATE_VERSION."""

        def decide() -> tuple[None, Sequence[MetadataRecord]]:
            records = self._feature_records(list(updates))
            others = [record for record in records if not _is_of_the_quorum(record)]
            if validate_only:
                return None, []
            if len(others) < len(records):
                self._publish([], self._log.append_voters(now_ms=self.clock.now_ms()))
            return None, others

        return self._operate(decide)

    def _feature_records(self, updates: Sequence[tuple[str, int, int]]) -> Sequence[MetadataRecord]:
        finalized = {**self.image.features, KRAFT_VERSION: self.kraft_version}
        records: list[MetadataRecord] = list(update_features(finalized, updates, self.node_id))
        if any(name == ELIGIBLE_LEADER_REPLICAS and level > 0 for name, level, _ in updates):
            records += one_min_isr(self.image, self._config)
        return records

    def allocate_producer_id_block(self) -> Reply[range | KafkaError]:
        """PRODUCER_ID_BLOCK_SIZE producer ids that nobody has had and nobody will have."""

        def decide() -> tuple[range, Sequence[MetadataRecord]]:
            start = self.image.next_producer_id
            block = range(start, start + PRODUCER_ID_BLOCK_SIZE)
            return block, [ProducerIdsRecord(broker_id=self.node_id, next_producer_id=block.stop)]

        return self._operate(decide)

    def write(self, records: Sequence[MetadataRecord]) -> Reply[KafkaError | None]:
        """Commit records that need no decision."""
        return self._operate(lambda: (None, records))

    def record_directories(self, places: Iterable[tuple[UUID, int, UUID]]) -> None:
        """At start, record where partitions lie: (topic id, partition, directory id). Raises KafkaError if the log fails."""
        self._commit(self._directory_changes(places))

    def record_move(self, topic_id: UUID, partition: int, directory_id: UUID) -> Reply[KafkaError | None]:
        """Record where a partition lies now."""
        return self._operate(lambda: (None, self._directory_changes([(topic_id, partition, directory_id)])))

    def _directory_changes(self, places: Iterable[tuple[UUID, int, UUID]]) -> Sequence[MetadataRecord]:
        """The records for those of ``places`` that the image does not have. A topic may be deleted by now."""
        topics = self.image.topics_by_id
        changed = [
            place for place in places if place[0] in topics and topics[place[0]].partitions[place[1]].directories != (place[2],)
        ]
        if not changed:
            return ()
        from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord

        return [
            PartitionChangeRecord(topic_id=topic_id, partition_id=partition, directories=(directory_id,))
            for topic_id, partition, directory_id in changed
        ]

    def close(self) -> None:
        """Close the metadata log."""
        self._log.close(now_ms=self.clock.now_ms())

    def _load(self) -> None:
        """Replay what the log has, and bring it to where this controller may append to it."""
        loader = MetadataLoader(self.image)
        loader.load(self._log.read_snapshot(), lambda _: self._log.snapshot_path)
        loader.load(self._behind_snapshot(), self._log.path_at)
        problem = unknown_level(self.image.features)
        if problem is not None:
            raise UnknownFeatureLevel(self._log.path_at(self._log.end_offset), problem)
        if loader.is_in_transaction:
            from odradek.protocol.metadata_records.log_control import AbortTransactionRecord

            reason = "The controller that began it has stopped."
            self._log.append([AbortTransactionRecord(reason=reason)], now_ms=self.clock.now_ms())
        if not self.image.features:
            self._commit([*self._first_records(), *self._log.bootstrap])
        self._take_over()

    def _first_records(self) -> Sequence[MetadataRecord]:
        """The records that a new log begins with."""
        return BOOTSTRAP_RECORDS

    def _take_over(self) -> None:
        """The log is loaded, and no other controller writes it."""
        self._commit(list(elect(self.image, self.node_id)))

    def _operate(self, decide: Callable[[], tuple[T, Sequence[MetadataRecord]]]) -> Reply[T | KafkaError]:
        """Commit what ``decide`` has decided; its answer when that is committed, or the error of either.

        With one controller, the records of a small operation are mostly committed before this returns. No caller may count on
        that.
        """
        reply: Reply[T | KafkaError] = Reply()
        self._in_turn(lambda: self._carry_out(decide, reply))
        return reply

    def _operate_in_slices(self, deciding: Generator[None, None, tuple[T, Sequence[MetadataRecord]]]) -> Reply[T | KafkaError]:
        """The same for an operation on which to decide takes long."""
        reply: Reply[T | KafkaError] = Reply()
        self._in_turn(lambda: self._begin(self._deciding(deciding), reply))
        return reply

    def _in_turn(self, operation: Callable[[], None]) -> None:
        """Run ``operation`` now, or behind the large one that is under way and those that wait for it."""
        if self._is_committing:
            self._waiting.append(operation)
        else:
            operation()

    def _carry_out(self, decide: Callable[[], tuple[T, Sequence[MetadataRecord]]], reply: Reply[T | KafkaError]) -> None:
        try:
            answer, records = decide()
            if len(records) > _AT_ONCE:
                self._begin(self._commit_in_slices(records, answer), reply)
                return
            self._commit(records)
        except KafkaError as error:
            self._tell_fault(error)
            reply.complete(error)
        else:
            reply.complete(answer)

    def _begin(self, work: Generator[Reply[Any] | None, Any, T], reply: Reply[T | KafkaError]) -> None:
        """Carry out a large operation; others wait meanwhile."""
        self._is_committing = True
        self._slices.run(work).when_done(lambda outcome: self._committed(reply, outcome))

    def _deciding(
        self, deciding: Generator[None, None, tuple[T, Sequence[MetadataRecord]]]
    ) -> Generator[Reply[Any] | None, Any, T]:
        answer, records = yield from deciding
        return (yield from self._commit_in_slices(records, answer))

    def _commit_in_slices(self, records: Sequence[MetadataRecord], answer: T) -> Generator[Reply[Any] | None, Any, T]:
        if records:
            size_bytes = yield from self._log.append_in_slices(records, now_ms=self.clock.now_ms())
            # All of it is committed. Whoever looks at the image meanwhile finds some of the topics, each of them whole.
            for part in parts(records, _REPLAYED_TOGETHER):
                yield None
                self._replay(part)
            self._snapshots.appended(size_bytes)
        return answer

    def _committed(self, reply: Reply[T | KafkaError], outcome: T | Exception) -> None:
        """A large operation is carried out, or has failed; those that wait for it are next."""
        self._is_committing = False
        if isinstance(outcome, KafkaError):
            self._tell_fault(outcome)
        elif isinstance(outcome, Exception):
            broker_log.error("a change of the metadata failed", outcome)
            outcome = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        reply.complete(outcome)
        while self._waiting and not self._is_committing:
            self._waiting.popleft()()

    def _tell_fault(self, error: KafkaError) -> None:
        """Log an error of the disk. Errors of clients are theirs."""
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            left_out = self._line_limit.left_out(error.reason)
            if left_out is not None:
                broker_log.tell("error", "a change of the metadata failed", {"reason": error.reason, **left_out})

    def _behind_snapshot(self) -> Iterator[MetadataBatch]:
        for batch in self._log.read_all():
            self._snapshots.found(batch.size_bytes)
            yield batch

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            self._publish(records, self._log.append(records, now_ms=self.clock.now_ms()))

    def _publish(self, records: Sequence[MetadataRecord], size_bytes: int) -> None:
        self._replay(records)
        # After the publishers: a snapshot has forgotten what was deleted, and directories are to be gone by then.
        self._snapshots.appended(size_bytes)

    def _replay(self, records: Sequence[MetadataRecord]) -> None:
        """Bring what has been appended into the image, and tell of it."""
        self._publishers.publish(self.image.replay(records), self.image)


def _is_of_the_quorum(record: MetadataRecord) -> bool:
    return isinstance(record, FeatureLevelRecord) and record.name == KRAFT_VERSION


def _decided(deciding: Generator[None, None, T]) -> T:
    """What a decision comes to, at once."""
    while True:
        try:
            next(deciding)
        except StopIteration as end:
            decision: T = end.value
            return decision
