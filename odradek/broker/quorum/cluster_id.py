"""The id of a quorum's cluster, for a broker whose data directory is empty: any of the controllers tells it (KIP-919)."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from odradek.broker.logging import log as broker_log
from odradek.broker.quorum.leader_discovery import Address, QuorumNode
from odradek.broker.quorum.membership import MembershipLost
from odradek.client.api import Api
from odradek.client.config import ClientConfig
from odradek.client.errors import ClientError
from odradek.client.node_client import Connect, NodeClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.timing.timer import Timer
from odradek.timing.wakeup import Wakeup

# Version 1 is the first in which controllers can be asked.
_DESCRIBE_CLUSTER: Final[Api[DescribeClusterRequest, DescribeClusterResponse]] = Api(ApiKey.DESCRIBE_CLUSTER, 1)
_CONTROLLERS: Final = 2
_ATTEMPT_MS: Final = 2_000
_BACKOFF_MS: Final = 20


class ClusterIdUnknown(MembershipLost):
    """No controller has told the cluster's id in time."""


async def find_cluster_id(
    nodes: Sequence[QuorumNode], connect: Callable[[Address], Connect], timer: Timer, random: Random, *, timeout_ms: float
) -> str:
    """Ask the configured controllers, one after the other, until one tells it. Raises ClusterIdUnknown."""
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
                broker_log.warn("a controller does not tell the cluster's id", reason=complaint)
        await wakeup.wait(_BACKOFF_MS)
    raise ClusterIdUnknown(f"no controller has told the cluster's id: {reason}")
