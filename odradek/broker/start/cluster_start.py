"""Opens the data directories of a broker in a cluster: cluster id, locks, the cluster's metadata, every partition's log.

The controllers are elsewhere, or the only controller is in this process and listens for other brokers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from odradek.broker.cluster.followed_metadata import MetadataSource, ObservedMetadata
from odradek.broker.cluster.member import ClusterMember, MemberHost
from odradek.broker.cluster.peers import PeerConnections
from odradek.broker.start.storage_start import (
    LockedDirectories,
    OpenStorage,
    StorageHost,
    lock_directories,
    log_dirs,
    open_partitions,
)
from odradek.common.config.checks import quorum_nodes
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.fetch_messages import ObserverIdentity
from odradek.controller.quorum.leader_discovery import QuorumNode
from odradek.controller.quorum.observer import ObserverConfig, ObserverHost
from odradek.controller.quorum.start import find_cluster_id
from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directory import RESERVE_BYTES
from odradek.storage.filesystem import FileSystem, RealFileSystem
from odradek.storage.log.log_config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.replica.partition import Partition
    from odradek.broker.start.controller_node import ControllerNode
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.timing.timer import DelayedOperation, Purgatory


class JoiningBroker(StorageHost, MemberHost, Protocol):
    """The broker that joins the cluster."""


class ControllersListeners(Protocol):
    """The listeners of the controller in this process: ``controller_server.ControllerListeners``."""

    @property
    def bound(self) -> dict[str, Endpoint]:
        """The addresses they are bound to, by name."""

    async def serve_node(self, node: ControllerNode) -> None:
        """Accept connections for ``node``. Raises OSError."""


async def join_cluster(
    broker: JoiningBroker, file_system: FileSystem | None, listeners: ControllersListeners | None
) -> tuple[OpenStorage, ClusterMember]:
    """Join the cluster that ``controller.quorum.*`` name, and open all logs. The broker is still fenced then.

    With ``listeners``, the cluster's controller starts in this process. Otherwise an empty data directory takes the cluster id
    from a controller. While logs are recovered the loop does nothing else.

    Raises MembershipLost; InvalidConfig if it is not clear how to connect to others; the errors of ``lock_directories`` and
    ``open_partitions``; LogCorrupt, MetadataUnreadable or ValueError for the metadata log. After an error no lock is kept.
    """
    file_system = file_system or RealFileSystem(RESERVE_BYTES)
    config = broker.config
    peers = PeerConnections(config, broker.clock, to_controllers=listeners is None)
    nodes: list[QuorumNode] = []
    cluster_id = None
    if listeners is None:
        configured = quorum_nodes(config["controller.quorum.voters"], config["controller.quorum.bootstrap.servers"])
        nodes = [QuorumNode(*node) for node in configured]
        cluster_id = await _cluster_id(broker, file_system, nodes, peers)
    locked = lock_directories(broker, file_system, cluster_id)
    member: ClusterMember | None = None
    try:
        if listeners is None:
            source: MetadataSource = _observe(broker, file_system, locked, nodes, peers)
        else:
            source = await _control(broker, file_system, locked, listeners)
        member = ClusterMember(broker, locked.log_manager, locked.identity, source, peers.to_broker)
        await member.catch_up()
        directories = open_partitions(
            broker,
            file_system,
            locked.log_manager,
            member.metadata,
            member.roles,
            wake=partial(_wake, broker.wake_fetches, broker.produce_purgatory),
            directory_failed=member.lifecycle.directory_failed,
        )
    except BaseException:
        if member is not None:
            await member.close()
        locked.log_manager.release()
        raise
    storage = OpenStorage(locked.log_manager, member.metadata, locked.group_commit, directories, locked.identity.cluster_id)
    return storage, member


async def _cluster_id(broker: JoiningBroker, file_system: FileSystem, nodes: Sequence[QuorumNode], peers: PeerConnections) -> str:
    known = _known_cluster_id(broker.config, file_system)
    if known is not None:
        return known
    timeout_ms = broker.config["initial.broker.registration.timeout.ms"]
    return await find_cluster_id(nodes, peers.to_controller, broker.timer, broker.random, timeout_ms=timeout_ms)


def _observe(
    broker: JoiningBroker,
    file_system: FileSystem,
    locked: LockedDirectories,
    nodes: Sequence[QuorumNode],
    peers: PeerConnections,
) -> ObservedMetadata:
    """Open the copy of a metadata log elsewhere. Raises LogCorrupt, OSError, ValueError, KafkaError."""
    config = broker.config
    host = ObserverHost(
        file_system=file_system,
        timer=broker.timer,
        slices=broker.slices,
        random=broker.random,
        connect=peers.to_controller,
        warn=broker_log.warn,
    )
    identity = locked.identity
    return ObservedMetadata(
        host,
        ObserverIdentity(identity.cluster_id, broker.node_id, identity.directory_id),
        nodes,
        data_dir=locked.log_manager.directories.metadata.path,
        config=config,
        observer_config=_observer_config(config, nodes),
        log_config=LogConfig(segment_bytes=config["metadata.log.segment.bytes"], segment_ms=config["metadata.log.segment.ms"]),
        background=broker.background,
    )


async def _control(
    broker: JoiningBroker, file_system: FileSystem, locked: LockedDirectories, listeners: ControllersListeners
) -> MetadataSource:
    """Start the cluster's controller. Raises MetadataUnreadable, LogCorrupt, OSError, ValueError, KafkaError."""
    from odradek.broker.start.controller_node import ControllerNode, OwnController

    node = ControllerNode(broker, file_system, locked.log_manager, locked.identity, listeners.bound)
    await listeners.serve_node(node)
    node.start()
    # An earlier broker with this id has ended together with its controller.
    node.controller.end_session(broker.node_id)
    return OwnController(node)


def _observer_config(config: BrokerConfig, nodes: Sequence[QuorumNode]) -> ObserverConfig:
    return ObserverConfig(
        fetch_timeout_ms=config["controller.quorum.fetch.timeout.ms"],
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        fetch_max_bytes=config["controller.quorum.fetch.max.bytes"],
        voter_ids=tuple(node.node_id for node in nodes if node.node_id is not None),
    )


def _wake(
    wake_fetches: Callable[[Partition], object], produce_purgatory: Purgatory[DelayedOperation], partition: Partition
) -> None:
    """Complete requests that wait for followers, or that must look for a new leader."""
    wake_fetches(partition)
    produce_purgatory.check_and_complete(partition)


def _known_cluster_id(config: BrokerConfig, file_system: FileSystem) -> str | None:
    """Return the cluster id in the data directories. ``lock_directories`` will refuse unreadable ones."""
    for path in log_dirs(config):
        try:
            found = checkpoints.read_meta_properties(file_system, path)
        except (ValueError, OSError):
            continue
        if found is not None and found.get("cluster.id"):
            return found["cluster.id"]
    return None
