"""DescribeCluster, versions 0 to 2: the cluster's id, its brokers and its controller (KIP-700), all of which is this broker.

Only brokers can be asked about here (endpoint type 1, KIP-919): MISMATCHED_ENDPOINT_TYPE for controllers, which have no listener
of their own, UNSUPPORTED_ENDPOINT_TYPE for anything else. ``include_fenced_brokers`` (version 2, KIP-1073) makes no difference: a
broker that answers is not fenced. Without an authorizer every operation on the cluster is authorized.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.topic_description import CLUSTER_OPERATIONS, NO_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.DESCRIBE_CLUSTER)

_BROKERS = 1
_CONTROLLERS = 2


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:
    """Describe the cluster as seen from the listener of the request."""
    if request.endpoint_type == _CONTROLLERS:
        return M.DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message="This endpoint is a broker's, not a controller's."
        )
    if request.endpoint_type != _BROKERS:
        return M.DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"There is no endpoint of type {request.endpoint_type}.",
        )
    host, port = broker.advertised(context.listener_name)
    return M.DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[M.DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port, rack=broker.config["broker.rack"])],
        cluster_authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS,
    )
