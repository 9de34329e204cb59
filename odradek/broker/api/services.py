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

    @property
    def clock(self) -> Clock:
        """The node's clock."""


class ConfigServices(Protocol):
    """The configuration."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration."""


class LoopServices(Protocol):
    """The event loop."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""


class QuotaServices(Protocol):
    """The client quotas."""

    @property
    def quotas(self) -> QuotaSwitch:
        """The quotas on clients' reads and changes."""


class GroupServices(Protocol):
    """The groups that this broker coordinates."""

    @property
    def groups(self) -> GroupCoordinator:
        """The group coordinator."""


class SlicedGroupServices(GroupServices, SlicedServices, Protocol):
    """The groups, described in slices."""


class TransactionServices(Protocol):
    """The transactions that this broker coordinates."""

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator."""


class ShareStateServices(Protocol):
    """The share partitions whose state this broker keeps."""

    @property
    def shares(self) -> ShareCoordinator:
        """The share coordinator."""


class TelemetryServices(Protocol):
    """The client metrics."""

    @property
    def telemetry(self) -> ClientMetricsManager:
        """Asks clients for metrics, and takes in the metrics they push."""


class TransactionListServices(TransactionServices, SlicedServices, ClockServices, Protocol):
    """The transactions, listed in slices, and matched to patterns in threads."""

    @property
    def pattern_matches(self) -> Inspections:
        """Runs matches that take too long for the loop."""


class PartitionServices(Protocol):
    """The partitions that are on this broker."""

    @property
    def partitions(self) -> Partitions:
        """All partitions on this broker."""


class SlicedPartitionServices(PartitionServices, SlicedServices, Protocol):
    """The partitions, described in slices."""


class MetadataServices(Protocol):
    """The cluster's metadata."""

    @property
    def controller(self) -> CommittedMetadata:
        """The committed metadata, as an image."""


class SlicedMetadataServices(MetadataServices, SlicedServices, Protocol):
    """The cluster's metadata, described in slices."""


class TopicServices(MetadataServices, ConfigServices, SlicedServices, Protocol):
    """The cluster's metadata, and this broker."""

    @property
    def node_id(self) -> int:
        """This broker's id."""


class ControllerServices(TopicServices, Protocol):
    """The cluster's metadata, and their changes: only in the process of the controller."""

    @property
    def controller(self) -> Controller:
        """The controller, with the image of the committed metadata."""


class VoterServices(ControllerServices, Protocol):
    """The controller as the only voter of its quorum."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""


class TokenServices(TopicServices, Protocol):
    """Delegation tokens."""

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """Reads delegation tokens, and decides on their changes."""


class TokenChangeServices(TokenServices, ControllerServices, ClockServices, Protocol):
    """Delegation tokens, and their changes."""

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with the node's seed."""


class AclServices(SlicedServices, Protocol):
    """The access control entries."""

    @property
    def authorization(self) -> Authorization | None:
        """The authorizer; None if there is none."""


class AclChangeServices(AclServices, ControllerServices, Protocol):
    """The access control entries, and their changes."""


class TopicChangeServices(ControllerServices, QuotaServices, Protocol):
    """The cluster's metadata, and the partitions that follow it."""

    @property
    def partition_directories(self) -> PartitionDirectories:
        """Creates and deletes partitions."""


class NodeServices(TopicServices, ClockServices, Protocol):
    """The cluster's metadata, and how clients reach this broker."""

    @property
    def controller(self) -> ClusterMetadata:
        """The cluster's metadata, and the requests of brokers to the controller."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def cluster(self) -> Cluster:
        """The cluster's brokers and the state of its partitions, as told to clients."""

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """Return the (host, port) that clients of a listener are told to connect to."""


class LookupServices(PartitionServices, Protocol):
    """The partitions, and the queue of long searches through their records."""

    @property
    def inspections(self) -> Inspections:
        """Inspects batches whose records take long to check."""


