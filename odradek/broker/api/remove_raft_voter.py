"""RemoveRaftVoter, version 0: removes a voter from the controllers' quorum (KIP-853).

As in Kafka, the last voter stays, and the quorum has only one: VOTER_NOT_FOUND. Before that come INCONSISTENT_CLUSTER_ID,
INVALID_REQUEST for a voter without an id or a directory id, and UNSUPPORTED_VERSION if ``kraft.version`` is 0.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.add_raft_voter import invalid_change, unsupported_change
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import VoterServices
    from odradek.common.context import RequestContext


def handle(services: "VoterServices", _context: "RequestContext", request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Refuse the removal."""
    error = (
        invalid_change(services, request.cluster_id, request.voter_id, request.voter_directory_id)
        or unsupported_change(services)
        or KafkaError(
            ErrorCode.VOTER_NOT_FOUND,
            f"The voter {request.voter_id} cannot be removed: node {services.node_id} is the quorum's only voter.",
        )
    )
    return RemoveRaftVoterResponse(error_code=error.code, error_message=error.reason)


rule = on_cluster(AclOperation.ALTER)
