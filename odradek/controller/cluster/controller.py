"""The controller's decisions for clients: topics, partitions, configs, features, reassignments (Kafka: QuorumController).

Every operation decides with pure functions of the image or of a ``ClusterView``, and commits its records (``MetadataWriter``).
Methods that take a request message reply with the response message once the records are committed. A single broker is a cluster
of one: ``LoneController`` adds its own needs, ``ClusterController`` the requests of several brokers.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from odradek.common.config import BrokerConfig
from odradek.common.config.dynamic import ConfigView
from odradek.controller.metadata import decisions
from odradek.controller.metadata.acls import create_acls, delete_acls
from odradek.controller.metadata.cluster_view import ClusterView, ensure_brokers_support
from odradek.controller.metadata.decisions import NewPartitions, NewTopic, Take, TopicResult
from odradek.controller.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS,
    FIRST_WITH_CIDR_ACLS,
    KRAFT_VERSION,
    METADATA_VERSION,
    MIN_ISR,
    one_min_isr,
    update_features,
)
from odradek.controller.metadata.image import TOPIC_RESOURCE
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.placement import Placement
from odradek.controller.metadata.writer import AT_ONCE, ControllerHost, Decided, MetadataWriter
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.unregister_broker import UnregisterBrokerResponse
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from odradek.protocol.metadata_records.partition_changes import ClearElrRecord
from odradek.timing.reply import Reply

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
    from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest
    from odradek.protocol.message_types.unregister_controller import (
        UnregisterControllerRequest,
        UnregisterControllerResponse,
    )

PRODUCER_ID_BLOCK_SIZE = 1000

ConfigChange = tuple[int, str, str, str | None]

T = TypeVar("T")
R = TypeVar("R")


class Controller(MetadataWriter):
    """Topics, partitions, configs and features of a single broker or of a cluster."""

    def __init__(
        self,
        log: MetadataLog,
        host: ControllerHost,
        node_id: int,
        directory_counts: Callable[[], dict[UUID, int]] | None = None,
    ) -> None:
        """Replay ``log``, and write the first records of a new one. Raises MetadataUnreadable, KafkaError if the log fails.

        ``directory_counts`` is as for ``Placement``.
        """
        self.node_id = node_id
        self._config = host.config
        self._new_uuid = host.new_uuid
        super().__init__(log, host)
        # The brokers that decisions are about.
        self.view = ClusterView(self.image, host.config, node_id)
        self._placement = Placement(self.view, self._usable_brokers, host.random, directory_counts)
        self._load()

    def _usable_brokers(self) -> Mapping[int, bool]:
        """Return the brokers that new replicas may go to, and whether each of them is fenced."""
        raise NotImplementedError

    def config_view(self, config: BrokerConfig) -> ConfigView:
        """Return the basis of decisions on configs, in a process with ``config``."""
        image = self.image
        return ConfigView(config, image.configs, image.topics.__contains__, has_elr=self.view.has_elr)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, take: Take | None = None
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Create each of ``topics`` separately. Duplicates get one result each, at the end. See ``decisions`` for ``take``."""
        deciding = self._deciding_on_topics(topics, validate_only=validate_only, take=take)
        return self._operate_in_slices(deciding) if len(topics) > AT_ONCE else self._operate(lambda: decided(deciding))

    def _deciding_on_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, only_missing: bool = False, take: Take | None = None
    ) -> Generator[None, None, tuple[list[TopicResult], Sequence[MetadataRecord]]]:
        wanted = [topic for topic in topics if not only_missing or topic.name not in self.image.topics]
        decision = yield from decisions.deciding_on_topics(
            self.image, wanted, self._placement, self._config.validate_topic_configs, self._new_uuid, take
        )
        return decision.results, [] if validate_only else decision.records

    def delete_topics(self, topic_ids: Iterable[UUID]) -> Reply[set[UUID] | KafkaError]:
        """Delete topics. Reply with the ids that existed."""
        wanted = dict.fromkeys(topic_ids)

        def decide() -> tuple[set[UUID], Sequence[MetadataRecord]]:
            found = [topic_id for topic_id in wanted if topic_id in self.image.topics_by_id]
            return set(found), [RemoveTopicRecord(topic_id=topic_id) for topic_id in found]

        return self._operate(decide)

    def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, take: Take | None = None
    ) -> Reply[list[TopicResult] | KafkaError]:
        """Add partitions to each of ``topics`` separately. See ``decisions`` for ``take``."""

        def decide() -> tuple[list[TopicResult], Sequence[MetadataRecord]]:
            decision = decisions.create_partitions(self.image, topics, self._placement, take)
            return decision.results, [] if validate_only else decision.records

        return self._operate(decide)

    def alter_configs(self, changes: Sequence[ConfigChange]) -> Reply[KafkaError | None]:
        """Set configs that the caller has validated, all or nothing.

        A change is (resource type, resource name, config, value or None to remove it).
        """
        # A topic may have been deleted since the caller checked.
        return self._operate(lambda: (None, self._config_records(changes)))

    def alter_many_configs(self, deciding: Iterable[Sequence[ConfigChange]]) -> Reply[KafkaError | None]:
        """Set configs like ``alter_configs``, in slices. ``deciding`` yields the changes in parts."""

        def decide() -> Generator[None, None, tuple[None, Sequence[MetadataRecord]]]:
            records: list[MetadataRecord] = []
            for changes in deciding:
                records += self._config_records(changes)
                yield
            return None, records

        return self._operate_in_slices(decide())

    def _config_records(self, changes: Sequence[ConfigChange]) -> list[MetadataRecord]:
        records: list[MetadataRecord] = [
            ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
            for resource_type, resource_name, name, value in changes
            if resource_type != TOPIC_RESOURCE or resource_name in self.image.topics
        ]
        if self.view.has_elr:
            # A new min.insync.replicas makes the eligible leader replicas obsolete.
            records += [
                ClearElrRecord(topic_name=resource_name if resource_type == TOPIC_RESOURCE else "")
                for resource_type, resource_name, name, _ in changes
                if name == MIN_ISR
            ]
        return records

    def create_acls(self, bindings: Iterable["AclBinding"]) -> Reply["Created | KafkaError"]:
        """Create each access control entry separately. Reply with an error for each invalid one, else None."""
        has_ranges = self.image.features[METADATA_VERSION] >= FIRST_WITH_CIDR_ACLS
        return self._operate_in_slices(create_acls(self.image.kept.acls, bindings, self._new_uuid, has_ranges=has_ranges))

    def delete_acls(self, filters: Sequence["AclFilter"]) -> Reply["Deleted | KafkaError"]:
        """Delete the access control entries that ``filters`` select. Reply with the entries of each filter."""
        return self._operate_in_slices(delete_acls(self.image.kept.acls, filters))

    def alter_user_scram_credentials(
        self, request: "AlterUserScramCredentialsRequest"
    ) -> Reply["list[AlterUserScramCredentialsResult] | KafkaError"]:
        """Set and remove users' SCRAM credentials, each user's separately."""
        from odradek.controller.metadata.scram_credentials import alter  # 2.4 ms

        return self._operate_in_slices(alter(self.image, request))

    def alter_client_quotas(
        self, request: "AlterClientQuotasRequest", unknown_hosts: Collection[str] = ()
    ) -> Reply["list[AlteredQuotas] | KafkaError"]:
        """Set and remove client quotas, each entity's separately. ``unknown_hosts`` are names without a host."""
        from odradek.controller.metadata.client_quota_requests import alter  # 2.2 ms

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
        ensure_brokers_support(self.view, updates)
        return records

    def elect_leaders(self, request: "ElectLeadersRequest") -> "Reply[ElectLeadersResponse]":
        """Hold preferred or unclean elections (KIP-460)."""
        from odradek.controller.cluster.reassignments import elect_leaders  # 3.7 ms
        from odradek.protocol.message_types.elect_leaders import ElectLeadersResponse  # comes with it

        return self._answered(
            lambda: elect_leaders(self.view, request), as_it_is, lambda error: ElectLeadersResponse(error_code=error.code)
        )

    def alter_partition_reassignments(
        self, request: "AlterPartitionReassignmentsRequest"
    ) -> "Reply[AlterPartitionReassignmentsResponse]":
        """Move replicas to other brokers (KIP-455), or cancel their moves."""
        from odradek.controller.cluster.reassignments import alter_reassignments  # 3.7 ms
        from odradek.protocol.message_types.alter_partition_reassignments import AlterPartitionReassignmentsResponse

        return self._answered(
            lambda: alter_reassignments(self.view, request),
            as_it_is,
            lambda error: AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.reason),
        )

    def list_partition_reassignments(
        self, request: "ListPartitionReassignmentsRequest"
    ) -> "Reply[ListPartitionReassignmentsResponse]":
        """List the reassignments under way."""
        from odradek.controller.cluster.reassignments import list_reassignments  # 3.7 ms
        from odradek.protocol.message_types.list_partition_reassignments import ListPartitionReassignmentsResponse

        return self._answered(
            lambda: (list_reassignments(self.view, request), ()),
            as_it_is,
            lambda error: ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.reason),
        )

    def unregister_broker(self, request: "UnregisterBrokerRequest") -> "Reply[UnregisterBrokerResponse]":
        """Remove a broker from the cluster."""

        def refuse(error: KafkaError) -> UnregisterBrokerResponse:
            return UnregisterBrokerResponse(error_code=error.code, error_message=error.reason)

        return self._answered(
            lambda: (None, self._without_broker(request.broker_id)), lambda _: UnregisterBrokerResponse(), refuse
        )

    def unregister_controller(self, request: "UnregisterControllerRequest") -> "Reply[UnregisterControllerResponse]":
        """Remove the registration of a controller that is gone (KIP-1312)."""
        from odradek.controller.cluster.registration import unregister_controller  # 3.7 ms
        from odradek.protocol.message_types.unregister_controller import UnregisterControllerResponse

        def refuse(error: KafkaError) -> UnregisterControllerResponse:
            return UnregisterControllerResponse(error_code=error.code, error_message=error.reason)

        return self._answered(
            lambda: (None, unregister_controller(self.view, request.controller_id)),
            lambda _: UnregisterControllerResponse(),
            refuse,
        )

    def _first_records(self) -> Sequence[MetadataRecord]:
        # Leaders are elected from eligible replicas, so one ``min.insync.replicas`` applies to all brokers.
        return (*super()._first_records(), *one_min_isr(self.image, self._config))

    def _without_broker(self, broker_id: int) -> Sequence[MetadataRecord]:
        """Return the records that remove a broker. Raises KafkaError."""
        from odradek.controller.cluster.registration import unregister  # 3.7 ms

        return unregister(self.view, broker_id)

    def _producer_id_block(self, broker_id: int, broker_epoch: int = -1) -> Decided[range]:
        """Decide on PRODUCER_ID_BLOCK_SIZE producer ids that are never given out again."""
        start = self.image.next_producer_id
        block = range(start, start + PRODUCER_ID_BLOCK_SIZE)
        return block, [ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)]

    def _answered(
        self,
        decide: Callable[[], Decided[T]],
        answer: Callable[[T], R],
        refuse: Callable[[KafkaError], R],
    ) -> Reply[R]:
        """Commit a decision; then reply with ``answer`` of it, or with ``refuse`` of the error."""
        return self._operate(decide).then(lambda outcome: refuse(outcome) if isinstance(outcome, KafkaError) else answer(outcome))


def as_it_is(response: T) -> T:
    """Return the decision itself as the response."""
    return response


def _is_of_the_quorum(record: MetadataRecord) -> bool:
    return isinstance(record, FeatureLevelRecord) and record.name == KRAFT_VERSION


def decided(deciding: Generator[None, None, T]) -> T:
    """Run a decision to its end and return its outcome."""
    while True:
        try:
            next(deciding)
        except StopIteration as end:
            decision: T = end.value
            return decision
