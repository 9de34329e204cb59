"""The interfaces through which handlers see a broker. A handler's first parameter has the narrowest one it needs.

Interfaces only. ``start.server`` has all of their attributes; a test provides those that its handler asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.broker.large import SlicedServices

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.broker.coordination.group_coordinator import GroupCoordinator
    from odradek.broker.coordination.share_coordinator import ShareCoordinator
    from odradek.broker.coordination.share_group_states import PartitionEnds
    from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
    from odradek.broker.quotas.quota_switch import QuotaSwitch
    from odradek.broker.replica.delayed_fetch import DelayedFetch
    from odradek.broker.replica.fetch_sessions import FetchSessions
    from odradek.broker.replica.inspections import Inspections
    from odradek.broker.replica.partition_directories import PartitionDirectories
    from odradek.broker.replica.partitions import Partitions
    from odradek.broker.replica.replica_moves import ReplicaMoves
    from odradek.broker.security.acl.access import Authorization
    from odradek.broker.share.share_partition_manager import SharePartitionManager
    from odradek.broker.share.share_persister import SharePersister
    from odradek.broker.telemetry.manager import ClientMetricsManager
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.logging import LineLimit
    from odradek.controller.cluster.controller import Controller
    from odradek.controller.metadata.auto_topic_creation import AutoTopicCreation
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata, CommittedMetadata
    from odradek.controller.metadata.cluster_view import Cluster
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.storage.directories.log_manager import LogManager
    from odradek.timing.clock import Clock
    from odradek.timing.timer import DelayedOperation, Purgatory, Timer


class ClockServices(Protocol):
    """The time."""

    # The node's clock.
    clock: Clock


class ConfigServices(Protocol):
    """The configuration."""

    # The broker's configuration.
    config: BrokerConfig


class LoopServices(Protocol):
    """The event loop."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""


class QuotaServices(Protocol):
    """The client quotas."""

    # The quotas on clients' reads and changes.
    quotas: QuotaSwitch


class GroupServices(Protocol):
    """The groups that this broker coordinates."""

    # The group coordinator.
    groups: GroupCoordinator


class SlicedGroupServices(GroupServices, SlicedServices, Protocol):
    """The groups, described in slices."""


class TransactionServices(Protocol):
    """The transactions that this broker coordinates."""

    # The transaction coordinator.
    transactions: TransactionCoordinator


class ShareStateServices(Protocol):
    """The share partitions whose state this broker keeps."""

    # The share coordinator.
    shares: ShareCoordinator


class TelemetryServices(Protocol):
    """The client metrics."""

    # Asks clients for metrics, and takes in the metrics they push.
    telemetry: ClientMetricsManager


class TransactionListServices(TransactionServices, SlicedServices, ClockServices, Protocol):
    """The transactions, listed in slices, and matched to patterns in threads."""

    # Runs matches that take too long for the loop.
    pattern_matches: Inspections


class PartitionServices(Protocol):
    """The partitions that are on this broker."""

    # All partitions on this broker.
    partitions: Partitions


class SlicedPartitionServices(PartitionServices, SlicedServices, Protocol):
    """The partitions, described in slices."""


class MetadataServices(Protocol):
    """The cluster's metadata."""

    # The committed metadata, as an image.
    controller: CommittedMetadata


class SlicedMetadataServices(MetadataServices, SlicedServices, Protocol):
    """The cluster's metadata, described in slices."""


class TopicServices(MetadataServices, ConfigServices, SlicedServices, Protocol):
    """The cluster's metadata, and this broker."""

    # This broker's id.
    node_id: int


class ControllerServices(TopicServices, Protocol):
    """The cluster's metadata, and their changes: only in the process of the controller."""

    # The controller, with the image of the committed metadata.
    controller: Controller


class VoterServices(ControllerServices, Protocol):
    """The controller as the only voter of its quorum."""

    # The cluster's id.
    cluster_id: str


class TokenServices(TopicServices, Protocol):
    """Delegation tokens."""

    # Reads delegation tokens, and decides on their changes.
    delegation_tokens: DelegationTokens


class TokenChangeServices(TokenServices, ControllerServices, ClockServices, Protocol):
    """Delegation tokens, and their changes."""

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with the node's seed."""


class AclServices(SlicedServices, Protocol):
    """The access control entries."""

    # The authorizer; None if there is none.
    authorization: Authorization | None


