"""UnregisterController, version 0: removes the registration of a controller that is gone (KIP-1312).

The active controller cannot remove its own: INVALID_REQUEST. Here it is the only voter, but Kafka's directories may name others.
Before ``metadata.version`` 4.4-IV2: UNSUPPORTED_VERSION.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import DecisionServices
    from odradek.protocol.message_types.unregister_controller import (
        UnregisterControllerRequest,
        UnregisterControllerResponse,
    )
    from odradek.timing.reply import Reply


def handle(
    services: "DecisionServices", _context: "RequestContext", request: "UnregisterControllerRequest"
) -> "Reply[UnregisterControllerResponse]":
    """Unregister the controller."""
    return services.controller.unregister_controller(request)


rule = on_cluster(AclOperation.ALTER)
