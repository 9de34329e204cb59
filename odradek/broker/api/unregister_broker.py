"""UnregisterBroker, version 0 (KIP-631): removes a broker from the cluster for good.

A single broker stays.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import DecisionServices
    from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from odradek.timing.reply import Reply


def handle(
    services: "DecisionServices", _context: "RequestContext", request: "UnregisterBrokerRequest"
) -> "Reply[UnregisterBrokerResponse]":
    """Unregister the broker."""
    return services.controller.unregister_broker(request)


rule = on_cluster(AclOperation.ALTER)