class AclChangeServices(AclServices, ControllerServices, Protocol):
    """The access control entries, and their changes."""


class TopicChangeServices(ControllerServices, QuotaServices, Protocol):
    """The cluster's metadata, and the partitions that follow it."""

    # Creates and deletes partitions.
    partition_directories: PartitionDirectories


class NodeServices(TopicServices, ClockServices, Protocol):
    """The cluster's metadata, and how clients reach this broker."""

    # The cluster's metadata, and the requests of brokers to the controller.
    controller: ClusterMetadata
    # The cluster's id.
    cluster_id: str
    # The cluster's brokers and the state of its partitions, as told to clients.
    cluster: Cluster

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """Return the (host, port) that clients of a listener are told to connect to."""


class LookupServices(PartitionServices, Protocol):
    """The partitions, and the queue of long searches through their records."""

    # Inspects batches whose records take long to check.
    inspections: Inspections


class ClusterServices(NodeServices, Protocol):
    """The cluster's metadata, and the auto-creation of topics."""

    # Creates topics that clients request.
    auto_topic_creation: AutoTopicCreation


class OldSegments(Protocol):
    """Removes segments that retention does not keep."""

    def delete_old_segments(self) -> None:
        """Look for old segments now."""


class DirectoryServices(SlicedPartitionServices, Protocol):
    """The data directories, and the partitions in them."""

    # The logs in each directory.
    log_manager: LogManager
    # Removes old segments.
    housekeeping: OldSegments
    # The moves of partitions between directories.
    moves: ReplicaMoves


class DeletionServices(DirectoryServices, ClockServices, Protocol):
    """The partitions to delete records from, and the purgatory in which DeleteRecords wait for followers."""

    # Produces and DeleteRecords that wait for followers.
    produce_purgatory: Purgatory[DelayedOperation]


class FetchServices(PartitionServices, ClockServices, ConfigServices, LoopServices, QuotaServices, Protocol):
    """The partitions that a Fetch reads, and the purgatory in which it waits."""

    # This broker's id.
    node_id: int
    # The cluster's brokers; some may be nearer to the reader.
    cluster: Cluster
    # Sessions of incremental fetches.
    fetch_sessions: FetchSessions
    # Fetches that wait for bytes.
    fetch_purgatory: Purgatory[DelayedFetch]


class ShareServices(TopicServices, QuotaServices, Protocol):
    """The share partitions that this broker leads, and the sessions of their groups' members."""

    # The share groups that fetch here.
    share_partitions: SharePartitionManager
    # The broker's timer.
    timer: Timer


class ProduceServices(LookupServices, TransactionServices, ClockServices, ConfigServices, LoopServices, Protocol):
    """The partitions that a Produce appends to, and the purgatory in which it waits."""

    # Limits the log lines that clients may cause.
    line_limit: LineLimit
    # Produces that wait for a flush.
    produce_purgatory: Purgatory[DelayedOperation]


class OffsetServices(GroupServices, MetadataServices, Protocol):
    """Groups' offsets, and the partitions they belong to."""


class OffsetFetchServices(GroupServices, TopicServices, Protocol):
    """Groups' offsets, and the topics they belong to."""


class GroupProtocolServices(GroupServices, TopicServices, Protocol):
    """The groups, and whether their newer protocols are on."""


class ShareGroupServices(GroupProtocolServices, PartitionServices, LoopServices, Protocol):
    """Share groups, the share coordinators with their offsets, and the partitions that they read."""

    # The share coordinators of the cluster.
    share_persister: SharePersister
    # Asks other brokers for the ends of partitions; None if there are none.
    partition_ends: PartitionEnds | None


class GroupDeletionServices(SlicedGroupServices, Protocol):
    """The groups, and the share coordinators with the offsets of share groups."""

    # The share coordinators of the cluster.
    share_persister: SharePersister


class TransactionPartitionServices(TransactionServices, MetadataServices, Protocol):
    """Transactions, and the partitions that are in them."""


class TransactionOffsetServices(OffsetServices, TransactionServices, PartitionServices, ClockServices, ConfigServices, Protocol):
    """Groups' offsets in transactions, and the partitions of ``__consumer_offsets``."""


class ProducerIdServices(TransactionServices, TopicServices, Protocol):
    """Producer ids, with and without transactions."""

    # The cluster's metadata, and the requests of brokers to the controller.
    controller: ClusterMetadata
