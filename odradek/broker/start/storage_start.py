"""Opens the data directories: the locks, the metadata log, the controller, every partition's log, and their managers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from odradek.broker.replica.delayed_produce import GroupCommit
from odradek.broker.replica.partition_directories import (
    AloneRoles,
    DirectoryFailures,
    LogConfigs,
    PartitionDirectories,
    PartitionRoles,
)
from odradek.common.config.dynamic import CLUSTER_DEFAULT, ConfigView, ResourceType, apply_broker_overrides
from odradek.common.config.listener_config import security_protocol_id
from odradek.common.logging import log
from odradek.controller.cluster.lone_controller import LoneController
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.features import SUPPORTED_FEATURES
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.reconcile import Reconciliation
from odradek.controller.metadata.snapshot_generator import read_bootstrap
from odradek.protocol.errors import KafkaError
from odradek.protocol.metadata_records.nodes import NodeEndpoint, NodeFeature, RegisterBrokerRecord
from odradek.protocol.quorum_records import Voter
from odradek.storage.directories.checkpoints import RECOVERY_POINT_FILE
from odradek.storage.directories.data_directory import METADATA_LOG, RESERVE_BYTES, Reserve, is_full, reserve_bytes_of
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.filesystem import FileSystem, RealFileSystem
from odradek.storage.log.log_config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random
    from uuid import UUID

    from odradek.broker.replica.housekeeping import Housekeeping
    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.storage.directories.data_directory import DataDirectory, DirectoryIdentity
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock
    from odradek.timing.slices import Slices
    from odradek.timing.timer import DelayedOperation, Purgatory, Timer


MetadataLogT = TypeVar("MetadataLogT", bound=MetadataLog)


class Moves(Protocol):
    """The moves of partitions to other directories, as needed when directories or partitions go away."""

    def cancel(self, key: tuple[str, int]) -> None:
        """Abort the move of a partition, if there is one."""

    def directory_failed(self, directory: DataDirectory) -> None:
        """Abort the moves to a failed directory, or from it."""


class StorageHost(Protocol):
    """The broker that opens the storage. It creates ``moves`` and ``housekeeping`` right afterwards."""

    config: BrokerConfig
    node_id: int
    clock: Clock
    timer: Timer
    background: Background
    partitions: Partitions
    produce_purgatory: Purgatory[DelayedOperation]
    housekeeping: Housekeeping
    slices: Slices
    on_bulk_load: Callable[[], object]

    @property
    def moves(self) -> Moves:
        """The moves of partitions to other directories."""

    @property
    def wake_fetches(self) -> Callable[[Partition], object]:
        """The function that tries the fetches waiting for a partition."""

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with the broker's seed."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the event loop."""

    def fail(self, reason: str) -> None:
        """Report that there is nothing left to serve from."""


class AloneHost(StorageHost, Protocol):
    """A broker that has a controller of its own and is in no cluster."""

    random: Random
    endpoints: dict[str, Endpoint]


class LockedDirectories(NamedTuple):
    """The data directories, locked by this broker, with no log open yet."""

    log_manager: LogManager
    group_commit: GroupCommit
    identity: DirectoryIdentity


@dataclass(frozen=True, slots=True)
class OpenStorage:
    """The open storage of a started broker."""

    log_manager: LogManager
    controller: ClusterMetadata
    group_commit: GroupCommit
    partition_directories: PartitionDirectories
    cluster_id: str


def open_storage(broker: AloneHost, file_system: FileSystem | None) -> OpenStorage:
    """Open ``log.dirs`` and fill ``broker.partitions``. A directory that does not work is offline, if others do.

    If a disk is full, the start uses the reserves. Raises DataDirectoryLocked, InconsistentDataDirectory, MetadataUnreadable,
    LogCorrupt (the metadata log), OSError. After an error no lock is kept.
    """
    file_system = file_system or RealFileSystem(RESERVE_BYTES)
    try:
        return _open_storage(broker, file_system)
    except (KafkaError, OSError) as error:
        released = [Reserve(file_system, path, 0).release() for path in log_dirs(broker.config)] if is_full(error) else []
        if not any(released):
            raise
    return _open_storage(broker, file_system)


def log_dirs(config: BrokerConfig) -> list[str]:
    """Return ``log.dirs`` as absolute paths without duplicates."""
    return list(dict.fromkeys(str(Path(log_dir).absolute()) for log_dir in config["log.dirs"]))


def _open_storage(broker: AloneHost, file_system: FileSystem) -> OpenStorage:
    locked = lock_directories(broker, file_system)
    try:
        controller = _open_controller(broker, file_system, locked)
        directories = open_partitions(
            broker,
            file_system,
            locked.log_manager,
            controller,
            AloneRoles(broker.node_id),
            directory_failed=controller.directory_failed,
        )
        controller.record_directories(directories.places())
    except BaseException:
        locked.log_manager.release()
        raise
    return OpenStorage(locked.log_manager, controller, locked.group_commit, directories, locked.identity.cluster_id)


def lock_directories(broker: StorageHost, file_system: FileSystem, cluster_id: str | None = None) -> LockedDirectories:
    """Lock ``log.dirs``, and read their files. New directories get ``cluster_id``; the others must have it.

    Raises DataDirectoryLocked, InconsistentDataDirectory, OSError. After an error no lock is kept.
    """
    log_manager = log_manager_for(broker.config, file_system, broker.new_uuid, cluster_id)
    group_commit = GroupCommit(
        partitions=broker.partitions,
        produce_purgatory=broker.produce_purgatory,
        flusher=log_manager.flusher,
        clock=broker.clock,
        background=broker.background,
        call_soon=broker.call_soon,
    )
    log_manager.on_flush_due = group_commit.request
    return LockedDirectories(log_manager, group_commit, log_manager.start())


