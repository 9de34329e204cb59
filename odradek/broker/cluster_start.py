"""Opening a data directory for a broker among others: cluster id, locks, the cluster's metadata, every partition's log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from odradek.broker.cluster.member import ClusterMember, MemberHost, connect
from odradek.broker.config.roles import quorum_nodes
from odradek.broker.quorum.cluster_id import find_cluster_id
from odradek.broker.quorum.leader_discovery import QuorumNode
from odradek.broker.storage_start import OpenStorage, StorageHost, lock_directories, log_dirs, open_partitions
from odradek.storage import checkpoints
from odradek.storage.filesystem import FileSystem, RealFileSystem
from odradek.storage.reserve import RESERVE_BYTES

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.replica.partition import Partition


class JoiningBroker(StorageHost, MemberHost, Protocol):
    """The broker that joins."""


async def join_cluster(broker: JoiningBroker, file_system: FileSystem | None) -> tuple[OpenStorage, ClusterMember]:
    """Become a broker of the cluster that ``controller.quorum.*`` name, with all logs open; fenced still.

    An empty data directory takes the cluster's id from a controller. While logs are recovered the loop does nothing else.

    Raises MembershipLost, what ``lock_directories`` and
    ``open_partitions`` do, and LogCorrupt, MetadataUnreadable or ValueError for the copy of the metadata log. No lock is kept
    then.
    """
    file_system = file_system or RealFileSystem(RESERVE_BYTES)
    config = broker.config
    configured = quorum_nodes(config["controller.quorum.voters"], config["controller.quorum.bootstrap.servers"])
    nodes = [QuorumNode(*node) for node in configured]
    cluster_id = _known_cluster_id(config, file_system)
    if cluster_id is None:
        timeout_ms = config["initial.broker.registration.timeout.ms"]
        cluster_id = await find_cluster_id(nodes, connect, broker.timer, broker.random, timeout_ms=timeout_ms)
    locked = lock_directories(broker, file_system, cluster_id)
    member: ClusterMember | None = None
    try:
        member = ClusterMember(broker, file_system, locked.log_manager, locked.identity, nodes)
        await member.catch_up()
        directories = open_partitions(
            broker,
            file_system,
            locked.log_manager,
            member.metadata,
            member.roles,
            wake=partial(_wake, broker),
            directory_failed=member.directory_failed,
        )
    except BaseException:
        if member is not None:
            await member.close()
        locked.log_manager.release()
        raise
    return OpenStorage(locked.log_manager, member.metadata, locked.group_commit, directories, cluster_id), member


def _wake(broker: JoiningBroker, partition: Partition) -> None:
    """Answer who waits for what followers have by now, or for a leader."""
    broker.fetch_purgatory.check_and_complete(partition)
    broker.produce_purgatory.check_and_complete(partition)


def _known_cluster_id(config: BrokerConfig, file_system: FileSystem) -> str | None:
    """What a data directory says; one that cannot be read is for ``lock_directories`` to refuse."""
    for path in log_dirs(config):
        try:
            found = checkpoints.read_meta_properties(file_system, path)
        except (ValueError, OSError):
            continue
        if found is not None and found.get("cluster.id"):
            return found["cluster.id"]
    return None
