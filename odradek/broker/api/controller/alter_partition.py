"""AlterPartition, versions 2 and 3: a leader proposes in-sync replicas (KIP-497, KIP-841, KIP-903)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import BrokerServices
    from odradek.timing.reply import Reply


def handle(
    services: "BrokerServices", context: "RequestContext", request: AlterPartitionRequest
) -> "Reply[AlterPartitionResponse]":
    """Decide on the in-sync replicas of each partition."""
    return services.controller.alter_partition(request, context.version)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
