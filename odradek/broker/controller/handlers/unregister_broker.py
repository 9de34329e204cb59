"""UnregisterBroker, version 0: a broker is no longer a member of the cluster."""

from typing import TYPE_CHECKING

from odradek.broker.authorization import on_cluster
from odradek.broker.authorizer.acls import AclOperation
from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.controller.services import DecisionServices
    from odradek.timing.reply import Reply


def handle(
    services: "DecisionServices", _context: "RequestContext", request: UnregisterBrokerRequest
) -> "Reply[UnregisterBrokerResponse]":
    """Forget the broker."""
    return services.controller.unregister_broker(request)


rule = on_cluster(AclOperation.ALTER)
