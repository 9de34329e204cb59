"""AllocateProducerIds, version 0: allocates a block of producer ids to a broker (KIP-730)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import BrokerServices
    from odradek.timing.reply import Reply


def handle(
    services: "BrokerServices", _context: "RequestContext", request: AllocateProducerIdsRequest
) -> "Reply[AllocateProducerIdsResponse]":
    """Allocate a block to the broker."""
    return services.controller.allocate_producer_ids(request)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
