"""ListPartitionReassignments, version 0: the replica moves in progress (KIP-455)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import DecisionServices
    from odradek.protocol.message_types.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )
    from odradek.timing.reply import Reply

has_unbounded_response = True


def handle(
    services: "DecisionServices", _context: "RequestContext", request: "ListPartitionReassignmentsRequest"
) -> "Reply[ListPartitionReassignmentsResponse]":
    """List the moves."""
    return services.controller.list_partition_reassignments(request)


rule = on_cluster(AclOperation.DESCRIBE)
