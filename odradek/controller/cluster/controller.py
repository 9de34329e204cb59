"""The controller's decisions: topics, partitions, configs, features, producer ids (Kafka: QuorumController).

Every operation decides, by pure functions of the image or of a ``ClusterView``, and commits its records (``MetadataWriter``). A
request's message is answered by the response's message, when the records that it comes to are committed. A broker alone is a
cluster of one: what only others can ask for is in ``ClusterController``.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from odradek.common.config import BrokerConfig
from odradek.common.config.dynamic import ConfigView
from odradek.common.context import RequestContext
from odradek.controller.cluster.cluster_view import AloneView, ClusterView
from odradek.controller.metadata import decisions
from odradek.controller.metadata.decisions import NewPartitions, NewTopic, Take, TopicResult
from odradek.controller.metadata.features import ELIGIBLE_LEADER_REPLICAS, KRAFT_VERSION, one_min_isr, update_features
from odradek.controller.metadata.image import TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.internal_topics import internal_topic
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.placement import Placement, PlacementHere
from odradek.controller.metadata.producer_ids import ProducerIdManager
from odradek.controller.metadata.topic import INTERNAL_TOPICS, Topic
from odradek.controller.metadata.writer import AT_ONCE, Decided, MetadataWriter
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import Background
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices

if TYPE_CHECKING:
    from odradek.common.acls import AclBinding, AclFilter
    from odradek.controller.metadata.acls import Created, Deleted
    from odradek.protocol.message_types.alter_client_quotas import AlterClientQuotasRequest
    from odradek.protocol.message_types.alter_client_quotas import EntryData as AlteredQuotas
    from odradek.protocol.message_types.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from odradek.protocol.message_types.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResult,
    )
    from odradek.protocol.message_types.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from odradek.protocol.message_types.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )
    from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord

PRODUCER_ID_BLOCK_SIZE = 1000

ConfigChange = tuple[int, str, str, str | None]

T = TypeVar("T")
R = TypeVar("R")


class Controller(MetadataWriter):
    """Topics, partitions, configs, features and producer ids, of a broker alone or of a cluster (``ClusterController``)."""

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
        """``directory_counts`` says how many partitions there are in each data directory that works, by its id.

        Raises what MetadataWriter does.
        """
        self.node_id = node_id
        self._config = config
        self._new_topic_id = new_topic_id
        super().__init__(log, config, clock, background, slices)
        self.next_producer_id = ProducerIdManager(self.allocate_producer_id_block).next_producer_id
        # The brokers that decisions are about.
        self.view: ClusterView = AloneView(self.image, config, node_id)
        self._placement: Placement = PlacementHere(
            node_id=node_id,
            directory_counts=directory_counts,
            default_partitions=config["num.partitions"],
            default_replication_factor=config["default.replication.factor"],
        )

    def log_config_for(self, topic_name: str) -> LogConfig:
        """What the logs of a topic act on; for one that is not there, the broker's defaults."""
        return self._config.log_config(self.image.configs(TOPIC_RESOURCE, topic_name))

    def config_view(self, config: BrokerConfig) -> ConfigView:
        """What alterations of configs are decided upon, in a process with ``config``."""
        image = self.image
        has_elr = image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        return ConfigView(config, image.configs, image.topics.__contains__, has_elr=has_elr)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, take: Take | None = None
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Create ``topics``, each by itself; the results of duplicates come once, at the end. ``take`` as for the decision."""
        deciding = self._deciding_on_topics(topics, validate_only=validate_only, take=take)
        return self._operate_in_slices(deciding) if len(topics) > AT_ONCE else self._operate(lambda: _decided(deciding))

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

    def elect_leaders(self, request: "ElectLeadersRequest") -> "Reply[ElectLeadersResponse]":
        """Preferred or unclean elections (KIP-460)."""
        from odradek.controller.cluster.leader_elections import elect_leaders
        from odradek.protocol.message_types.elect_leaders import ElectLeadersResponse

        return self._answered(
            lambda: elect_leaders(self.view, request), as_it_is, lambda error: ElectLeadersResponse(error_code=error.code)
        )

    def alter_partition_reassignments(
        self, request: "AlterPartitionReassignmentsRequest"
    ) -> "Reply[AlterPartitionReassignmentsResponse]":
        """Replicas move to other brokers (KIP-455), or their moves are cancelled."""
        from odradek.controller.cluster.reassignments import alter_reassignments
        from odradek.protocol.message_types.alter_partition_reassignments import AlterPartitionReassignmentsResponse

        return self._answered(
            lambda: alter_reassignments(self.view, request),
            as_it_is,
            lambda error: AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.reason),
        )

    def list_partition_reassignments(
        self, request: "ListPartitionReassignmentsRequest"
    ) -> "Reply[ListPartitionReassignmentsResponse]":
        """The moves that are under way."""
        from odradek.controller.cluster.reassignments import list_reassignments
        from odradek.protocol.message_types.list_partition_reassignments import ListPartitionReassignmentsResponse

        return self._answered(
            lambda: (list_reassignments(self.view, request), ()),
            as_it_is,
            lambda error: ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.reason),
        )

    def unregister_broker(self, request: "UnregisterBrokerRequest") -> "Reply[UnregisterBrokerResponse]":
        """A broker is no longer a member."""
        from odradek.controller.cluster.registration import unregister
        from odradek.protocol.message_types.unregister_broker import UnregisterBrokerResponse

        def refuse(error: KafkaError) -> UnregisterBrokerResponse:
            return UnregisterBrokerResponse(error_code=error.code, error_message=error.reason)

        def decide() -> Decided[None]:
            if request.broker_id == self.node_id and isinstance(self.view, AloneView):
                raise KafkaError(ErrorCode.INVALID_REQUEST, "a broker that is its own controller is not unregistered")
            return None, unregister(self.view, request.broker_id)

        return self._answered(decide, lambda _: UnregisterBrokerResponse(), refuse)

    def _answered(
        self,
        decide: Callable[[], Decided[T]],
        answer: Callable[[T], R],
        refuse: Callable[[KafkaError], R],
    ) -> Reply[R]:
        """Commit what is decided; ``answer`` it when that is done, or ``refuse`` it."""
        reply: Reply[R] = Reply()

        def respond(outcome: T | KafkaError) -> None:
            reply.complete(refuse(outcome) if isinstance(outcome, KafkaError) else answer(outcome))

        self._operate(decide).when_done(respond)
        return reply

    def _take_over(self) -> None:
        self._commit(list(_led_here(self.image, self.node_id)))


def _led_here(image: MetadataImage, node_id: int) -> "Iterator[PartitionChangeRecord]":
    """The changes that make ``node_id`` the leader, and the in-sync set, of all partitions it has a replica of.

    A Kafka broker that stops gracefully gives up what it leads: its controller records no leader, an empty in-sync set, and that
    the broker is eligible to lead (KIP-966). When it is back, it is elected. odradek's broker keeps what it leads when it stops,
    so this concerns data directories that Kafka has run on.
    """
    for _, partition in image.partitions():
        is_elected = partition.leader == node_id and partition.isr == (node_id,)
        if is_elected or node_id not in partition.replicas:
            continue
        from odradek.protocol.metadata_records.base import NO_LEADER_CHANGE
        from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord

        yield PartitionChangeRecord(
            topic_id=partition.topic_id,
            partition_id=partition.partition_id,
            leader=NO_LEADER_CHANGE if partition.leader == node_id else node_id,
            isr=(node_id,),
            eligible_leader_replicas=() if partition.eligible_leader_replicas else None,
            last_known_elr=() if partition.last_known_elr else None,
        )


def as_it_is(response: T) -> T:
    """Answer with the decision itself."""
    return response


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
