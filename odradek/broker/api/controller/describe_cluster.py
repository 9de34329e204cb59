"""DescribeCluster, versions 1 and 2, of a controller: the cluster's id and its controllers (KIP-919).

Only controllers can be described here (endpoint type 2): MISMATCHED_ENDPOINT_TYPE for brokers, UNSUPPORTED_ENDPOINT_TYPE for
anything else. Version 0 has no endpoint types, and asks about brokers.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.describe_cluster import CONTROLLERS, wrong_endpoint
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import QuorumServices


def handle(services: "QuorumServices", context: "RequestContext", request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the quorum as seen from the listener of the request."""
    if request.endpoint_type != CONTROLLERS:
        return wrong_endpoint(request.endpoint_type, CONTROLLERS)
    leader = services.leader
    endpoint = leader.endpoints.get(context.listener_name)
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=leader.cluster_id,
        controller_id=leader.node_id,
        brokers=[] if endpoint is None else [DescribeClusterBroker(leader.node_id, endpoint.host, endpoint.port)],
    )


rule = on_cluster(AclOperation.ALTER)
