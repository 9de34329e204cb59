"""What handlers see of a broker: each names the narrowest of these as the type of its first parameter.

Interfaces only. ``start.server`` has all of their attributes; a test has those that its handler asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.broker.large.in_slices import SlicedServices

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.broker.coordination.group_coordinator import GroupCoordinator
    from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
    from odradek.broker.quotas.quota_switch import QuotaSwitch
    from odradek.broker.replica.delayed_fetch import DelayedFetch
    from odradek.broker.replica.fetch_sessions import FetchSessions
    from odradek.broker.replica.inspections import Inspections
    from odradek.broker.replica.partition_directories import PartitionDirectories
    from odradek.broker.replica.partitions import Partitions
    from odradek.broker.replica.replica_moves import ReplicaMoves
    from odradek.broker.security.acl.access import Authorization
    from odradek.broker.telemetry.manager import ClientMetricsManager
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.logging import LineLimit
    from odradek.controller.cluster.controller import Controller
    from odradek.controller.metadata.auto_topic_creation import AutoTopicCreation
    from odradek.controller.metadata.cluster import Cluster
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata, CommittedMetadata
    from odradek.controller.metadata.delegation_tokens import DelegationTokens
    from odradek.storage.directories.log_manager import LogManager
    from odradek.timing.clock import Clock
    from odradek.timing.purgatory import DelayedOperation, Purgatory


class GroupServices(Protocol):
    """The groups that this broker coordinates."""

    @property
    def groups(self) -> GroupCoordinator:
        """Their coordinator."""


class SlicedGroupServices(GroupServices, SlicedServices, Protocol):
    """The groups, described in slices."""


class TransactionServices(Protocol):
    """The transactions that this broker coordinates."""

    @property
    def transactions(self) -> TransactionCoordinator:
        """Their coordinator."""


class TelemetryServices(Protocol):
    """What clients measure."""

    @property
    def telemetry(self) -> ClientMetricsManager:
        """What asks them, and takes what they push."""


class TransactionListServices(TransactionServices, SlicedServices, Protocol):
    """The same, listed in slices, and by patterns in threads."""

    @property
    def pattern_matches(self) -> Inspections:
        """What takes too long for the loop."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""


class PartitionServices(Protocol):
    """The partitions that are on this broker."""

    @property
    def partitions(self) -> Partitions:
        """All of them."""


class SlicedPartitionServices(PartitionServices, SlicedServices, Protocol):
    """The partitions, described in slices."""


class MetadataServices(Protocol):
    """The cluster's metadata."""

    @property
    def controller(self) -> CommittedMetadata:
        """The committed metadata, in an image."""


class SlicedMetadataServices(MetadataServices, SlicedServices, Protocol):
    """The same, described in slices."""


class TopicServices(MetadataServices, SlicedServices, Protocol):
    """The cluster's metadata, and this broker."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration."""

    @property
    def node_id(self) -> int:
        """This broker's id."""


class ControllerServices(TopicServices, Protocol):
    """The cluster's metadata, and what changes them: only in the process of the controller."""

    @property
    def controller(self) -> Controller:
        """The controller, with the image of what is committed."""


class TokenServices(TopicServices, Protocol):
    """Delegation tokens."""

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """What is decided about them."""


class TokenChangeServices(TokenServices, ControllerServices, Protocol):
    """Delegation tokens, and what changes them."""

    @property
    def clock(self) -> Clock:
        """The node's clock."""

    def new_uuid(self) -> UUID:
        """A random UUID, by the node's seed."""


class AclServices(SlicedServices, Protocol):
    """Who may do what."""

    @property
    def authorization(self) -> Authorization | None:
        """The authorizer; None where there is none."""


class AclChangeServices(AclServices, ControllerServices, Protocol):
    """Who may do what, and what changes it."""


class TopicChangeServices(ControllerServices, Protocol):
    """The cluster's metadata, and the partitions that follow it."""

    @property
    def partition_directories(self) -> PartitionDirectories:
        """What creates and deletes partitions."""

    @property
    def quotas(self) -> QuotaSwitch:
        """What clients may change."""


class NodeServices(TopicServices, Protocol):
    """The cluster's metadata, and how clients reach this broker."""

    @property
    def controller(self) -> ClusterMetadata:
        """The same, and what brokers ask of the controller."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def cluster(self) -> Cluster:
        """What is told of its brokers, and of the state of partitions."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """The (host, port) that clients of a listener are told to connect to."""


class LookupServices(PartitionServices, Protocol):
    """The partitions, and where their records are looked through."""

    @property
    def inspections(self) -> Inspections:
        """Batches whose records take long to look at."""


class ClusterServices(NodeServices, Protocol):
    """The cluster's metadata, and how topics come into it."""

    @property
    def auto_topic_creation(self) -> AutoTopicCreation:
        """Creates topics that clients ask for."""


class OldSegments(Protocol):
    """Removes the segments that retention does not keep."""

    def delete_old_segments(self) -> None:
        """Look for them now."""


class DirectoryServices(SlicedPartitionServices, Protocol):
    """The data directories, and the partitions in them."""

    @property
    def log_manager(self) -> LogManager:
        """What is in each directory."""

    @property
    def housekeeping(self) -> OldSegments:
        """What removes old segments."""

    @property
    def moves(self) -> ReplicaMoves:
        """Partitions on their way from one directory to another."""


class DeletionServices(DirectoryServices, Protocol):
    """What records are deleted from, and where it is waited for followers."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    @property
    def produce_purgatory(self) -> Purgatory[DelayedOperation]:
        """Produces and DeleteRecords that wait for followers."""


class FetchServices(PartitionServices, Protocol):
    """What a Fetch reads, and where it waits."""

    @property
    def quotas(self) -> QuotaSwitch:
        """What clients may read."""

    @property
    def node_id(self) -> int:
        """This broker's id."""

    @property
    def cluster(self) -> Cluster:
        """The brokers, some of them nearer to the reader perhaps."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""

    @property
    def fetch_sessions(self) -> FetchSessions:
        """Sessions of incremental fetches."""

    @property
    def fetch_purgatory(self) -> Purgatory[DelayedFetch]:
        """Fetches that wait for bytes."""


class ProduceServices(PartitionServices, TransactionServices, Protocol):
    """What a Produce appends to, and where it waits."""

    @property
    def clock(self) -> Clock:
        """The broker's clock."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""

    @property
    def inspections(self) -> Inspections:
        """Batches whose records take long to look at."""

    @property
    def line_limit(self) -> LineLimit:
        """How many lines of the log clients may cause."""

    @property
    def produce_purgatory(self) -> Purgatory[DelayedOperation]:
        """Produces that wait for a flush."""


class OffsetServices(GroupServices, MetadataServices, Protocol):
    """Groups' offsets, and the partitions they are of."""


class OffsetFetchServices(GroupServices, TopicServices, Protocol):
    """Groups' offsets, and the topics they are of."""


class GroupProtocolServices(GroupServices, TopicServices, Protocol):
    """The groups, and whether their newer protocols are on."""


class TransactionPartitionServices(TransactionServices, MetadataServices, Protocol):
    """Transactions, and the partitions that are in them."""


class TransactionOffsetServices(OffsetServices, TransactionServices, Protocol):
    """Groups' offsets in transactions."""


class ProducerIdServices(TransactionServices, TopicServices, Protocol):
    """Producer ids, with and without transactions."""

    @property
    def controller(self) -> ClusterMetadata:
        """The cluster's metadata, and what brokers ask of the controller."""
