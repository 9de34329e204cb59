"""DescribeCluster, versions 0 to 2: the cluster's id, its brokers and its controller (KIP-700).

Only brokers can be described here (endpoint type 1, KIP-919): MISMATCHED_ENDPOINT_TYPE for controllers, which have no listener of
their own; UNSUPPORTED_ENDPOINT_TYPE for anything else. ``include_fenced_brokers`` (version 2, KIP-1073) adds registered
brokers that are fenced. Without an authorizer every operation on the cluster is authorized.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.api.acl_messages import CLUSTER_OPERATIONS, NO_OPERATIONS, with_cluster_operations
from odradek.broker.security.acl.rules import GuardedRequest, then
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import NodeServices
    from odradek.common.context import RequestContext

BROKERS: Final = 1
CONTROLLERS: Final = 2
_NAMES: Final = {BROKERS: "broker", CONTROLLERS: "controller"}

has_unbounded_response = True


def handle(services: "NodeServices", context: "RequestContext", request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the cluster as seen from the listener of the request."""
    if request.endpoint_type != BROKERS:
        return wrong_endpoint(request.endpoint_type, BROKERS)
    cluster = services.cluster
    nodes = cluster.nodes(context.listener_name)
    if request.include_fenced_brokers:
        nodes += cluster.nodes(context.listener_name, are_fenced=True)
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[DescribeClusterBroker(*node) for node in nodes],
        cluster_authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS,
    )


def wrong_endpoint(asked: int, own: int) -> DescribeClusterResponse:
    """Return the refusal of a request about endpoints of type ``asked``, by an endpoint of type ``own``."""
    if asked in _NAMES:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=f"This endpoint is a {_NAMES[own]}'s, not a {_NAMES[asked]}'s.",
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=f"There is no endpoint of type {asked}."
    )


def rule(guarded: "GuardedRequest") -> object:
    """Allow any client. The authorized operations are the client's."""
    return then(guarded.handle(), partial(with_cluster_operations, guarded))
