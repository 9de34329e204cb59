"""AssignReplicasToDirs, version 0: a broker reports which of its directories hold replicas (KIP-858)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import BrokerServices
    from odradek.timing.reply import Reply


def handle(
    services: "BrokerServices", _context: "RequestContext", request: AssignReplicasToDirsRequest
) -> "Reply[AssignReplicasToDirsResponse]":
    """Record the directories."""
    return services.controller.assign_replicas_to_dirs(request)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
