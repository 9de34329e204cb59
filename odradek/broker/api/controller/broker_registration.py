"""BrokerRegistration, versions 0 to 4: a broker has started (KIP-631, KIP-858, KIP-966)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import BrokerServices
    from odradek.timing.reply import Reply


def handle(
    services: "BrokerServices", context: "RequestContext", request: BrokerRegistrationRequest
) -> "Reply[BrokerRegistrationResponse]":
    """Register the broker."""
    return services.controller.register_broker(request, context.version)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
