"""ElectLeaders, versions 0 to 2: preferred (0) or unclean (1, since version 1) leader election (KIP-460).

The one broker leads every partition there is, so an election is never needed: ELECTION_NOT_NEEDED for each partition asked for.
Without a list all partitions are meant, and those that need no election are not told, which leaves every topic with none.
"""

from typing import TYPE_CHECKING

from odradek.broker.large.pieces import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TopicServices
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.image import MetadataImage


_ELECTION_TYPES = (0, 1)

pieces = Pieces(("topic_partitions", "partitions"), ("replica_election_results", "partition_result"))
may_answer_much = True


def handle(services: "TopicServices", _context: "RequestContext", request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Say that the partitions of ``request`` have their leader."""
    image = services.controller.image
    valid = request.election_type in _ELECTION_TYPES
    error = ErrorCode.NONE if valid else ErrorCode.INVALID_REQUEST
    if request.topic_partitions is None:
        named = [ReplicaElectionResult(topic=topic) for topic in image.topics] if valid else []
        return ElectLeadersResponse(error_code=error, replica_election_results=named)
    results = [
        ReplicaElectionResult(
            topic=asked.topic,
            partition_result=[
                _result(image, asked.topic, partition) if valid else _unknown_election(partition, request.election_type)
                for partition in asked.partitions
            ],
        )
        for asked in request.topic_partitions
    ]
    return ElectLeadersResponse(error_code=error, replica_election_results=results)


def _result(image: "MetadataImage", topic: str, partition: int) -> PartitionResult:
    known = image.topics.get(topic)
    code = ErrorCode.ELECTION_NOT_NEEDED
    message = "The partition has its preferred leader."
    if known is None or partition not in known.partitions:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = f"No such topic as {topic}" if known is None else f"No such partition as {topic}-{partition}"
    return PartitionResult(partition_id=partition, error_code=code, error_message=message)


def _unknown_election(partition: int, election_type: int) -> PartitionResult:
    return PartitionResult(
        partition_id=partition,
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"There is no election of type {election_type}.",
    )


rule = on_cluster(AclOperation.ALTER)
