"""AddRaftVoter, versions 0 and 1: adds a voter to the controllers' quorum (KIP-853).

The quorum has one voter, its leader, so nothing is added. The checks are Kafka's, in its order: INCONSISTENT_CLUSTER_ID;
INVALID_REQUEST for a voter without an id, a directory id, or an endpoint for the controllers' first listener; UNSUPPORTED_VERSION
if ``kraft.version`` is 0; DUPLICATE_VOTER for the leader itself. Deliberate gap: Kafka would now ask the new voter for its
versions, and add it. It is refused with UNSUPPORTED_VERSION here.
"""

from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.common.config.kafka_properties import CONTROLLER_LISTENER
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import VoterServices
    from odradek.common.context import RequestContext


def handle(services: "VoterServices", _context: "RequestContext", request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse the voter."""
    error = _refusal(services, request)
    return AddRaftVoterResponse(error_code=error.code, error_message=error.reason)


def _refusal(services: "VoterServices", request: AddRaftVoterRequest) -> KafkaError:
    invalid = invalid_change(services, request.cluster_id, request.voter_id, request.voter_directory_id)
    if invalid is not None:
        return invalid
    # A broker alone has no listener for controllers. It gets one of this name when it grows out.
    listener_name = next(iter(services.config["controller.listener.names"]), CONTROLLER_LISTENER).upper()
    if not any(listener.name.upper() == listener_name for listener in request.listeners):
        return KafkaError(
            ErrorCode.INVALID_REQUEST, f"The voter {request.voter_id} has no endpoint for the listener {listener_name}."
        )
    unsupported = unsupported_change(services)
    if unsupported is not None:
        return unsupported
    if request.voter_id == services.node_id:
        return KafkaError(ErrorCode.DUPLICATE_VOTER, f"Node {request.voter_id} is a voter already.")
    return KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"Node {services.node_id} is the only voter that odradek's quorum can have; for several, use Apache Kafka's controllers.",
    )


def invalid_change(
    services: "VoterServices", cluster_id: str | None, voter_id: int, directory_id: UUID | None
) -> KafkaError | None:
    """Return the error of a change of voters that names another cluster, or no voter."""
    if cluster_id not in (None, services.cluster_id):
        return KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID, f"The request is for the cluster {cluster_id}; this is {services.cluster_id}."
        )
    if voter_id < 0 or directory_id is None:
        return KafkaError(ErrorCode.INVALID_REQUEST, "A voter is named by its node id and its directory id.")
    return None


def unsupported_change(services: "VoterServices") -> KafkaError | None:
    """Return the error of a change of voters if the quorum's voters are configured, and not in its log."""
    if services.controller.kraft_version > 0:
        return None
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Voters can only be changed from kraft.version 1 on; it is 0.")


rule = on_cluster(AclOperation.ALTER)
