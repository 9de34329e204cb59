"""Elections: those requested by ElectLeaders (KIP-460), and those that the controller holds periodically."""

from odradek.controller.cluster.broker_changes import change_of
from odradek.controller.cluster.partition_change import Election
from odradek.controller.metadata.cluster_view import NO_LEADER, ClusterView
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord

# The election types of a request.
_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
# The most elections that the controller holds at once, as in Kafka.
MAX_ELECTIONS = 1_000


def elect_leaders(view: ClusterView, request: ElectLeadersRequest) -> tuple[ElectLeadersResponse, list[MetadataRecord]]:
    """Return the response and the records.

    Without a list of partitions all are meant, and those that need no election are left out of the response.
    """
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        return _unknown_election(request), []
    records: list[MetadataRecord] = []
    results = []
    if request.topic_partitions is None:
        for topic in view.image.topics.values():
            needing = [index for index, partition in topic.partitions.items() if not _has_leader(partition, election)]
            told = [_elect(view, topic.name, index, election, records) for index in needing]
            results.append(ReplicaElectionResult(topic=topic.name, partition_result=told))
    else:
        for asked in request.topic_partitions:
            told = [_elect(view, asked.topic, index, election, records) for index in asked.partitions]
            results.append(ReplicaElectionResult(topic=asked.topic, partition_result=told))
    return ElectLeadersResponse(replica_election_results=results), records


def balance(view: ClusterView) -> list[MetadataRecord]:
    """Return the records that give partitions back to their preferred leaders, at most MAX_ELECTIONS."""
    records: list[MetadataRecord] = []
    for topic, partition in view.image.partitions():
        if len(records) >= MAX_ELECTIONS:
            break
        if partition.leader != partition.replicas[0]:
            records += _records_of(view, topic, partition, Election.PREFERRED)
    return records


def elect_unclean(view: ClusterView) -> list[MetadataRecord]:
    """Return the records that give leaderless partitions a leader that may lack records, at most MAX_ELECTIONS.

    Only where unclean elections are allowed, which may be so only since the partition lost its leader.
    """
    records: list[MetadataRecord] = []
    for topic, partition in view.leaderless():
        if len(records) >= MAX_ELECTIONS:
            break
        if view.allows_unclean(topic):
            records += _records_of(view, topic, partition, Election.UNCLEAN)
    return records


def _elect(view: ClusterView, topic_name: str, index: int, election: Election, records: list[MetadataRecord]) -> PartitionResult:
    try:
        topic, partition = view.partition(topic_name, index)
    except KafkaError as error:
        return PartitionResult(index, error.code, error.reason)
    if _has_leader(partition, election):
        return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "The partition already has its leader.")
    elected = _records_of(view, topic, partition, election)
    records += elected
    if elected:
        return PartitionResult(index)
    if election is Election.PREFERRED:
        return PartitionResult(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica can lead.")


def _has_leader(partition: PartitionRecord, election: Election) -> bool:
    """Return whether a partition already has the election's leader: any one, or the preferred one."""
    leader = partition.leader
    return leader != NO_LEADER if election is Election.UNCLEAN else leader == partition.replicas[0]


def _records_of(view: ClusterView, topic: Topic, partition: PartitionRecord, election: Election) -> list[MetadataRecord]:
    change = change_of(view, topic, partition)
    change.election = election
    record = change.record()
    return [] if record is None else [record]


def _unknown_election(request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = f"There is no election of type {request.election_type}."
    results = [
        ReplicaElectionResult(
            topic=asked.topic,
            partition_result=[PartitionResult(index, ErrorCode.INVALID_REQUEST, message) for index in asked.partitions],
        )
        for asked in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=results)