class ClusterServices(NodeServices, Protocol):
    """The cluster's metadata, and the auto-creation of topics."""

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        """Creates topics that clients request."""


class OldSegments(Protocol):
    """Removes segments that retention does not keep."""

    def delete_old_segments(self) -> None:
        """Look for old segments now."""


class DirectoryServices(SlicedPartitionServices, Protocol):
    """The data directories, and the partitions in them."""

    @property
    def log_manager(self) -> LogManager:
        """The logs in each directory."""

    @property
    def housekeeping(self) -> OldSegments:
        """Removes old segments."""

    @property
    def moves(self) -> ReplicaMoves:
        """The moves of partitions between directories."""


class DeletionServices(DirectoryServices, ClockServices, Protocol):
    """The partitions to delete records from, and the purgatory in which DeleteRecords wait for followers."""

    @property
    def produce_purgatory(self) -> Purgatory[DelayedOperation]:
        """Produces and DeleteRecords that wait for followers."""


class FetchServices(PartitionServices, ClockServices, ConfigServices, LoopServices, QuotaServices, Protocol):
    """The partitions that a Fetch reads, and the purgatory in which it waits."""

    @property
    def node_id(self) -> int:
        """This broker's id."""

    @property
    def cluster(self) -> Cluster:
        """The cluster's brokers; some may be nearer to the reader."""

    @property
    def fetch_sessions(self) -> FetchSessions:
        """Sessions of incremental fetches."""

    @property
    def fetch_purgatory(self) -> Purgatory[DelayedFetch]:
        """Fetches that wait for bytes."""


class ShareServices(TopicServices, QuotaServices, Protocol):
    """The share partitions that this broker leads, and the sessions of their groups' members."""

    @property
    def share_partitions(self) -> SharePartitionManager:
        """The share groups that fetch here."""

    @property
    def timer(self) -> Timer:
        """The broker's timer."""


class ProduceServices(LookupServices, TransactionServices, ClockServices, ConfigServices, LoopServices, Protocol):
    """The partitions that a Produce appends to, and the purgatory in which it waits."""

    @property
    def line_limit(self) -> LineLimit:
        """Limits the log lines that clients may cause."""

    @property
    def produce_purgatory(self) -> Purgatory[DelayedOperation]:
        """Produces that wait for a flush."""


class OffsetServices(GroupServices, MetadataServices, Protocol):
    """Groups' offsets, and the partitions they belong to."""


class OffsetFetchServices(GroupServices, TopicServices, Protocol):
    """Groups' offsets, and the topics they belong to."""


class GroupProtocolServices(GroupServices, TopicServices, Protocol):
    """The groups, and whether their newer protocols are on."""


class ShareGroupServices(GroupProtocolServices, PartitionServices, LoopServices, Protocol):
    """Share groups, the share coordinators with their offsets, and the partitions that they read."""

    @property
    def share_persister(self) -> SharePersister:
        """The share coordinators of the cluster."""

    @property
    def partition_ends(self) -> PartitionEnds | None:
        """Asks other brokers for the ends of partitions; None if there are none."""


class GroupDeletionServices(SlicedGroupServices, Protocol):
    """The groups, and the share coordinators with the offsets of share groups."""

    @property
    def share_persister(self) -> SharePersister:
        """The share coordinators of the cluster."""


class TransactionPartitionServices(TransactionServices, MetadataServices, Protocol):
    """Transactions, and the partitions that are in them."""


class TransactionOffsetServices(OffsetServices, TransactionServices, PartitionServices, ClockServices, ConfigServices, Protocol):
    """Groups' offsets in transactions, and the partitions of ``__consumer_offsets``."""


class ProducerIdServices(TransactionServices, TopicServices, Protocol):
    """Producer ids, with and without transactions."""

    @property
    def controller(self) -> ClusterMetadata:
        """The cluster's metadata, and the requests of brokers to the controller."""
