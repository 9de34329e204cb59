"""Opens the data directories of a broker: the locks, the metadata log of a broker alone, every partition's log, their managers.

A broker alone and a broker among others differ only in their ``Membership``. ``OwnCluster`` is that of a broker alone,
``cluster.member.ClusterMember`` that of a broker among others.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from odradek.broker.replica.delayed_produce import GroupCommit
from odradek.broker.replica.housekeeping import Housekeeping
from odradek.broker.replica.partition import Partition, wake_fetches
from odradek.broker.replica.partition_directories import DirectoryFailures, LogConfigs, PartitionDirectories, PartitionRoles
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replica_moves import ReplicaMoves
from odradek.common.config.dynamic import CLUSTER_DEFAULT, ConfigView, ResourceType, apply_broker_overrides
from odradek.common.config.listener_config import security_protocol_id
from odradek.common.logging import log
from odradek.controller.cluster.lone_controller import LoneController
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.features import SUPPORTED_FEATURES
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.reconcile import Reconciliation
from odradek.controller.metadata.snapshot_generator import read_bootstrap
from odradek.controller.metadata.writer import ControllerHost
from odradek.protocol.metadata_records.nodes import NodeEndpoint, NodeFeature, RegisterBrokerRecord
from odradek.protocol.quorum_records import Voter
from odradek.storage.directories.checkpoints import RECOVERY_POINT_FILE
from odradek.storage.directories.data_directory import METADATA_LOG, reserve_bytes_of
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.log_config import LogConfig
from odradek.timing.timer import DelayedOperation, Purgatory, Timer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from odradek.broker.coordination.share_group_states import PartitionEnds
    from odradek.broker.coordination.transaction_coordinator import OtherBrokers
    from odradek.broker.network.gate import Gate
    from odradek.broker.replica.delayed_fetch import DelayedFetch
    from odradek.broker.share.dead_letter_queue import OtherLeaders
    from odradek.broker.share.share_persister import OtherShareCoordinators
    from odradek.broker.start.shared_server import SharedServer
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.storage.directories.data_directory import DirectoryIdentity


MetadataLogT = TypeVar("MetadataLogT", bound=MetadataLog)


class Replicas:
    """This broker's partitions, and the requests that wait for them. Kafka's class is ReplicaManager."""

    def __init__(self, timer: Timer) -> None:
        self.partitions = Partitions()
        self.fetch_purgatory: Purgatory[DelayedFetch] = Purgatory("Fetch", timer)
        self.produce_purgatory: Purgatory[DelayedOperation] = Purgatory("Produce", timer)
        # Tries the fetches that wait for a partition.
        self.wake_fetches: Callable[[Partition], object] = partial(wake_fetches, self.fetch_purgatory)

    def wake(self, partition: Partition) -> None:
        """Try all requests that wait for ``partition``: for its followers, or to look for a new leader."""
        self.wake_fetches(partition)
        self.produce_purgatory.check_and_complete(partition)


class LockedDirectories(NamedTuple):
    """The data directories, locked by this broker, with no log open yet."""

    log_manager: LogManager
    group_commit: GroupCommit
    identity: DirectoryIdentity


class Membership(Protocol):
    """A broker's place in its cluster, whether or not there are other brokers."""

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""

    @property
    def roles(self) -> PartitionRoles:
        """Gives partitions their roles."""

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates that it needs in front of the handlers."""

    @property
    def peers(self) -> OtherBrokers | None:
        """The other brokers; None if there are none."""

    @property
    def partition_ends(self) -> PartitionEnds | None:
        """Asks other brokers for the ends of partitions; None if there are none."""

    @property
    def share_peers(self) -> OtherShareCoordinators | None:
        """The share coordinators on other brokers; None if there are none."""

    @property
    def dead_letter_peers(self) -> OtherLeaders | None:
        """The leaders of dead-letter topics on other brokers; None if there are none."""

    @property
    def directory_failed(self) -> Callable[[UUID], None]:
        """Tells the controller that a data directory has gone offline."""

    def serve(self, directories: PartitionDirectories) -> None:
        """Begin: all logs are open, and the partitions in ``directories`` have their roles. Raises KafkaError."""

    async def unfence(self) -> None:
        """Wait until the controller lets this broker lead partitions. Raises MembershipLost."""

    async def leave(self) -> None:
        """Have the leaderships moved away, if other brokers can take them."""

    async def close(self) -> None:
        """End all work for the cluster. The metadata log stays open."""

    def abandon(self) -> None:
        """Stop at once, without waiting for work in progress."""


class Joined(NamedTuple):
    """A broker that has its place in its cluster, with no log open yet. ``endpoints`` are the addresses for clients."""

    replicas: Replicas
    locked: LockedDirectories
    membership: Membership
    endpoints: dict[str, Endpoint]


class OpenStorage(NamedTuple):
    """The open storage of a broker: its logs, and the work on them."""

    log_manager: LogManager
    group_commit: GroupCommit
    partition_directories: PartitionDirectories
    housekeeping: Housekeeping
    moves: ReplicaMoves
    cluster_id: str


def log_dirs(config: BrokerConfig) -> list[str]:
    """Return ``log.dirs`` as absolute paths without duplicates."""
    return list(dict.fromkeys(str(Path(log_dir).absolute()) for log_dir in config["log.dirs"]))


def lock_directories(shared: SharedServer, replicas: Replicas, cluster_id: str | None = None) -> LockedDirectories:
    """Lock ``log.dirs``, and read their files. New directories get ``cluster_id``; the others must have it.

    Raises DataDirectoryLocked, InconsistentDataDirectory, OSError. After an error no lock is kept.
    """
    log_manager = log_manager_for(shared, cluster_id)
    group_commit = GroupCommit(
        partitions=replicas.partitions,
        produce_purgatory=replicas.produce_purgatory,
        flusher=log_manager.flusher,
        clock=shared.clock,
        background=shared.background,
        call_soon=shared.call_soon,
    )
    log_manager.on_flush_due = group_commit.request
    return LockedDirectories(log_manager, group_commit, log_manager.start())


def log_manager_for(shared: SharedServer, cluster_id: str | None = None) -> LogManager:
    """Return the manager of the logs in ``log.dirs``, which are not locked yet."""
    metadata_dir = shared.config["metadata.log.dir"]
    return LogManager(
        shared.file_system,
        *log_dirs(shared.config),
        node_id=shared.node_id,
        cluster_id=cluster_id,
        warn=log.warn,
        new_uuid=shared.new_uuid,
        metadata_dir=None if metadata_dir is None else str(Path(metadata_dir).absolute()),
        reserve_bytes=reserve_bytes_of(shared.file_system),
    )


def open_storage(shared: SharedServer, joined: Joined, *, looks_for_directories: bool) -> OpenStorage:
    """Open this broker's logs, fill ``joined.replicas``, and keep both in step with the metadata from now on.

    A directory that does not work is offline, if others do. Raises KafkaError, OSError; the caller unlocks.
    """
    log_manager = joined.locked.log_manager
    open_logs(shared, log_manager, joined.membership.metadata)
    housekeeping = Housekeeping(shared.config, log_manager, shared.timer, shared.background)
    storage = lead_partitions(shared, joined, housekeeping)
    housekeeping.start(looks_for_directories=looks_for_directories)
    return storage


def open_logs(shared: SharedServer, log_manager: LogManager, metadata: ClusterMetadata) -> None:
    """Open the logs of the partitions that the metadata give this broker. After an unclean stop, they are recovered."""
    overrides = BrokerOverrides(shared.config, metadata.image)
    overrides.apply()
    metadata.subscribe(overrides, PublishingOrder.BROKER_CONFIGS)
    begun_ms = shared.clock.monotonic_ms()
    Reconciliation(
        image=metadata.image,
        log_manager=log_manager,
        node_id=shared.node_id,
        file_system=shared.file_system,
        log_config_for=metadata.log_config_for,
        now_ms=shared.clock.now_ms(),
        warn=log.warn,
    ).run()
    log_manager.load_ms = shared.clock.monotonic_ms() - begun_ms


def lead_partitions(shared: SharedServer, joined: Joined, housekeeping: Housekeeping) -> OpenStorage:
    """Give every partition its role, and keep the roles in step with the metadata from now on.

    The produces of a broker alone wait only for flushes, so a change of a partition wakes only fetches there.
    """
    replicas, locked, membership, _ = joined
    config, log_manager, metadata = shared.config, locked.log_manager, membership.metadata
    moves = ReplicaMoves(config, replicas.partitions, log_manager, metadata, shared.timer, housekeeping)
    failures = DirectoryFailures(
        replicas.partitions,
        log_manager,
        wake_produces=replicas.produce_purgatory.check_and_complete,
        cancel_moves=moves.directory_failed,
        tell=membership.directory_failed,
        fail=shared.fail,
    )
    # Deferred: it must not run inside the operation that met the error.
    log_manager.on_failure = lambda directory: shared.timer.call_after(0, lambda: failures.failed(directory))
    directories = PartitionDirectories(
        replicas.partitions,
        log_manager,
        metadata.image,
        roles=membership.roles,
        clock=shared.clock,
        log_config_for=metadata.log_config_for,
        wake_fetches=replicas.wake_fetches if membership.peers is None else replicas.wake,
        before_delete=moves.cancel,
        after_delete=lambda: housekeeping.remove_deleted_after(config["log.segment.delete.delay.ms"]),
        slices=shared.slices,
    )
    directories.lead_all()
    for directory in log_manager.directories.all:
        if not directory.failure:
            directory.reserve.fill()
    metadata.subscribe(directories, PublishingOrder.PARTITIONS)
    metadata.subscribe(LogConfigs(replicas.partitions, metadata.log_config_for), PublishingOrder.TOPIC_CONFIGS)
    membership.serve(directories)
    return OpenStorage(log_manager, locked.group_commit, directories, housekeeping, moves, locked.identity.cluster_id)


def found_cluster(shared: SharedServer, endpoints: dict[str, Endpoint]) -> Joined:
    """Lock the directories, and open the metadata log of a broker that is a cluster of one.

    Raises the errors of ``lock_directories`` and ``OwnCluster``. After an error no lock is kept.
    """
    replicas = Replicas(shared.timer)
    locked = lock_directories(shared, replicas)
    try:
        return Joined(replicas, locked, OwnCluster(shared, locked, endpoints), endpoints)
    except BaseException:
        locked.log_manager.release()
        raise


class OwnCluster:
    """The Membership of a broker that is a cluster of one. Its controller is in this process, and reached by plain calls."""

    gates = ()
    peers = None
    partition_ends = None
    share_peers = None
    dead_letter_peers = None

    def __init__(self, shared: SharedServer, locked: LockedDirectories, endpoints: Mapping[str, Endpoint]) -> None:
        """Open the metadata log, and register the broker. Raises MetadataUnreadable, LogCorrupt, OSError, KafkaError."""
        self._shared = shared
        self.metadata = LoneController(
            open_metadata_log(MetadataLog, shared, locked.log_manager),
            ControllerHost(shared.config, shared.clock, shared.new_uuid, shared.random, shared.background, shared.slices),
            broker=_registration(shared, locked, endpoints),
            directory_counts=locked.log_manager.counts,
        )
        self.roles = PartitionRoles(shared.node_id)
        self.directory_failed = self.metadata.directory_failed

    def serve(self, directories: PartitionDirectories) -> None:
        """Record where the partitions are, and watch over the expiry of tokens. Raises KafkaError."""
        self.metadata.record_directories(directories.places())
        if self._shared.config["delegation.token.secret.key"]:
            from odradek.controller.metadata.delegation_tokens import TokenExpiry

            TokenExpiry(self.metadata, self._shared.timer, self._shared.config).start()

    async def unfence(self) -> None:
        """No-op: the broker is registered without a fence."""

    async def leave(self) -> None:
        """No-op: nobody else can lead."""

    async def close(self) -> None:
        """No-op: there is no session."""

    def abandon(self) -> None:
        """No-op: there is no session."""


def _registration(shared: SharedServer, locked: LockedDirectories, endpoints: Mapping[str, Endpoint]) -> RegisterBrokerRecord:
    """Return this broker's registration. Its directory id is its incarnation id: no other process has the directory open."""
    return RegisterBrokerRecord(
        broker_id=shared.node_id,
        incarnation_id=locked.identity.directory_id,
        end_points=registered_endpoints(shared.config, endpoints),
        features=registered_features(),
        rack=shared.config["broker.rack"],
        fenced=False,
        log_dirs=tuple(locked.log_manager.directories.online_ids),
    )


