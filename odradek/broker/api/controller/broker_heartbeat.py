"""BrokerHeartbeat, versions 0 to 2: a broker is alive, and asks to be fenced, unfenced or shut down (KIP-631, KIP-858)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import BrokerServices
    from odradek.timing.reply import Reply


def handle(
    services: "BrokerServices", _context: "RequestContext", request: BrokerHeartbeatRequest
) -> "Reply[BrokerHeartbeatResponse]":
    """Record that the broker is alive, and answer its request."""
    return services.controller.heartbeat(request)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