def log_manager_for(
    config: BrokerConfig, file_system: FileSystem, new_uuid: Callable[[], UUID], cluster_id: str | None = None
) -> LogManager:
    """Return the manager of the logs in ``log.dirs``, which are not locked yet."""
    metadata_dir = config["metadata.log.dir"]
    return LogManager(
        file_system,
        *log_dirs(config),
        node_id=config["node.id"],
        cluster_id=cluster_id,
        warn=log.warn,
        new_uuid=new_uuid,
        metadata_dir=None if metadata_dir is None else str(Path(metadata_dir).absolute()),
        reserve_bytes=reserve_bytes_of(file_system),
    )


def open_partitions(
    broker: StorageHost,
    file_system: FileSystem,
    log_manager: LogManager,
    metadata: ClusterMetadata,
    roles: PartitionRoles,
    *,
    directory_failed: Callable[[UUID], object],
    wake: Callable[[Partition], object] | None = None,
) -> PartitionDirectories:
    """Open this broker's logs, fill ``broker.partitions``, and keep both in step with ``metadata`` from now on.

    ``wake`` completes requests that wait for a partition; if None, only fetches: a single broker's produces wait only for
    flushes. ``directory_failed`` is called with the id of each directory that goes offline. Raises KafkaError, OSError; the
    caller unlocks.
    """
    overrides = BrokerOverrides(broker.config, metadata.image)
    overrides.apply()
    begun_ms = broker.clock.monotonic_ms()
    Reconciliation(
        image=metadata.image,
        log_manager=log_manager,
        node_id=broker.node_id,
        file_system=file_system,
        log_config_for=metadata.log_config_for,
        now_ms=broker.clock.now_ms(),
        warn=log.warn,
    ).run()
    log_manager.load_ms = broker.clock.monotonic_ms() - begun_ms
    failures = _directory_failures(broker, log_manager, directory_failed)
    # Deferred: it must not run inside the operation that met the error.
    log_manager.on_failure = lambda directory: broker.timer.call_after(0, lambda: failures.failed(directory))
    directories = PartitionDirectories(
        broker.partitions,
        log_manager,
        metadata.image,
        roles=roles,
        clock=broker.clock,
        log_config_for=metadata.log_config_for,
        wake_fetches=wake or broker.wake_fetches,
        before_delete=lambda key: broker.moves.cancel(key),  # noqa: PLW0108  made later
        after_delete=lambda: broker.housekeeping.remove_deleted_after(broker.config["log.segment.delete.delay.ms"]),
        slices=broker.slices,
    )
    directories.on_many_created = lambda: broker.on_bulk_load()  # noqa: PLW0108  it is set later
    directories.lead_all()
    for directory in log_manager.directories.all:
        if not directory.failure:
            directory.reserve.fill()
    metadata.subscribe(directories, PublishingOrder.PARTITIONS)
    metadata.subscribe(overrides, PublishingOrder.BROKER_CONFIGS)
    metadata.subscribe(LogConfigs(broker.partitions, metadata.log_config_for), PublishingOrder.TOPIC_CONFIGS)
    return directories


def _open_controller(broker: AloneHost, file_system: FileSystem, locked: LockedDirectories) -> LoneController:
    return LoneController(
        open_metadata_log(MetadataLog, broker.config, file_system, locked.log_manager, now_ms=broker.clock.now_ms()),
        broker=_registration(broker, locked),
        config=broker.config,
        clock=broker.clock,
        new_topic_id=broker.new_uuid,
        random=broker.random,
        directory_counts=locked.log_manager.counts,
        background=broker.background,
        slices=broker.slices,
    )


def _registration(broker: AloneHost, locked: LockedDirectories) -> RegisterBrokerRecord:
    """Return this broker's registration. Its directory id is its incarnation id: no other process has the directory open."""
    return RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=locked.identity.directory_id,
        end_points=registered_endpoints(broker.config, broker.endpoints),
        features=registered_features(),
        rack=broker.config["broker.rack"],
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


def open_metadata_log(
    kind: type[MetadataLogT], config: BrokerConfig, file_system: FileSystem, log_manager: LogManager, *, now_ms: int
) -> MetadataLogT:
    """Open the metadata log of a controller in its directory. Raises LogCorrupt, OSError, KafkaError."""
    directory = log_manager.directories.metadata
    metadata_log = kind.open(
        file_system,
        directory.path,
        synced_offset=directory.held_offset(RECOVERY_POINT_FILE, METADATA_LOG) or 0,
        now_ms=now_ms,
        warn=log.warn,
        config=LogConfig(segment_bytes=config["metadata.log.segment.bytes"], segment_ms=config["metadata.log.segment.ms"]),
    )
    metadata_log.reserve = directory.reserve
    if directory.identity is not None:
        # A single broker's controller cannot be reached. A controller with listeners adds them.
        metadata_log.voter = Voter(directory.identity.node_id, directory.identity.directory_id, ())
    if metadata_log.end_offset == 0:
        metadata_log.bootstrap = read_bootstrap(file_system, directory.path)
    log_manager.checkpoints.metadata_synced = lambda: metadata_log.synced_offset
    return metadata_log


def _directory_failures(broker: StorageHost, log_manager: LogManager, tell: Callable[[UUID], object]) -> DirectoryFailures:
    """Return the object that takes partitions offline when their directory fails."""
    return DirectoryFailures(
        broker.partitions,
        log_manager,
        wake_produces=broker.produce_purgatory.check_and_complete,
        cancel_moves=lambda directory: broker.moves.directory_failed(directory),  # noqa: PLW0108  made later
        tell=tell,
        fail=broker.fail,
    )


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