def registered_endpoints(config: BrokerConfig, endpoints: Mapping[str, Endpoint]) -> tuple[NodeEndpoint, ...]:
    """Return ``endpoints`` in the form of a node's registration."""
    return tuple(
        NodeEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=security_protocol_id(config, each.name))
        for each in endpoints.values()
    )


def registered_features() -> tuple[NodeFeature, ...]:
    """Return the feature levels that an odradek node supports."""
    return tuple(
        NodeFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    )


def open_metadata_log(kind: type[MetadataLogT], shared: SharedServer, log_manager: LogManager) -> MetadataLogT:
    """Open the metadata log of a controller in its directory. Raises LogCorrupt, OSError, KafkaError."""
    config = shared.config
    directory = log_manager.directories.metadata
    metadata_log = kind.open(
        shared.file_system,
        directory.path,
        synced_offset=directory.held_offset(RECOVERY_POINT_FILE, METADATA_LOG) or 0,
        now_ms=shared.clock.now_ms(),
        warn=log.warn,
        config=metadata_log_config(config),
    )
    metadata_log.reserve = directory.reserve
    if directory.identity is not None:
        # A single broker's controller cannot be reached. A controller with listeners adds them.
        metadata_log.voter = Voter(directory.identity.node_id, directory.identity.directory_id, ())
    if metadata_log.end_offset == 0:
        metadata_log.bootstrap = read_bootstrap(shared.file_system, directory.path)
    log_manager.checkpoints.metadata_synced = lambda: metadata_log.synced_offset
    return metadata_log


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """Return the configs of a node's metadata log."""
    return LogConfig(segment_bytes=config["metadata.log.segment.bytes"], segment_ms=config["metadata.log.segment.ms"])


class BrokerOverrides:
    """Applies dynamic broker configs when they change."""

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self._view = ConfigView(config, image.configs, image.topics.__contains__)

    def apply(self) -> None:
        """Apply the image's overrides on top of the static configuration."""
        for warning in apply_broker_overrides(self._view):
            log.warn("dynamic config ignored", reason=warning)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Apply changed broker configs."""
        names = {name for kind, name in delta.configs if kind == ResourceType.BROKER}
        if names & {CLUSTER_DEFAULT, self._view.node_id}:
            self.apply()
