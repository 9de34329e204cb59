"""ElectLeaders, versions 0 to 2: preferred (0) or unclean (1, since version 1) leader elections (KIP-460).

A single broker leads all its partitions: no election is needed.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import DecisionServices
    from odradek.protocol.message_types.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from odradek.timing.reply import Reply

pieces = Pieces(("topic_partitions", "partitions"), ("replica_election_results", "partition_result"))
has_unbounded_response = True


def handle(
    services: "DecisionServices", _context: "RequestContext", request: "ElectLeadersRequest"
) -> "Reply[ElectLeadersResponse]":
    """Hold the elections."""
    return services.controller.elect_leaders(request)


rule = on_cluster(AclOperation.ALTER)
