"""Opens the parts of an observer. If the data directory is empty, asks a controller for the cluster's id (KIP-919)."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from odradek.client.api import Api, ClientError
from odradek.client.node_client import ClientConfig, Connect, NodeClient
from odradek.common.logging import log as broker_log
from odradek.controller.metadata.cluster_metadata import Publishers
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.quorum.fetch_messages import ObserverIdentity
from odradek.controller.quorum.followed_log import FollowedLog, ImageFollower, Snapshots
from odradek.controller.quorum.leader_discovery import (
    Address,
    Election,
    ElectionFile,
    LeaderDiscovery,
    MembershipLost,
    QuorumNode,
)
from odradek.controller.quorum.observer import MetadataObserver, ObserverConfig, ObserverHost
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.storage.log.log_config import LogConfig
from odradek.timing.driver import Wakeup
from odradek.timing.timer import Timer


class OpenObserver(NamedTuple):
    """The copy of the log, its follower, and the observer that fetches it. Call ``observer.run()`` to begin."""

    log: FollowedLog
    follower: ImageFollower
    observer: MetadataObserver


def open_observer(
    host: ObserverHost,
    identity: ObserverIdentity,
    nodes: Sequence[QuorumNode],
    *,
    data_dir: str,
    image: MetadataImage,
    publishers: Publishers,
    make_snapshots: Callable[[FollowedLog], Snapshots],
    config: ObserverConfig,
    log_config: LogConfig,
) -> OpenObserver:
    """Open the copy in ``data_dir``, and an observer of the quorum with ``nodes``.

    Raises LogCorrupt, OSError, ValueError (quorum-state), KafkaError.
    """
    clock = host.timer.clock
    log = FollowedLog.open_copy(host.file_system, data_dir, now_ms=clock.now_ms(), warn=host.warn, config=log_config)
    elections = ElectionFile(host.file_system, log.directory)
    election = elections.read()
    if election.epoch < log.last_fetched_epoch:
        election = Election(log.last_fetched_epoch)
    discovery = LeaderDiscovery(
        nodes,
        election,
        host.random,
        fetch_timeout_ms=config.fetch_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        now_ms=clock.monotonic_ms(),
    )
    follower = ImageFollower(log, image, publishers, make_snapshots(log))
    observer = MetadataObserver(identity, log, follower, discovery, elections, host, config)
    return OpenObserver(log, follower, observer)


# The first version that controllers answer.
_DESCRIBE_CLUSTER: Final[Api[DescribeClusterRequest, DescribeClusterResponse]] = Api(ApiKey.DESCRIBE_CLUSTER, 1)
_CONTROLLERS: Final = 2
_ATTEMPT_MS: Final = 2_000
_BACKOFF_MS: Final = 20


class ClusterIdUnknown(MembershipLost):
    """No controller reported the cluster's id in time."""


async def find_cluster_id(
    nodes: Sequence[QuorumNode], connect: Callable[[Address], Connect], timer: Timer, random: Random, *, timeout_ms: float
) -> str:
    """Ask the configured controllers in turn for the cluster's id. Raises ClusterIdUnknown."""
    deadline_ms = timer.clock.monotonic_ms() + timeout_ms
    config = ClientConfig(client_id="odradek-cluster-id", request_timeout_ms=_ATTEMPT_MS, connection_setup_timeout_ms=_ATTEMPT_MS)
    wakeup = Wakeup(timer)
    reason = ""
    while timer.clock.monotonic_ms() < deadline_ms:
        for node in nodes:
            client = NodeClient(connect(node.address), timer, random, config)
            try:
                response = await client.request(_DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=_CONTROLLERS))
            except ClientError as error:
                complaint = f"{node.host}:{node.port}: {error.reason}"
            else:
                if not response.error_code and response.cluster_id:
                    return response.cluster_id
                complaint = f"{node.host}:{node.port} answered error {response.error_code}"
            finally:
                client.close()
            if complaint != reason:
                reason = complaint
                broker_log.warn("a controller did not return the cluster id; trying again", reason=complaint)
        await wakeup.wait(_BACKOFF_MS)
    raise ClusterIdUnknown(f"no controller returned the cluster id: {reason}")
