"""AlterPartitionReassignments, versions 0 and 1: moves replicas to other brokers, or cancels moves (KIP-455, KIP-860)."""

from typing import TYPE_CHECKING

from odradek.broker.large import TOPICS, Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import DecisionServices
    from odradek.protocol.message_types.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from odradek.timing.reply import Reply

pieces = Pieces(TOPICS, ("responses", "partitions"))


def handle(
    services: "DecisionServices", _context: "RequestContext", request: "AlterPartitionReassignmentsRequest"
) -> "Reply[AlterPartitionReassignmentsResponse]":
    """Begin or cancel the moves."""
    return services.controller.alter_partition_reassignments(request)


rule = on_cluster(AclOperation.ALTER)
